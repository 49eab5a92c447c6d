//! `tidegate run` as operators meet it: the real binary with its files, its signals and its admin API.

#![expect(unreachable_pub, reason = "nothing here is reached from outside")]
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot be set up must fail")]

mod admin;
mod draining;
mod files;
#[allow(dead_code, reason = "these tests use a part of it")]
#[path = "../endurance/frames.rs"]
mod frames;
mod heads;
mod judging;
mod metrics;
mod operated;
mod ordered;
mod overload;
mod process;
#[path = "../admin/published.rs"]
mod published;
#[allow(dead_code, reason = "these tests use a part of it")]
#[path = "../gateway/heads/raw.rs"]
mod raw;
mod reload;
mod sent;
mod starting;
mod systemd;
mod traffic;
mod tutorial;

#[allow(dead_code, unused_imports, reason = "these tests use a part of the support")]
#[path = "../gateway"]
mod gateway {
    pub mod support;
}
