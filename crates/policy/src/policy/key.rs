use std::fmt;

/// What picks a rule's counter: one source, or several that make a composite key.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct KeySpec(pub Vec<KeySource>);

/// One part of a key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum KeySource {
    /// The caller, as the policy's caller sources recognise it.
    Caller,
    /// The address it came from; of IPv6 as many bits as [`Server::ipv6_prefix`](super::Server::ipv6_prefix) says.
    ClientIp,
    /// A header field, by its name in lower case.
    Header(String),
    /// The path.
    Path,
    /// The route.
    Route,
    /// Nothing: everybody shares one counter.
    Global,
}

/// As it is written in a policy.
impl fmt::Display for KeySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Caller => f.write_str("caller"),
            Self::ClientIp => f.write_str("client-ip"),
            Self::Header(name) => write!(f, "header:{name}"),
            Self::Path => f.write_str("path"),
            Self::Route => f.write_str("route"),
            Self::Global => f.write_str("global"),
        }
    }
}
