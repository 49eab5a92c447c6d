//! New connections to an endpoint.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tidegate_policy::policy::{Endpoint, UpstreamProtocol};
use tokio::net::{TcpStream, lookup_host};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::UpstreamError;

/// Makes connections. Certificates are checked against the system's roots.
#[derive(Clone)]
pub(crate) struct Connector {
    tls: Option<Arc<RootCertStore>>,
}

/// A connection before its first request.
pub(super) enum Connected {
    Plain(TcpStream, Spoken),
    Tls(Box<TlsStream<TcpStream>>, Spoken),
}

/// What is spoken over a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spoken {
    Http1,
    H2,
}

impl Connector {
    /// Reads the system's roots only if some upstream needs them.
    pub(crate) fn new(needs_tls: bool) -> Self {
        let tls = needs_tls.then(|| {
            let mut roots = RootCertStore::empty();
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            Arc::new(roots)
        });
        Self { tls }
    }

    pub(super) async fn connect(
        &self,
        endpoint: &Endpoint,
        protocol: UpstreamProtocol,
    ) -> Result<Connected, UpstreamError> {
        let found = lookup_host((endpoint.host.as_str(), endpoint.port)).await;
        let addresses: Vec<SocketAddr> = found.map_err(|_| UpstreamError::Dns)?.collect();
        let stream = TcpStream::connect(addresses.as_slice()).await;
        let stream = stream.map_err(|failure| UpstreamError::of_connecting(&failure))?;
        stream.set_nodelay(true).map_err(|_| UpstreamError::Reset)?;
        let Some(roots) = self.tls.as_ref().filter(|_| endpoint.is_tls) else {
            let is_h2 = protocol == UpstreamProtocol::H2;
            return Ok(Connected::Plain(stream, if is_h2 { Spoken::H2 } else { Spoken::Http1 }));
        };
        let mut config =
            ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
                .with_safe_default_protocol_versions()
                .map_err(|_| UpstreamError::Tls)?
                .with_root_certificates(Arc::clone(roots))
                .with_no_client_auth();
        config.alpn_protocols = match protocol {
            UpstreamProtocol::Http1 => vec![b"http/1.1".to_vec()],
            UpstreamProtocol::H2 => vec![b"h2".to_vec()],
            UpstreamProtocol::Auto => vec![b"h2".to_vec(), b"http/1.1".to_vec()],
        };
        let name = ServerName::try_from(endpoint.host.clone()).map_err(|_| UpstreamError::Tls)?;
        let stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await;
        let stream = stream.map_err(|_| UpstreamError::Tls)?;
        let is_h2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
        Ok(Connected::Tls(Box::new(stream), if is_h2 { Spoken::H2 } else { Spoken::Http1 }))
    }
}

impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connector").finish_non_exhaustive()
    }
}
