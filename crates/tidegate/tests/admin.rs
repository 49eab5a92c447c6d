//! The admin API over real sockets, in front of a real gate.

#![expect(clippy::unwrap_used, clippy::panic, reason = "what helps a test fails with it")]

#[path = "admin/access.rs"]
mod access;
#[path = "admin/changing.rs"]
mod changing;
#[path = "admin/crowding.rs"]
mod crowding;
#[path = "admin/ctl.rs"]
mod ctl;
#[path = "admin/documented.rs"]
mod documented;
#[path = "admin/http.rs"]
mod http;
#[path = "admin/looking.rs"]
mod looking;
#[path = "admin/overload.rs"]
mod overload;
#[path = "admin/published.rs"]
mod published;
#[path = "admin/station.rs"]
mod station;
#[path = "admin/streaming.rs"]
mod streaming;
