//! What the layer promises, with paused time and a service that does what it is told.

#![expect(unreachable_pub, reason = "nothing here is reached from outside")]
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up must fail")]

mod bodies;
mod cancelling;
mod carrying_out;
mod identifying;
mod outcomes;
mod policies;
mod readiness;
mod refusing;
mod settling;
mod sharing;
mod spelling;
mod support;
mod swapping;
mod telling;
mod turning;
