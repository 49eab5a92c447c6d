//! How the programs we compare with are run, and what stands around the part of their configuration that matters.

pub mod envoy;
pub mod nginx;

use std::net::SocketAddr;

/// From where to where a gateway forwards.
#[derive(Clone, Copy, Debug)]
pub struct Between {
    /// Where callers connect to.
    pub listen: SocketAddr,
    /// Where their requests go.
    pub upstream: SocketAddr,
}
