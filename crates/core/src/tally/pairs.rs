//! Two counts over the last stretch of time, shared by threads.
//!
//! The bucket of the present is one atomic word, `[second: 32 bits][first: 32 bits]`, so counting is one
//! addition and both counts are read together. The buckets of the past change only when a bucket ends;
//! their sum is a second word. Whoever comes first after the end of a bucket moves it to the past, behind a
//! mutex; all others pay a comparison. 32 bits last for 170 million a second in the widest bucket we allow.
//!
//! Orderings: each word is whole in itself and publishes no other memory, so all of them are relaxed. While
//! a bucket moves to the past, a reader may for an instant see it in neither word and so too few of both
//! counts; nothing is ever lost, since moving it *swaps* the word and later additions meet the empty one.
//! [`take`](Pairs::take), which must not be fooled, holds the mutex and therefore meets no move.

use std::time::Duration;

use crate::sync::{AtomicU64, Mutex, MutexGuard, Ordering, lock};
use crate::units::{Moment, nanos_of};

const SECOND: u64 = 1 << 32;
const FIRST: u64 = SECOND - 1;

/// The most buckets a window is cut into.
const MOST: usize = 32;

/// How many buckets are summed up, the present one included.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Keep {
    pub(crate) first: usize,
    pub(crate) second: usize,
}

impl Keep {
    /// Both counts over the same buckets: for shares that are estimated.
    pub(crate) const fn alike(buckets: usize) -> Self {
        Self { first: buckets, second: buckets }
    }

    /// The second count a bucket longer. The first then covers at most the window and the second at least
    /// the window, so a bound of the second by the first holds in the window itself.
    pub(crate) const fn strict(buckets: usize) -> Self {
        Self { first: buckets, second: buckets + 1 }
    }
}

/// Two counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pair {
    pub(crate) first: u64,
    pub(crate) second: u64,
}

impl Pair {
    #[inline]
    const fn unpack(word: u64) -> Self {
        Self { first: word & FIRST, second: word >> 32 }
    }

    fn packed(self) -> u64 {
        self.first.min(FIRST) | self.second.min(FIRST) << 32
    }

    #[inline]
    const fn plus(self, other: Self) -> Self {
        Self { first: self.first + other.first, second: self.second + other.second }
    }
}

#[derive(Debug)]
pub(crate) struct Pairs {
    width: u64,
    keep: Keep,
    /// When the present bucket began.
    start: AtomicU64,
    past: AtomicU64,
    present: AtomicU64,
    ring: Mutex<Ring>,
}

/// The buckets of the past, the latest last; older than needed ones are dropped.
#[derive(Debug)]
struct Ring {
    buckets: [u64; MOST],
    next: usize,
}

impl Pairs {
    /// Empty counts over `window`, which the first count covers in `keep.first` buckets; at most 31.
    pub(crate) fn new(window: Duration, keep: Keep, now: Moment) -> Self {
        let buckets = u64::try_from(keep.first.clamp(1, MOST - 1)).unwrap_or(1);
        let width = (nanos_of(window) / buckets).max(1);
        Self {
            width,
            keep,
            start: AtomicU64::new(now.nanos() - now.nanos() % width),
            past: AtomicU64::new(0),
            present: AtomicU64::new(0),
            ring: Mutex::new(Ring { buckets: [0; MOST], next: 0 }),
        }
    }

    /// Counts one of the first kind; returns what had been counted before it.
    #[inline]
    pub(crate) fn add_first(&self, now: Moment) -> Pair {
        self.add(now, 1)
    }

    /// Counts one of the second kind; returns what had been counted before it.
    #[inline]
    pub(crate) fn add_second(&self, now: Moment) -> Pair {
        self.add(now, SECOND)
    }

    /// What is counted at `now`.
    pub(crate) fn sums(&self, now: Moment) -> Pair {
        self.add(now, 0)
    }

    /// Counts one of the second kind if `allowed` says so, which no other taker can interfere with.
    pub(crate) fn take(&self, now: Moment, allowed: impl FnOnce(Pair) -> bool) -> bool {
        let mut ring = lock(&self.ring);
        self.turn_locked(&mut ring, now.nanos());
        let past = Pair::unpack(self.past.load(Ordering::Relaxed));
        let present = Pair::unpack(self.present.load(Ordering::Relaxed));
        let is_allowed = allowed(past.plus(present));
        if is_allowed {
            self.present.fetch_add(SECOND, Ordering::Relaxed);
        }
        is_allowed
    }

    #[inline]
    fn add(&self, now: Moment, word: u64) -> Pair {
        let start = self.start.load(Ordering::Relaxed);
        if now.nanos().wrapping_sub(start) >= self.width {
            self.turn(now.nanos());
        }
        let past = Pair::unpack(self.past.load(Ordering::Relaxed));
        past.plus(Pair::unpack(self.present.fetch_add(word, Ordering::Relaxed)))
    }

    #[cold]
    fn turn(&self, now: u64) {
        if !self.is_slightly_late(now, self.start.load(Ordering::Relaxed)) {
            self.turn_locked(&mut lock(&self.ring), now);
        }
    }

    fn turn_locked(&self, ring: &mut MutexGuard<'_, Ring>, now: u64) {
        let start = self.start.load(Ordering::Relaxed);
        let has_ended = now.wrapping_sub(start) >= self.width;
        if !has_ended || self.is_slightly_late(now, start) {
            return;
        }
        let ended = self.present.swap(0, Ordering::Relaxed);
        if now < start {
            **ring = Ring { buckets: [0; MOST], next: 0 };
        } else {
            ring.push(ended, (now - start) / self.width);
        }
        self.past.store(ring.sum(self.keep).packed(), Ordering::Relaxed);
        self.start.store(now - now % self.width, Ordering::Relaxed);
    }

    /// Before the present bucket, but within the window: it counts in the present bucket. Earlier than the
    /// window, the clock was set back.
    fn is_slightly_late(&self, now: u64, start: u64) -> bool {
        let window = self.width.saturating_mul(u64::try_from(self.keep.second).unwrap_or(u64::MAX));
        now < start && start - now < window
    }
}

impl Ring {
    /// Adds the bucket that ended `steps` buckets ago, and the empty ones after it; a whole round of them
    /// leaves nothing that would be summed up.
    fn push(&mut self, ended: u64, steps: u64) {
        let steps = usize::try_from(steps).unwrap_or(MOST).min(MOST);
        for step in 0..steps {
            self.buckets[self.next] = if step == 0 { ended } else { 0 };
            self.next = (self.next + 1) % MOST;
        }
    }

    fn sum(&self, keep: Keep) -> Pair {
        let back = |age: usize| Pair::unpack(self.buckets[(self.next + MOST - age) % MOST]);
        // The present bucket is one of those to keep, so one less of the past.
        let first = (1..keep.first).map(|age| back(age).first).sum();
        let second = (1..keep.second).map(|age| back(age).second).sum();
        Pair { first, second }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Moment {
        Moment::ORIGIN.plus(Duration::from_secs(seconds))
    }

    fn five_of_two_seconds(keep: Keep) -> Pairs {
        Pairs::new(Duration::from_secs(10), keep, at(0))
    }

    #[test]
    fn three_counts_leave_the_window_as_in_the_example_of_the_plain_tally() {
        let pairs = five_of_two_seconds(Keep::alike(5));
        for moment in [1, 3, 9] {
            pairs.add_first(at(moment));
            pairs.add_second(at(moment));
        }
        let sums = [9, 10, 13, 20].map(|moment| pairs.sums(at(moment)));
        assert_eq!(sums, [3, 2, 1, 0].map(|count| Pair { first: count, second: count }));
    }

    #[test]
    fn the_strict_count_stays_a_bucket_longer() {
        let pairs = five_of_two_seconds(Keep::strict(5));
        pairs.add_first(at(1));
        pairs.add_second(at(1));
        let sums = [9, 10, 11, 12].map(|moment| pairs.sums(at(moment)));
        assert_eq!(sums.map(|pair| pair.first), [1, 0, 0, 0]);
        assert_eq!(sums.map(|pair| pair.second), [1, 1, 1, 0]);
    }

    #[test]
    fn a_clock_that_jumps_ahead_and_back_does_not_freeze_the_window() {
        let pairs = five_of_two_seconds(Keep::alike(5));
        for moment in [1, 3_601, 2] {
            pairs.add_first(at(moment));
        }
        assert_eq!(pairs.sums(at(2)).first, 1);
        assert_eq!(pairs.sums(at(1)).first, 1);
        assert_eq!(pairs.sums(at(12)).first, 0);
    }

    #[test]
    fn what_is_taken_counts_only_when_it_was_allowed() {
        let pairs = five_of_two_seconds(Keep::strict(5));
        let one = |pair: Pair| pair.second < 1;
        assert!(pairs.take(at(0), one) && !pairs.take(at(11), one) && pairs.take(at(12), one));
    }
}
