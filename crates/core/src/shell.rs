//! One counter shared by threads.
//!
//! The algorithms in [`rate`](crate::rate) are plain steps. A shell keeps the state of one counter and
//! applies the steps so that threads may call it at once:
//!
//! | shell | for | how |
//! |---|---|---|
//! | [`AtomicDue`] | token bucket, leaky bucket, smooth | one atomic word, compare-and-swap |
//! | [`Locked`] | every algorithm | a mutex around the state |
//!
//! **Rules come and go, the state stays.** A shell is asked with the rule to apply, and the rule is
//! [enrolled](Enrolled) first. When the operator changes a quota, the new rule is enrolled beside the
//! old one; whoever still holds the old one goes on using it, whoever holds the new one finds the state
//! written under the old, and re-expresses it with the units consumed. Nobody waits for the change.

mod atomic_due;
mod lives;
mod locked;
mod resets;
mod roster;

pub use atomic_due::AtomicDue;
pub(crate) use lives::Lives;
pub use locked::Locked;
pub(crate) use locked::Written;
pub(crate) use resets::Resets;
pub use roster::{Enrolled, Fine, Packed};
pub(crate) use roster::{Roster, Writer};
