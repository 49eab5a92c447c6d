use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use super::{Network, inside};

/// The process itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// Where the admin API listens.
    pub admin: Option<SocketAddr>,
    /// The token that the admin API asks for.
    pub admin_token: Option<Secret>,
    /// How many workers serve; one per core where it is not said.
    pub workers: Option<usize>,
    /// How long requests in flight may take to finish after the signal to stop.
    pub drain: Duration,
    /// How long to go on accepting after that signal, while not ready.
    pub drain_delay: Duration,
    /// Who is believed when it says for whom it sends and how critical that is. Behind balancers that speak the PROXY
    /// protocol, that is judged by the address of the caller they name.
    pub trusted_proxies: Vec<Network>,
    /// How trusted proxies say for whom they send.
    pub client_address: ClientAddress,
    /// How many bits of an IPv6 address tell callers apart, from 1 to 128.
    pub ipv6_prefix: u8,
    /// Which answers carry the `RateLimit` fields.
    pub ratelimit_fields: RatelimitFields,
    /// What `X-RateLimit-Reset` counts, where the older fields are sent too.
    pub legacy_ratelimit_fields: Option<LegacyReset>,
    /// What becomes of a changed file that loses rules, routes or listeners.
    pub guard: Guard,
    /// Whether answers tell which rules decided.
    pub debug_headers: bool,
}

impl Default for Server {
    fn default() -> Self {
        Self {
            admin: None,
            admin_token: None,
            workers: None,
            drain: Duration::from_secs(25),
            drain_delay: Duration::ZERO,
            trusted_proxies: Vec::new(),
            client_address: ClientAddress::default(),
            ipv6_prefix: 64,
            ratelimit_fields: RatelimitFields::default(),
            legacy_ratelimit_fields: None,
            guard: Guard::default(),
            debug_headers: false,
        }
    }
}

impl Server {
    /// Whether this peer is one of the trusted proxies.
    #[must_use]
    pub fn trusts(&self, peer: IpAddr) -> bool {
        self.trusted_proxies.iter().any(|network| network.contains(peer))
    }

    /// What counts of a caller's address: a household or a server has a whole IPv6 network to itself, so its
    /// addresses are one caller. An IPv4 address is a caller by itself, also when it is written as IPv6, or comes
    /// through a translator (NAT64).
    #[must_use]
    pub fn network_of(&self, address: IpAddr) -> Network {
        let address = inside(address);
        Network::of(address, if address.is_ipv4() { 32 } else { self.ipv6_prefix })
    }
}

/// What becomes of a changed file that loses something which the policy in force has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Guard {
    /// It is taken, with a warning.
    #[default]
    Warn,
    /// It is held until an operator confirms it.
    Refuse,
}

/// Where a secret is that does not stand in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Secret {
    /// In this environment variable.
    Env(String),
    /// In this file, as it was written: meant from where the policy lies.
    File(String),
}

/// How a trusted proxy says for whom it sends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClientAddress {
    /// By the header field `X-Forwarded-For`.
    #[default]
    XForwardedFor,
    /// By the header field `Forwarded`.
    Forwarded,
    /// By the PROXY protocol before the first byte; trusted proxies must speak it then, and no other peer may connect.
    ProxyProtocol,
}

/// Which answers carry the `RateLimit` fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RatelimitFields {
    /// All of them.
    #[default]
    Always,
    /// Refusals only.
    Refused,
    /// None.
    Never,
}

/// What `X-RateLimit-Reset` counts. Two conventions share the name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LegacyReset {
    /// Seconds from now.
    Seconds,
    /// The Unix time at which it is.
    UnixTime,
}
