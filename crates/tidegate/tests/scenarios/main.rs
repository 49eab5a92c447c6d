//! The scenarios over real sockets: the load generator, the gateway as users run it, and a service of known capacity.
//!
//! Each file of `scenarios/` is played to the service itself, which must fail as the file says, and to a gateway with the
//! file's policy, which must reach what the file asks for. They need the machine for themselves and an optimised build:
//! `cargo test --release -p tidegate --test scenarios`. Five of them, in [`short`], are part of every change
//! (`cargo xtask test scenarios`); the others, in [`long`], of `cargo xtask endurance`.

#![expect(unreachable_pub, reason = "nothing here is reached from outside")]
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot be set up must fail")]

mod choice;
mod long;
mod play;
mod probe;
mod short;

#[allow(dead_code, unused_imports, reason = "these tests use a part of the support")]
#[path = "../gateway"]
mod gateway {
    pub mod support;
}

#[allow(dead_code, reason = "these tests use a part of it")]
#[path = "../endurance/vitals.rs"]
mod vitals;

#[allow(dead_code, reason = "these tests use a part of it")]
#[path = "../run/operated.rs"]
mod operated;
