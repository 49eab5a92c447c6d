//! The gateway as its users meet it: the real binary, real sockets, on this machine alone.

#![expect(unreachable_pub, reason = "nothing here is reached from outside")]
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up must fail")]
#![expect(clippy::panic, reason = "a test that cannot be set up must fail")]

mod access_log;
mod answers;
mod bad_input;
mod beside;
mod client_address;
mod concurrency;
mod costs;
#[allow(dead_code, reason = "these tests use a part of it")]
#[path = "../endurance/frames.rs"]
mod frames;
mod grpc;
mod h2;
mod heads;
mod holding;
mod hops;
mod keys;
mod leaving;
mod lifecycle;
mod limits;
mod overload;
mod quick_start;
mod rates;
mod semantics;
mod smuggling;
mod stalled;
mod support;
mod telling;
mod tls;
mod unreachable;
mod unread;
mod upstream_failures;
mod websocket;
