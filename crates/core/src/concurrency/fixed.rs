//! A limit that does not adapt.

use super::algorithm::{LimitAlgorithm, Proposal, Reading};
use super::change::Why;

/// Keeps the limit where the operator put it. For a service whose capacity is known and does not change;
/// when it does change, nobody notices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fixed;

impl LimitAlgorithm for Fixed {
    fn name(&self) -> &'static str {
        "fixed"
    }

    fn propose(&mut self, reading: &Reading<'_>) -> Proposal {
        reading.hold(Why::Fixed)
    }
}
