//! Encrypted connections with a certificate that only these tests trust.

use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection, StreamOwned};
use tokio_rustls::{TlsAcceptor, TlsConnector};

use super::client::Client;
use super::h2::{H2Client, runtime};
use super::wire::Wire;

/// The certificate of `service.test`, `localhost` and 127.0.0.1, and its key, as PEM.
pub const CERT: &str = include_str!("../tls/cert.pem");
pub const KEY: &str = include_str!("../tls/key.pem");

/// Another certificate of the same names, and its key.
pub const RENEWED_CERT: &str = include_str!("../tls/renewed-cert.pem");
pub const RENEWED_KEY: &str = include_str!("../tls/renewed-key.pem");

/// Where the certificate lies, for programs that are told by its path whom to trust.
pub const CERT_FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/gateway/tls/cert.pem");

fn client(protocols: &[&str]) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(CERT.as_bytes()).unwrap()).unwrap();
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder.with_safe_default_protocol_versions().unwrap();
    let mut config = builder.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
    Arc::new(config)
}

fn name() -> ServerName<'static> {
    ServerName::try_from("service.test").unwrap()
}

/// Connects as a caller who offers these protocols; gives the one that was agreed on.
pub fn connect(to: SocketAddr, protocols: &[&str]) -> (Client, Option<String>) {
    let mut socket = TcpStream::connect(to).unwrap();
    let mut session = ClientConnection::new(client(protocols), name()).unwrap();
    while session.is_handshaking() {
        session.complete_io(&mut socket).unwrap();
    }
    let agreed = session.alpn_protocol().map(|protocol| String::from_utf8(protocol.to_vec()).unwrap());
    let stream = StreamOwned::new(session, socket.try_clone().unwrap());
    (Client::over(Wire::over(Box::new(stream), socket)), agreed)
}

/// Whether a caller who trusts this certificate alone is shown it.
pub fn is_shown(to: SocketAddr, cert: &str) -> bool {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(cert.as_bytes()).unwrap()).unwrap();
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder.with_safe_default_protocol_versions().unwrap();
    let config = builder.with_root_certificates(roots).with_no_client_auth();
    let mut socket = TcpStream::connect(to).unwrap();
    let mut session = ClientConnection::new(Arc::new(config), name()).unwrap();
    while session.is_handshaking() {
        if session.complete_io(&mut socket).is_err() {
            return false;
        }
    }
    true
}

/// Connects as a caller who speaks HTTP/2 alone.
pub fn connect_h2(to: SocketAddr) -> H2Client {
    let runtime = runtime();
    let stream = runtime.block_on(async {
        let socket = tokio::net::TcpStream::connect(to).await.unwrap();
        TlsConnector::from(client(&["h2"])).connect(name(), socket).await.unwrap()
    });
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
    H2Client::over(runtime, stream)
}

fn server(protocols: &[&str]) -> Arc<ServerConfig> {
    let chain = vec![CertificateDer::from_pem_slice(CERT.as_bytes()).unwrap()];
    let key = PrivateKeyDer::from_pem_slice(KEY.as_bytes()).unwrap();
    let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder.with_safe_default_protocol_versions().unwrap();
    let mut config = builder.with_no_client_auth().with_single_cert(chain, key).unwrap();
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
    Arc::new(config)
}

/// Accepts a connection as a service that speaks HTTP/1.
pub fn accept(socket: TcpStream) -> Wire {
    let session = ServerConnection::new(server(&[])).unwrap();
    Wire::over(Box::new(StreamOwned::new(session, socket.try_clone().unwrap())), socket)
}

/// What accepts connections for a service that speaks HTTP/2.
pub fn acceptor_h2() -> TlsAcceptor {
    TlsAcceptor::from(server(&["h2"]))
}
