//! Whether an endpoint can be connected to.
//!
//! A host that drops packets costs every request that tries it the whole `connect_timeout`. So one attempt at a time
//! finds out, and while it has not, requests go to the other endpoints:
//!
//! | the last attempt to connect | requests go there                                  | it is tried again      |
//! |-----------------------------|----------------------------------------------------|------------------------|
//! | succeeded                   | by load                                            |                        |
//! | none has ended yet          | the first; more only if all others are no better   | by that request        |
//! | failed                      | only if all others have failed too                 | every second, by a worker, not by a request |
//!
//! An attempt that its request gave up counts as failed if it had been waited for long enough to tell.

use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::ticks::Ticks;

/// How long after a failure an endpoint is tried again, in milliseconds.
const TRIED_AFTER: u64 = 1_000;

/// An attempt that is given up before this part of `connect_timeout` has passed says nothing: a connection across the
/// world takes longer than a moment.
const TELLING_PART: u32 = 4;

/// What is known of an endpoint, the best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Standing {
    /// It was connected to, or nothing speaks against trying.
    Ready,
    /// An attempt has not ended, and it has never been connected to.
    Trying,
    /// The last attempt failed.
    Failed,
}

// How the last attempt ended; 0 while none has.
const CONNECTED: u8 = 1;
const FAILED: u8 = 2;

/// What is known of an endpoint. Relaxed throughout: it guards nothing, and a request that sees it late tries in vain.
#[derive(Debug, Default)]
pub(super) struct Reachability {
    last: AtomicU8,
    trying: AtomicUsize,
    /// When it is tried again after a failure, in ticks.
    next_try: AtomicU64,
}

impl Reachability {
    pub(super) fn standing(&self) -> Standing {
        match self.last.load(Ordering::Relaxed) {
            CONNECTED => Standing::Ready,
            FAILED => Standing::Failed,
            _ if self.trying.load(Ordering::Relaxed) > 0 => Standing::Trying,
            _ => Standing::Ready,
        }
    }

    /// Begins to connect.
    pub(super) fn attempt<'a>(&'a self, ticks: &'a Ticks, connect_timeout: Duration) -> Attempt<'a> {
        self.trying.fetch_add(1, Ordering::Relaxed);
        let telling = connect_timeout / TELLING_PART;
        Attempt { of: self, ticks, began: Instant::now(), telling, has_ended: false }
    }

    pub(super) fn mark_connected(&self) {
        if self.last.load(Ordering::Relaxed) != CONNECTED {
            self.last.store(CONNECTED, Ordering::Relaxed);
        }
    }

    fn mark_failed(&self, now: u64) {
        self.next_try.store(now + TRIED_AFTER, Ordering::Relaxed);
        self.last.store(FAILED, Ordering::Relaxed);
    }

    /// Whether it is time to try again; of several that ask only the first is told so.
    pub(super) fn take_try(&self, now: u64) -> bool {
        if self.last.load(Ordering::Relaxed) != FAILED {
            return false;
        }
        let due = |next| (next <= now).then_some(now + TRIED_AFTER);
        self.next_try.fetch_update(Ordering::Relaxed, Ordering::Relaxed, due).is_ok()
    }
}

/// A connection that is being made.
#[derive(Debug)]
pub(super) struct Attempt<'a> {
    of: &'a Reachability,
    ticks: &'a Ticks,
    began: Instant,
    telling: Duration,
    has_ended: bool,
}

impl Attempt<'_> {
    pub(super) fn succeeded(mut self) {
        self.has_ended = true;
        self.of.mark_connected();
    }

    pub(super) fn failed(mut self) {
        self.has_ended = true;
        self.of.mark_failed(self.ticks.now());
    }
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        self.of.trying.fetch_sub(1, Ordering::Relaxed);
        if !self.has_ended && self.began.elapsed() >= self.telling {
            self.of.mark_failed(self.ticks.now());
        }
    }
}

#[cfg(test)]
mod tests {
    use tidegate_core::{Moment, WallTime};
    use tidegate_policy::Now;

    use super::*;

    fn at(millis: u64) -> Now {
        let nanos = millis * 1_000_000;
        Now { moment: Moment::from_nanos(nanos), wall: WallTime::from_unix_nanos(nanos) }
    }

    #[test]
    fn an_endpoint_is_marked_with_the_time_of_its_failure_and_tried_again_by_one() {
        let (reach, ticks) = (Reachability::default(), Ticks::new(at(0)));
        let attempt = reach.attempt(&ticks, Duration::from_secs(1));
        assert_eq!(reach.standing(), Standing::Trying);
        ticks.renew(at(5_000));
        attempt.failed();
        assert_eq!(reach.standing(), Standing::Failed);
        let tried = [5_999, 6_000, 6_000, 6_999, 7_000].map(|now| reach.take_try(now));
        assert_eq!(tried, [false, true, false, false, true]);
        reach.attempt(&ticks, Duration::from_secs(1)).succeeded();
        assert_eq!((reach.standing(), reach.take_try(9_000)), (Standing::Ready, false));
    }

    #[test]
    fn an_attempt_that_is_given_up_says_something_only_if_it_had_waited() {
        let (reach, ticks) = (Reachability::default(), Ticks::new(at(0)));
        drop(reach.attempt(&ticks, Duration::from_secs(1_000)));
        assert_eq!(reach.standing(), Standing::Ready);
        reach.mark_connected();
        drop(reach.attempt(&ticks, Duration::ZERO));
        assert_eq!(reach.standing(), Standing::Failed);
    }
}
