//! Where requests go.
//!
//! A load generator is a weapon when it is aimed at somebody else. It therefore aims at this machine only, unless it
//! is told in so many words that it may go anywhere.

use std::error::Error;
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};

use http::Uri;

/// Which machines may be aimed at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// This one, under an address that never leaves it.
    Loopback,
    /// Any.
    Anywhere,
}

/// A server, and the path that was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    authority: String,
    path: String,
    /// Tried in this order.
    addresses: Vec<SocketAddr>,
}

impl Target {
    /// Reads `http://127.0.0.1:8080/path` and looks the host up if it has a name.
    ///
    /// # Errors
    /// When it is no such URL, is out of reach, or its name is not known.
    pub fn read(url: &str, reach: Reach) -> Result<Self, BadTarget> {
        let bad = |why: &str| BadTarget::Url { url: url.to_owned(), why: why.to_owned() };
        let uri: Uri = url.parse().map_err(|error: http::uri::InvalidUri| bad(&error.to_string()))?;
        match uri.scheme_str() {
            Some("http") => {}
            Some("https") => return Err(BadTarget::Https { url: url.to_owned() }),
            Some(other) => return Err(bad(&format!("`{other}` is not http"))),
            None => return Err(bad("it must begin with http://")),
        }
        let authority = uri.authority().ok_or_else(|| bad("it has no host"))?;
        if authority.as_str().contains('@') {
            return Err(bad("it has a user name; send an Authorization field instead"));
        }
        if url.contains('#') {
            return Err(bad("what follows # is never sent; leave it out"));
        }
        let host = authority.host().trim_start_matches('[').trim_end_matches(']');
        let port = match (authority.port_u16(), authority.port()) {
            (Some(0), _) => return Err(bad("no server listens on port 0")),
            (Some(port), _) => port,
            (None, None) if authority.as_str().len() == authority.host().len() => 80,
            (None, _) => return Err(bad("its port is no number from 1 to 65535")),
        };
        let addresses = look_up(host, port, reach).map_err(|problem| match problem {
            LookUp::OutOfReach => BadTarget::OutOfReach { host: host.to_owned() },
            LookUp::Unknown(source) => BadTarget::Unknown { host: host.to_owned(), source },
        })?;
        let path = uri.path_and_query().map_or("/", |path| path.as_str()).to_owned();
        Ok(Self { authority: authority.as_str().to_owned(), path, addresses })
    }

    /// This address, which the caller vouches for.
    #[must_use]
    pub fn at(address: SocketAddr) -> Self {
        Self { authority: address.to_string(), path: "/".to_owned(), addresses: vec![address] }
    }

    /// What goes into the Host field.
    #[must_use]
    pub fn authority(&self) -> &str {
        &self.authority
    }

    /// The path with its query.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    pub(crate) fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }
}

enum LookUp {
    OutOfReach,
    Unknown(io::Error),
}

fn look_up(host: &str, port: u16, reach: Reach) -> Result<Vec<SocketAddr>, LookUp> {
    let literal = host.parse::<IpAddr>().ok();
    // Names other than this one are not even looked up: the question would already leave the machine.
    let is_near = literal.map_or(host == "localhost", |address| address.to_canonical().is_loopback());
    if reach == Reach::Loopback && !is_near {
        return Err(LookUp::OutOfReach);
    }
    if let Some(address) = literal {
        return Ok(vec![SocketAddr::new(address, port)]);
    }
    let mut addresses: Vec<SocketAddr> = (host, port).to_socket_addrs().map_err(LookUp::Unknown)?.collect();
    addresses.retain(|found| reach == Reach::Anywhere || found.ip().is_loopback());
    if addresses.is_empty() {
        return Err(LookUp::Unknown(io::Error::other("the name has no address that may be used")));
    }
    Ok(addresses)
}

/// Why nothing can be sent to what was asked for.
#[derive(Debug)]
#[non_exhaustive]
pub enum BadTarget {
    /// It is not a URL of a server.
    Url {
        /// As it was written.
        url: String,
        /// What is wrong with it.
        why: String,
    },
    /// TLS is not spoken here.
    Https {
        /// As it was written.
        url: String,
    },
    /// It is another machine.
    OutOfReach {
        /// The machine.
        host: String,
    },
    /// Its name cannot be looked up.
    Unknown {
        /// The name.
        host: String,
        /// What the resolver said.
        source: io::Error,
    },
}

impl fmt::Display for BadTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Url { url, why } => {
                write!(f, "`{url}` is not where requests can be sent, such as http://127.0.0.1:8080/: {why}")
            }
            Self::Https { url } => {
                write!(
                    f,
                    "`{url}` needs TLS, which is not spoken here; measure a listener that speaks plain http"
                )
            }
            Self::OutOfReach { host } => write!(
                f,
                "`{host}` is not this machine. This sends load on purpose, which harms a service whose \
                 owner does not expect it: only loopback addresses are allowed unless you say otherwise"
            ),
            Self::Unknown { host, source } => write!(f, "`{host}` cannot be looked up: {source}"),
        }
    }
}

impl Error for BadTarget {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Unknown { source, .. } => Some(source),
            Self::Url { .. } | Self::Https { .. } | Self::OutOfReach { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_gives_authority_path_and_address() {
        let target = Target::read("http://127.0.0.1:8080/a?b=c", Reach::Loopback).unwrap();
        assert_eq!((target.authority(), target.path()), ("127.0.0.1:8080", "/a?b=c"));
        assert_eq!(target.addresses(), ["127.0.0.1:8080".parse().unwrap()]);
        let short = Target::read("http://[::1]", Reach::Loopback).unwrap();
        assert_eq!((short.authority(), short.path()), ("[::1]", "/"));
        assert_eq!(short.addresses(), ["[::1]:80".parse().unwrap()]);
        let named = Target::read("http://localhost:81/items/{key}", Reach::Loopback).unwrap();
        assert!(named.addresses().iter().all(|address| address.ip().is_loopback()));
        assert_eq!(named.path(), "/items/{key}");
    }

    #[test]
    fn what_cannot_be_aimed_at_is_said() {
        let problem = |url: &str| Target::read(url, Reach::Loopback).unwrap_err().to_string();
        assert!(problem("127.0.0.1:8080").ends_with("it must begin with http://"));
        assert!(problem("ftp://127.0.0.1/").ends_with("`ftp` is not http"));
        assert!(problem("https://127.0.0.1/").contains("needs TLS, which is not spoken here"));
        assert!(problem("http://me@127.0.0.1/").contains("user name"));
        assert!(problem("http://127.0.0.1/#top").contains("never sent"));
        assert!(problem("http://127.0.0.1:0/").contains("port 0"));
        assert!(problem("http://127.0.0.1:99999/").contains("port"));
        assert!(problem("http://").contains("is not where requests can be sent"));
    }

    #[test]
    fn other_machines_are_out_of_reach_until_allowed() {
        for url in ["http://192.0.2.1/", "http://example.test/", "http://0.0.0.0/", "http://[2001:db8::1]/"] {
            let problem = Target::read(url, Reach::Loopback).unwrap_err();
            assert!(matches!(problem, BadTarget::OutOfReach { .. }), "{problem}");
        }
        let target = Target::read("http://192.0.2.1/", Reach::Anywhere).unwrap();
        assert_eq!(target.addresses(), ["192.0.2.1:80".parse().unwrap()]);
    }
}
