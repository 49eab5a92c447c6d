//! Who opens a connection: the peer itself, or the caller for whom a balancer says that it opens it.
//!
//! A balancer that speaks the PROXY protocol is listed among the trusted proxies so that its header is believed. That
//! header names the caller, and nothing more is trusted for the balancer's sake: the caller is trusted if its own
//! address is listed, and its connections count for its own address.
//!
//! | the peer                 | without the PROXY protocol      | with it |
//! |--------------------------|---------------------------------|---------|
//! | is listed                | trusted; not counted            | its header says who calls |
//! | is not listed            | not trusted; counted            | closed: no other way leads around the balancer |
//!
//! | the header names         | trusted                         | counted |
//! |--------------------------|---------------------------------|---------|
//! | a listed address         | yes                             | no |
//! | another address          | no                              | for that address |
//! | none (the balancer itself, a Unix socket) | no             | for the balancer's address |

use std::io;
use std::net::IpAddr;
use std::sync::Arc;

use tidegate_policy::policy::{ClientAddress, Server};
use tokio::io::AsyncRead;

use super::{Admittance, ListenerState, Room, proxy_protocol};
use crate::worker::Worker;

/// What the address of a peer alone says of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PeerKind {
    /// It speaks for itself, and is not believed in anything else.
    Stranger,
    /// A trusted proxy: it says in each request for whom it sends.
    Proxy,
    /// A trusted proxy that says with the PROXY protocol who calls.
    Balancer,
    /// Only balancers may connect, and it is none.
    Uninvited,
}

impl PeerKind {
    pub(crate) fn of(server: &Server, from: IpAddr) -> Self {
        match (server.trusts(from), server.client_address) {
            (true, ClientAddress::ProxyProtocol) => Self::Balancer,
            (false, ClientAddress::ProxyProtocol) => Self::Uninvited,
            (true, ClientAddress::XForwardedFor | ClientAddress::Forwarded) => Self::Proxy,
            (false, ClientAddress::XForwardedFor | ClientAddress::Forwarded) => Self::Stranger,
        }
    }
}

/// A connection for which there is room.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) listener: Arc<ListenerState>,
    from: IpAddr,
    standing: Standing,
}

#[derive(Debug)]
enum Standing {
    Admitted {
        admittance: Admittance,
        is_trusted: bool,
    },
    /// The PROXY header says who it is.
    Unknown(Room),
}

/// A connection of which it is known who calls.
#[derive(Debug)]
pub(crate) struct KnownPeer {
    pub(crate) admittance: Admittance,
    pub(crate) address: IpAddr,
    pub(crate) is_trusted: bool,
}

impl Entry {
    /// Takes a connection in, unless its address has too many.
    pub(crate) fn of(
        listener: &Arc<ListenerState>,
        room: Room,
        (peer, from): (PeerKind, IpAddr),
        server: &Server,
    ) -> Option<Self> {
        let standing = match peer {
            PeerKind::Balancer => Standing::Unknown(room),
            PeerKind::Proxy => {
                Standing::Admitted { admittance: listener.admit(room, None)?, is_trusted: true }
            }
            PeerKind::Stranger | PeerKind::Uninvited => {
                let admittance = listener.admit(room, Some(server.network_of(from)))?;
                Standing::Admitted { admittance, is_trusted: false }
            }
        };
        Some(Self { listener: Arc::clone(listener), from, standing })
    }

    /// The peer's address.
    pub(crate) const fn from(&self) -> IpAddr {
        self.from
    }

    /// Reads who calls, where a balancer says it.
    ///
    /// # Errors
    /// When there is no PROXY header, or its caller has too many connections.
    pub(crate) async fn known<S>(self, stream: &mut S, worker: &Worker) -> io::Result<KnownPeer>
    where
        S: AsyncRead + Unpin,
    {
        let Self { listener, from, standing } = self;
        let room = match standing {
            Standing::Admitted { admittance, is_trusted } => {
                return Ok(KnownPeer { admittance, address: from, is_trusted });
            }
            Standing::Unknown(room) => room,
        };
        let named = match proxy_protocol::read(stream).await {
            Ok(named) => named.map(|named| named.ip()),
            Err(error) => {
                listener.turn_away();
                return Err(error);
            }
        };
        let settings = worker.settings();
        let caller = NamedCaller::of(&settings.server, from, named);
        let counted = (!caller.is_trusted).then(|| settings.server.network_of(caller.address));
        let admittance = listener.admit(room, counted).ok_or(io::ErrorKind::ConnectionRefused)?;
        Ok(KnownPeer { admittance, address: caller.address, is_trusted: caller.is_trusted })
    }
}

/// Who calls behind a balancer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct NamedCaller {
    address: IpAddr,
    is_trusted: bool,
}

impl NamedCaller {
    /// Without an address in the header nothing tells the balancer's own checks from callers it cannot name, so such
    /// a connection counts for the balancer and is believed in nothing.
    fn of(server: &Server, balancer: IpAddr, named: Option<IpAddr>) -> Self {
        match named {
            Some(address) => Self { address, is_trusted: server.trusts(address) },
            None => Self { address: balancer, is_trusted: false },
        }
    }
}

#[cfg(test)]
mod tests {
    use tidegate_policy::policy::{Listener, Network};

    use super::*;

    const BALANCER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1));

    fn server(client_address: ClientAddress) -> Server {
        let trusted_proxies = vec![Network::of(BALANCER, 8)];
        Server { trusted_proxies, client_address, ..Server::default() }
    }

    #[test]
    fn a_peer_is_what_its_address_and_the_policy_say() {
        let of = |client_address, from: &str| PeerKind::of(&server(client_address), from.parse().unwrap());
        for fields in [ClientAddress::XForwardedFor, ClientAddress::Forwarded] {
            assert_eq!(of(fields, "10.1.1.1"), PeerKind::Proxy);
            assert_eq!(of(fields, "::ffff:10.1.1.1"), PeerKind::Proxy);
            assert_eq!(of(fields, "11.1.1.1"), PeerKind::Stranger);
        }
        assert_eq!(of(ClientAddress::ProxyProtocol, "10.1.1.1"), PeerKind::Balancer);
        assert_eq!(of(ClientAddress::ProxyProtocol, "11.1.1.1"), PeerKind::Uninvited);
    }

    #[test]
    fn connections_of_a_network_count_together() {
        let spec = Listener {
            max_connections_per_address: 1,
            ..Listener::new("public", ([127, 0, 0, 1], 0).into())
        };
        let listener = Arc::new(ListenerState::new(0, spec, None));
        let enter = |ipv6_prefix, from: &str| {
            let server = Server { ipv6_prefix, ..Server::default() };
            Entry::of(&listener, Room::default(), (PeerKind::Stranger, from.parse().unwrap()), &server)
        };
        let first = enter(64, "2001:db8::1");
        assert!(first.is_some());
        assert!(enter(64, "2001:db8::2").is_none(), "of the same network");
        assert!(enter(64, "2001:db8:0:1::1").is_some(), "of another one");
        assert!(enter(128, "2001:db8::2").is_some(), "where addresses are told apart");
        let mapped = enter(64, "::ffff:203.0.113.7");
        assert!(mapped.is_some());
        assert!(enter(64, "203.0.113.7").is_none(), "the same address");
        assert!(enter(64, "203.0.113.8").is_some(), "of IPv4 each address is told apart");
        drop(first);
        assert!(enter(64, "2001:db8::2").is_some(), "its place is free again");
        assert_eq!(listener.counts(0).turned_away, 2);
    }

    #[test]
    fn a_caller_is_trusted_for_its_own_address_alone() {
        let of = |named: Option<&str>| {
            let named = named.map(|named| named.parse().unwrap());
            NamedCaller::of(&server(ClientAddress::ProxyProtocol), BALANCER, named)
        };
        let known = |address: &str, is_trusted| NamedCaller { address: address.parse().unwrap(), is_trusted };
        assert_eq!(of(Some("203.0.113.1")), known("203.0.113.1", false));
        assert_eq!(of(Some("10.0.0.7")), known("10.0.0.7", true));
        assert_eq!(of(Some("::ffff:10.0.0.7")), known("::ffff:10.0.0.7", true));
        assert_eq!(of(None), known("10.0.0.1", false));
    }
}
