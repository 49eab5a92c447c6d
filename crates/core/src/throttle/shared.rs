//! The throttle's counts, shared by threads.
//!
//! Asking costs one addition to a counter and a few loads; the counts of the past are summed up already
//! ([`Pairs`]). Orderings: all relaxed. The counts are estimates by nature, and every word is whole in
//! itself.

use std::time::Duration;

use super::{Seen, ThrottleRule};
use crate::permit::Outcome;
use crate::sync::{AtomicU64, Ordering};
use crate::tally::{Keep, Pair, Pairs};
use crate::units::{Criticality, Moment, Ratio, Roll, nanos_of};
use crate::verdict::{Reason, Retry, Verdict};

/// Two minutes are forgotten five seconds at a time.
const BUCKETS: usize = 24;

/// Nothing of this kind has happened.
const NEVER: u64 = u64::MAX;

/// What the other side made of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Answer {
    /// It did the work, or tried to.
    Accepted,
    /// It said that it was overloaded, or it did not answer at all.
    Refused,
}

impl From<Outcome> for Answer {
    /// Only what was overloaded is refused. A time-out or a failed connection is no answer: for the
    /// throttle, tell it as [`Answer::Refused`], whatever outcome it is elsewhere. What was abandoned
    /// says nothing against the other side.
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Ok | Outcome::Failed | Outcome::Abandoned => Self::Accepted,
            Outcome::Overloaded => Self::Refused,
        }
    }
}

/// A throttle in front of one service, shared by threads.
///
/// ```
/// use tidegate_core::throttle::{Answer, Throttle, ThrottleRule};
/// use tidegate_core::{Criticality, Moment, Reason, Roll};
///
/// let (level, now, roll) = (Criticality::Critical, Moment::ORIGIN, Roll::new(0.4)?);
/// let throttle = Throttle::new(ThrottleRule::default(), now);
/// assert!(throttle.admit(level, now, roll).is_admit());
/// throttle.answered(level, now, Answer::Refused);
/// assert!(throttle.admit(level, now, roll).is_admit()); // the first that passes as a probe
/// let refusal = throttle.admit(level, now, roll).refusal().expect("two requests, none accepted: p is 2/3");
/// assert_eq!(refusal.reason, Reason::Throttled);
/// # Ok::<(), tidegate_core::Invalid>(())
/// ```
#[derive(Debug)]
pub struct Throttle {
    rule: ThrottleRule,
    levels: [Level; 4],
}

/// One criticality. Threads that work on different ones do not fight over a cache line.
#[derive(Debug)]
#[repr(align(128))]
struct Level {
    counts: Pairs,
    /// When the other side last refused.
    refused: AtomicU64,
    /// When a request last passed against the odds.
    probed: AtomicU64,
}

impl Throttle {
    /// A throttle that has seen nothing.
    #[must_use]
    pub fn new(rule: ThrottleRule, now: Moment) -> Self {
        let level = |()| Level {
            counts: Pairs::new(rule.terms().window, Keep::alike(BUCKETS), now),
            refused: AtomicU64::new(NEVER),
            probed: AtomicU64::new(NEVER),
        };
        Self { rule, levels: [(); 4].map(level) }
    }

    /// Counts a request and says whether it may be sent.
    #[inline]
    pub fn admit(&self, criticality: Criticality, now: Moment, roll: Roll) -> Verdict<()> {
        let level = &self.levels[criticality.index()];
        let before = level.counts.add_first(now);
        if !self.has_refused(level, now) || !self.rule.refuses(seen(before), roll) {
            return Verdict::Admit(());
        }
        self.probe(level, now)
    }

    /// Learns what the other side made of a request that was sent.
    #[inline]
    pub fn answered(&self, criticality: Criticality, now: Moment, answer: Answer) {
        let level = &self.levels[criticality.index()];
        match answer {
            Answer::Accepted => {
                level.counts.add_second(now);
            }
            Answer::Refused => level.refused.store(now.nanos().min(NEVER - 1), Ordering::Relaxed),
        }
    }

    /// What this criticality has seen.
    pub fn seen(&self, criticality: Criticality, now: Moment) -> Seen {
        seen(self.levels[criticality.index()].counts.sums(now))
    }

    /// With which probability a request of this criticality is refused now.
    pub fn probability(&self, criticality: Criticality, now: Moment) -> Ratio {
        let level = &self.levels[criticality.index()];
        let sums = level.counts.sums(now);
        if !self.has_refused(level, now) {
            return Ratio::ZERO;
        }
        let probability = self.rule.probability(seen(sums));
        let ceiling = self.rule.terms().ceiling;
        if probability > ceiling { ceiling } else { probability }
    }

    #[inline]
    fn has_refused(&self, level: &Level, now: Moment) -> bool {
        let refused = level.refused.load(Ordering::Relaxed);
        // A refusal from the future was written before the clock was set back, and is over.
        refused != NEVER && now.nanos().wrapping_sub(refused) < nanos_of(self.rule.terms().window)
    }

    /// Refused by the odds; but one passes if none has done so for long enough.
    fn probe(&self, level: &Level, now: Moment) -> Verdict<()> {
        let every = nanos_of(self.rule.terms().probe_every);
        let probed = level.probed.load(Ordering::Relaxed);
        // A last probe in the future, too: the clock was set back, and nobody shall wait for it to return.
        let is_due = probed == NEVER || now.nanos().wrapping_sub(probed) >= every;
        let swap = |new| level.probed.compare_exchange(probed, new, Ordering::Relaxed, Ordering::Relaxed);
        if is_due && swap(now.nanos().min(NEVER - 1)).is_ok() {
            return Verdict::Admit(());
        }
        let passed = now.nanos().saturating_sub(probed);
        let after = Duration::from_nanos(every.saturating_sub(passed));
        Verdict::refuse(Reason::Throttled, Retry::After(after))
    }
}

const fn seen(counts: Pair) -> Seen {
    Seen { requests: counts.first, accepts: counts.second }
}
