//! Callers that have left, seen without reading what they sent.
//!
//! Connections stand in line in the system until a worker accepts them, the oldest first. Two workers that were kept from
//! their work for half a second, in a flood of ten thousand a second, find 2 500 each, and of those the callers of 1 500
//! have waited for 200 ms and are gone. To read a request, decide about it and write an answer takes 40 us. A worker that
//! does that for the gone ones too comes to the last of them 60 ms later, and meanwhile 600 more have given up. The
//! answers go to nobody for a while, although all are given, and the gone have taken from everybody's quota.
//!
//! A look at the connection tells whether its caller has closed it, and takes less than a microsecond. Those who have
//! left are let go at once.
//!
//! A caller can leave while its request is served, too. Where nothing of it is unread, the end is read like anything
//! else; behind a byte of the next request, or of a body that its upstream does not take, it can only be looked for.
//!
//! Who closes only its own direction and goes on listening is taken for gone too. The gateway drops what it forwards for
//! such a caller anyway, as other gateways do; only what it answers by itself could have reached it.

use std::os::fd::AsFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;

/// Whether the other side has closed the connection.
pub(crate) fn has_left(connection: &impl AsFd) -> bool {
    let mut looked = [PollFd::new(connection, PollFlags::RDHUP)];
    poll(&mut looked, Some(&Timespec::default())).is_ok_and(|changed| changed > 0)
}

/// A stream whose other side can be seen to leave although something of it is unread.
pub(crate) trait Leaves {
    /// Whether the other side has closed it.
    fn has_left(&self) -> bool;
}

impl Leaves for TcpStream {
    fn has_left(&self) -> bool {
        has_left(self)
    }
}

impl Leaves for TlsStream<TcpStream> {
    fn has_left(&self) -> bool {
        has_left(self.get_ref().0)
    }
}
