use std::fmt;
use std::time::Duration;

use super::Concurrency;

/// A service behind the gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upstream {
    /// What it is called; `default` where the file says only where it is.
    pub name: String,
    /// Where it is: one at least, none twice.
    pub endpoints: Vec<Endpoint>,
    /// What is spoken with it.
    pub protocol: UpstreamProtocol,
    /// How long it may take until the head of its answer is there, connecting included; as long as the
    /// caller waits where there is none.
    pub timeout: Option<Duration>,
    /// How long a connection may take to be made.
    pub connect_timeout: Duration,
    /// How many connections are held to each endpoint, over all workers.
    pub max_connections: usize,
    /// How long a connection that nobody uses is kept.
    pub idle_timeout: Duration,
    /// How many requests may be in flight.
    pub concurrency: Concurrency,
}

impl Upstream {
    /// One for which everything else has its default.
    #[must_use]
    pub fn new(name: impl Into<String>, endpoints: Vec<Endpoint>) -> Self {
        let is_negotiated = endpoints.iter().any(|endpoint| endpoint.is_tls);
        Self {
            name: name.into(),
            endpoints,
            protocol: if is_negotiated { UpstreamProtocol::Auto } else { UpstreamProtocol::Http1 },
            timeout: Some(Duration::from_secs(60)),
            connect_timeout: Duration::from_secs(1),
            max_connections: 1_000,
            idle_timeout: Duration::from_secs(60),
            concurrency: Concurrency::default(),
        }
    }
}

/// What is spoken with an upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpstreamProtocol {
    /// HTTP/1.1.
    Http1,
    /// HTTP/2: negotiated under TLS, and with prior knowledge without.
    H2,
    /// What is negotiated under TLS, and HTTP/1.1 without.
    Auto,
}

/// One address of an upstream.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Endpoint {
    /// Whether connections are encrypted.
    pub is_tls: bool,
    /// A name in lower case, or an IP address without brackets.
    pub host: String,
    /// The port; 80 or 443 where it was not written.
    pub port: u16,
    /// Both as the `Host` field has them: without the port where it is the usual one.
    pub authority: String,
}

impl Endpoint {
    /// The endpoint at a host, which is a name or an IP address without brackets.
    #[must_use]
    pub fn new(is_tls: bool, host: &str, port: Option<u16>) -> Self {
        let usual = if is_tls { 443 } else { 80 };
        let port = port.unwrap_or(usual);
        let host = host.to_ascii_lowercase();
        let bracketed = if host.contains(':') { format!("[{host}]") } else { host.clone() };
        let authority = if port == usual { bracketed } else { format!("{bracketed}:{port}") };
        Self { is_tls, host, port, authority }
    }
}

impl fmt::Display for Endpoint {
    /// As a URL.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", if self.is_tls { "https" } else { "http" }, self.authority)
    }
}
