//! The edge where every request can see it.
//!
//! The word is `[retry: 32 bits of milliseconds][edge: 16 bits]`. A decision is one load and a comparison;
//! whoever steers stores a new word once a tick. Edge and retry are read together, so nobody is told the
//! new wait for the old edge. No other memory is published through the word, so relaxed ordering is enough:
//! a thread may see an edge a moment late, as it may a tick.

use std::time::Duration;

use super::{Cohort, Edge};
use crate::sync::{AtomicU64, Ordering};
use crate::units::Criticality;
use crate::verdict::{Reason, Retry, Verdict};

const EDGE_BITS: u32 = 16;

/// The edge shared by threads: many ask, one steers.
///
/// ```
/// use std::time::Duration;
/// use tidegate_core::Criticality;
/// use tidegate_core::shed::{Cohort, Edge, Epoch, SharedEdge};
///
/// let shared = SharedEdge::new();
/// let cohort = Cohort::of(b"ann", Epoch(1));
/// assert!(shared.decide(Criticality::Sheddable, cohort).is_admit());
/// shared.publish(Edge::new(128)?, Duration::from_secs(2));
/// assert!(!shared.decide(Criticality::Sheddable, cohort).is_admit());
/// assert!(shared.decide(Criticality::SheddablePlus, cohort).is_admit());
/// # Ok::<(), tidegate_core::Invalid>(())
/// ```
#[derive(Debug)]
pub struct SharedEdge {
    word: AtomicU64,
}

impl Default for SharedEdge {
    fn default() -> Self {
        Self::new()
    }
}

impl SharedEdge {
    /// Everybody passes.
    #[must_use]
    pub fn new() -> Self {
        Self { word: AtomicU64::new(0) }
    }

    /// Whether this criticality and cohort pass.
    #[inline]
    pub fn decide(&self, criticality: Criticality, cohort: Cohort) -> Verdict<()> {
        let word = self.word.load(Ordering::Relaxed);
        if edge(word).admits(criticality, cohort) {
            return Verdict::Admit(());
        }
        let retry = Duration::from_millis(word >> EDGE_BITS);
        Verdict::refuse(Reason::Shed, Retry::After(retry))
    }

    /// Whether everybody passes.
    #[inline]
    #[must_use]
    pub fn is_open(&self) -> bool {
        edge(self.word.load(Ordering::Relaxed)) == Edge::OPEN
    }

    /// The edge as it is now.
    #[must_use]
    pub fn edge(&self) -> Edge {
        edge(self.word.load(Ordering::Relaxed))
    }

    /// Moves the edge, and says after what time those refused may try again: hardly before the next tick.
    pub fn publish(&self, edge: Edge, retry: Duration) {
        let retry = u32::try_from(retry.as_millis()).unwrap_or(u32::MAX);
        self.word.store(u64::from(retry) << EDGE_BITS | u64::from(edge.ranks()), Ordering::Relaxed);
    }
}

const fn edge(word: u64) -> Edge {
    Edge::clamped(word & ((1 << EDGE_BITS) - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_published_is_what_everybody_meets() {
        let shared = SharedEdge::default();
        for ranks in [0, 1, 127, 128, 300, 512] {
            let edge = Edge::new(ranks).unwrap();
            shared.publish(edge, Duration::from_millis(1_500));
            assert_eq!(shared.edge(), edge);
            for (level, cohort) in
                Criticality::ALL.into_iter().flat_map(|level| Cohort::all().map(move |c| (level, c)))
            {
                let retry = Retry::After(Duration::from_millis(1_500));
                let refusal = Verdict::refuse(Reason::Shed, retry);
                let expected = if edge.admits(level, cohort) { Verdict::Admit(()) } else { refusal };
                assert_eq!(shared.decide(level, cohort), expected);
            }
        }
    }

    #[test]
    fn a_wait_beyond_the_word_is_cut_and_does_not_touch_the_edge() {
        let shared = SharedEdge::new();
        shared.publish(Edge::new(1).unwrap(), Duration::MAX);
        assert_eq!(shared.edge().ranks(), 1);
        let longest = Retry::After(Duration::from_millis(u32::MAX.into()));
        let lowest = Cohort::all().next().unwrap();
        assert_eq!(shared.decide(Criticality::Sheddable, lowest), Verdict::refuse(Reason::Shed, longest));
    }
}
