//! Traffic on its way back: a share of it, doubling while all goes well.

use std::time::Duration;

use super::rule::Recovery;
use crate::units::share::{WHOLE, is_at_least, millionths};
use crate::units::{Moment, Ratio};

#[derive(Clone, Copy, Debug)]
pub(super) struct Return {
    terms: Recovery,
    /// In millionths.
    share: u64,
    /// When the interval under way began, and what it has seen.
    since: Moment,
    requests: u64,
    bad: u64,
}

/// Where it leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Course {
    On,
    Trip,
    Close,
}

impl Return {
    pub(super) fn begin(terms: Recovery, now: Moment) -> Self {
        Self { terms, share: millionths(terms.first), since: now, requests: 0, bad: 0 }
    }

    /// The share that may pass.
    pub(super) fn ratio(&self) -> Ratio {
        Ratio::new(self.share as f64 / WHOLE as f64).unwrap_or(Ratio::ONE)
    }

    /// How long until the share may grow.
    pub(super) const fn left(&self, now: Moment) -> Duration {
        self.terms.interval.saturating_sub(now.since(self.since))
    }

    pub(super) fn count(&mut self, is_bad: bool) {
        self.requests += 1;
        self.bad += u64::from(is_bad);
    }

    /// Draws the conclusions that time or the latest result allow. `failure` is the ratio that trips.
    pub(super) fn look(&mut self, now: Moment, failure: u64) -> Course {
        // From the future: the clock was set back, and the interval starts again.
        self.since = self.since.min(now);
        let has_enough = self.requests >= u64::from(self.terms.min_requests);
        if has_enough && is_at_least(self.bad, self.requests, failure) {
            return Course::Trip;
        }
        // Few results, all of them good, are enough to go on: a quiet service must come back too.
        let can_judge = has_enough || (self.requests > 0 && self.bad == 0);
        if self.share < WHOLE && (!can_judge || self.left(now) > Duration::ZERO) {
            return Course::On;
        }
        let is_poor = is_at_least(self.bad, self.requests, (failure / 2).max(1));
        if !is_poor {
            self.share = (self.share * 2).min(WHOLE);
        }
        (self.since, self.requests, self.bad) = (now, 0, 0);
        if self.share == WHOLE { Course::Close } else { Course::On }
    }
}
