//! Our shedder: the edge that every request meets.

use std::time::Duration;

use tidegate_core::shed::{Cohort, Edge, Epoch, SharedEdge};
use tidegate_core::{Criticality, Moment};

use super::driven::Mechanism;
use crate::contender::Mode;

/// Finds the user's cohort and asks whether it passes.
pub(crate) struct Shed(SharedEdge);

impl Shed {
    pub(crate) fn new(mode: Mode) -> Self {
        let edge = SharedEdge::new();
        edge.publish(
            match mode {
                Mode::Admitting => Edge::OPEN,
                Mode::Refusing => Edge::SHUT,
            },
            Duration::from_secs(1),
        );
        Self(edge)
    }
}

impl Mechanism for Shed {
    #[inline]
    fn serve(&self, _clock: impl FnMut() -> Moment) -> bool {
        self.0.decide(Criticality::Sheddable, Cohort::of(b"ann", Epoch(1))).is_admit()
    }
}
