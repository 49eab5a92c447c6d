//! The gateway under strain: many connections, much data, callers and upstreams that behave badly. Each test runs the
//! real binary and says what it may cost at most, in memory, in time, or in places that stay taken.

#![expect(unreachable_pub, reason = "nothing here is reached from outside")]
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot be set up must fail")]

mod aborts;
mod bulk;
mod crowds;
mod dice;
mod ending;
mod fickle_upstream;
mod floods;
#[allow(dead_code, reason = "these tests use a part of it")]
mod frames;
mod hostile_keys;
mod idle;
#[allow(dead_code, reason = "these tests use a part of it")]
#[path = "../run/operated.rs"]
mod operated;
mod regular;
mod slowness;
mod untaken;
mod vitals;

#[allow(dead_code, unused_imports, reason = "these tests use a part of the support")]
#[path = "../gateway"]
mod gateway {
    pub mod support;
}
