//! What the tests stand on.
//!
//! ```text
//! Client ──bytes──> Gateway, the real binary ──bytes──> Upstream, which notes what it gets
//! ```
//!
//! | to | use |
//! |---|---|
//! | start the binary with a policy, signal it, read what it says | [`Gateway`] |
//! | send any bytes and read whole answers | [`Client`] |
//! | have a service that answers, breaks off or hangs as told | [`Upstream`] |
//! | speak HTTP/2 | [`H2Client`], [`H2Upstream`] |
//! | encrypt either side | [`tls`] |
//! | let one side wait for the other, without sleeping | [`Latch`] |

mod client;
mod gateway;
mod h2;
mod latch;
pub mod lines;
mod message;
pub mod tls;
mod upstream;
mod wire;

pub use client::{Client, request, socket_from};
pub use gateway::{Gateway, Signal, refused_to_start};
pub use h2::{H2Client, H2Upstream, full, runtime, with_trailers};
pub use latch::Latch;
pub use message::Message;
pub use upstream::{Answer, Upstream};
pub use wire::Wire;

use std::time::{Duration, Instant};

/// How long a test waits for something that comes at once unless it never comes.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// Waits until something is so, which is asked again and again.
#[track_caller]
pub fn until(mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "it never came to be");
        std::thread::yield_now();
    }
}
