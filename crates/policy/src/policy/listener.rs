use std::net::SocketAddr;
use std::time::Duration;

/// An address on which callers are served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listener {
    /// What it is called; `default` where the file does not say.
    pub name: String,
    /// The address and port.
    pub bind: SocketAddr,
    /// What it speaks.
    pub protocols: Protocols,
    /// Certificate and key, where connections are encrypted.
    pub tls: Option<Tls>,
    /// How many connections it holds, over all workers.
    pub max_connections: usize,
    /// How many of them may come from one address. Trusted proxies are not counted.
    pub max_connections_per_address: usize,
    /// The largest head of a request.
    pub max_header_bytes: usize,
    /// The most header fields of a request.
    pub max_headers: usize,
    /// How long the head of a request may take to come.
    pub head_timeout: Duration,
    /// How long a body may pause.
    pub body_idle_timeout: Duration,
    /// How long a connection may be idle.
    pub idle_timeout: Duration,
}

impl Listener {
    /// One for which everything else has its default.
    #[must_use]
    pub fn new(name: impl Into<String>, bind: SocketAddr) -> Self {
        Self {
            name: name.into(),
            bind,
            protocols: Protocols { http1: true, h2: true },
            tls: None,
            max_connections: 20_000,
            max_connections_per_address: 1_000,
            max_header_bytes: 64 * 1024,
            max_headers: 128,
            head_timeout: Duration::from_secs(10),
            body_idle_timeout: Duration::from_secs(60),
            idle_timeout: Duration::from_secs(75),
        }
    }
}

/// What a listener speaks: one of them at least.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Protocols {
    /// HTTP/1.1, and HTTP/1.0 with it.
    pub http1: bool,
    /// HTTP/2.
    pub h2: bool,
}

/// Where certificate and key are, as it was written: meant from where the policy lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tls {
    /// The file of the certificate chain.
    pub cert: String,
    /// The file of the private key.
    pub key: String,
}
