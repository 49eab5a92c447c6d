//! Counts over the last stretch of time, in buckets.
//!
//! "How many failed in the last ten seconds" asks for the moment of every failure. That grows with the
//! traffic, and it is traffic we want to survive. So time is cut into buckets of equal width and each
//! bucket keeps one count. The window moves on by whole buckets: what is forgotten is forgotten a bucket at
//! a time, and the sum always covers between one bucket less than the window and the whole of it.
//!
//! A window of 10 s in 5 buckets of 2 s, one count each at 1 s, 3 s and 9 s:
//!
//! | asked at | buckets that count | sum |
//! |----------|--------------------|-----|
//! | 9 s      | 0 s to 10 s        | 3   |
//! | 10 s     | 2 s to 12 s        | 2   |
//! | 13 s     | 4 s to 14 s        | 1   |
//! | 20 s     | 12 s to 22 s       | 0   |
//!
//! Clocks misbehave. A moment a little before the newest bucket counts in the newest one: two threads read
//! the clock in one order and arrived in the other. A moment before the whole window means that the clock
//! was set back, and what was counted belongs to no time we could name any more: it is forgotten. Otherwise
//! a clock that jumped an hour ahead and back again would freeze the window for that hour.

use std::time::Duration;

use crate::units::{Moment, nanos_of};

mod pairs;

pub(crate) use pairs::{Keep, Pair, Pairs};

/// `N` counts over the last buckets.
#[derive(Clone, Debug)]
pub(crate) struct Tally<const N: usize> {
    width: u64,
    newest: u64,
    /// When the newest bucket began and where it lies: knowing both spares two divisions each time.
    start: u64,
    slot: usize,
    /// The bucket with the number `n` lies at `n` modulo their count.
    buckets: Box<[[u64; N]]>,
    sums: [u64; N],
}

impl<const N: usize> Tally<N> {
    /// An empty tally over `window`, in this many buckets; both are at least one.
    pub(crate) fn new(window: Duration, buckets: usize, now: Moment) -> Self {
        let buckets = vec![[0; N]; buckets.max(1)].into_boxed_slice();
        let width = (nanos_of(window) / len(&buckets)).max(1);
        let mut tally = Self { width, newest: 0, start: 0, slot: 0, buckets, sums: [0; N] };
        tally.turn_to(now.nanos() / width);
        tally
    }

    /// Counts these at `now`; returns what counts then.
    pub(crate) fn add(&mut self, now: Moment, counts: [u64; N]) -> [u64; N] {
        self.turn(now);
        let bucket = &mut self.buckets[self.slot];
        for (index, count) in counts.into_iter().enumerate() {
            bucket[index] += count;
            self.sums[index] += count;
        }
        self.sums
    }

    /// What counts at `now`.
    pub(crate) fn sums(&mut self, now: Moment) -> [u64; N] {
        self.turn(now);
        self.sums
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.buckets.fill([0; N]);
        self.sums = [0; N];
    }

    #[inline]
    fn turn(&mut self, now: Moment) {
        if now.nanos().wrapping_sub(self.start) >= self.width {
            self.turn_to(now.nanos() / self.width);
        }
    }

    fn turn_to(&mut self, bucket: u64) {
        if bucket.abs_diff(self.newest) >= len(&self.buckets) {
            self.clear();
            self.newest = bucket;
        }
        while self.newest < bucket {
            self.newest += 1;
            let slot = self.slot_of(self.newest);
            for (sum, count) in self.sums.iter_mut().zip(self.buckets[slot]) {
                *sum -= count;
            }
            self.buckets[slot] = [0; N];
        }
        self.start = self.newest * self.width;
        self.slot = self.slot_of(self.newest);
    }

    fn slot_of(&self, bucket: u64) -> usize {
        usize::try_from(bucket % len(&self.buckets)).unwrap_or(0)
    }
}

fn len<T>(slice: &[T]) -> u64 {
    u64::try_from(slice.len()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Moment {
        Moment::ORIGIN.plus(Duration::from_secs(seconds))
    }

    fn counted(moments: &[u64]) -> Tally<1> {
        let mut tally = Tally::new(Duration::from_secs(10), 5, at(0));
        for &moment in moments {
            tally.add(at(moment), [1]);
        }
        tally
    }

    #[test]
    fn three_counts_leave_the_window_as_in_the_example() {
        let mut tally = counted(&[1, 3, 9]);
        let sums = [9, 10, 13, 20].map(|moment| tally.sums(at(moment))[0]);
        assert_eq!(sums, [3, 2, 1, 0]);
    }

    #[test]
    fn a_moment_a_little_late_counts_in_the_newest_bucket() {
        let mut tally = counted(&[11, 5]);
        assert_eq!(tally.sums(at(19)), [2]);
        assert_eq!(tally.sums(at(20)), [0]);
    }

    #[test]
    fn a_clock_that_jumps_ahead_and_back_does_not_freeze_the_window() {
        let mut tally = counted(&[1, 3_601, 2]);
        assert_eq!(tally.sums(at(2)), [1]);
        assert_eq!(tally.sums(at(12)), [0]);
    }
}
