//! Certificates, and what is offered to callers.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tidegate_core::WallTime;
use tidegate_policy::policy::Protocols;
use tokio_rustls::TlsAcceptor;

use super::expiry;

/// A certificate chain and its key, as PEM.
#[derive(Clone, PartialEq, Eq)]
pub struct Pem {
    /// The chain, the server's own certificate first.
    pub cert: Vec<u8>,
    /// The private key.
    pub key: Vec<u8>,
}

impl fmt::Debug for Pem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pem").finish_non_exhaustive()
    }
}

/// Why a certificate cannot be used, by the file that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BadPem {
    /// That of the certificate.
    Cert(String),
    /// That of the key.
    Key(String),
    /// Both are right by themselves.
    Pair(String),
}

impl fmt::Display for BadPem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cert(why) => write!(f, "there is no certificate in its file: {why}"),
            Self::Key(why) => write!(f, "there is no private key in its file: {why}"),
            Self::Pair(why) => write!(f, "certificate and key do not go together: {why}"),
        }
    }
}

impl Error for BadPem {}

impl Pem {
    /// Whether connections could be accepted with it.
    ///
    /// # Errors
    /// When not, with the file that is wrong.
    pub fn check(&self) -> Result<(), BadPem> {
        acceptor(self, Protocols { http1: true, h2: true }).map(drop)
    }
}

/// What accepts encrypted connections, and until when callers believe it.
pub(crate) struct ShownCertificate {
    pub(crate) acceptor: TlsAcceptor,
    /// When the first of its chain expires, if that is known.
    pub(crate) expires: Option<WallTime>,
}

/// What accepts encrypted connections.
pub(crate) fn acceptor(pem: &Pem, protocols: Protocols) -> Result<ShownCertificate, BadPem> {
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem.cert).collect();
    let chain = chain.map_err(|problem| BadPem::Cert(format!("it is no PEM: {problem}")))?;
    if chain.is_empty() {
        return Err(BadPem::Cert("it has no `BEGIN CERTIFICATE`".to_owned()));
    }
    let expires = chain.iter().filter_map(|certificate| expiry::of(certificate)).min();
    let key = PrivateKeyDer::from_pem_slice(&pem.key).map_err(|problem| match problem {
        pem::Error::NoItemsFound => BadPem::Key("it has no `BEGIN PRIVATE KEY`".to_owned()),
        other => BadPem::Key(other.to_string()),
    })?;
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|problem| BadPem::Pair(problem.to_string()))?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(|problem| BadPem::Pair(problem.to_string()))?;
    if protocols.h2 {
        config.alpn_protocols.push(b"h2".to_vec());
    }
    if protocols.http1 {
        config.alpn_protocols.push(b"http/1.1".to_vec());
    }
    Ok(ShownCertificate { acceptor: TlsAcceptor::from(Arc::new(config)), expires })
}
