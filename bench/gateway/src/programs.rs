//! How the programs we compare with are run, and what stands around the part of their configuration that matters.

pub(crate) mod envoy;
pub(crate) mod nginx;

use std::net::SocketAddr;

/// From where to where a gateway forwards.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Between {
    pub(crate) listen: SocketAddr,
    pub(crate) upstream: SocketAddr,
}
