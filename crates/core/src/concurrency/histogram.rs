//! Latencies by rank, in constant space.
//!
//! A median needs all values or a picture of them. Ours counts values in 16 steps to each doubling, from
//! 1 µs to 275 s, so a quantile is within 1/16 of the truth whatever the scale, and adding a value is one
//! increment. What is shorter or longer counts as the shortest or longest there is.

use std::time::Duration;

use crate::units::nanos_of;

/// Steps to a doubling, as a power of two.
const STEP_BITS: u32 = 4;
const STEPS: usize = 1 << STEP_BITS;
/// 2^10 ns is 1 µs: what is faster needs no adaptive limit.
const FIRST_DOUBLING: u32 = 10;
/// 2^38 ns is 275 s: longer than any timeout that a caller waits for.
const LAST_DOUBLING: u32 = 38;
const BUCKETS: usize = (LAST_DOUBLING - FIRST_DOUBLING) as usize * STEPS;

/// How often each latency was seen.
#[derive(Clone, Debug)]
pub(crate) struct Histogram {
    counts: [u32; BUCKETS],
    count: u32,
    sum: u64,
    min: u64,
    max: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { counts: [0; BUCKETS], count: 0, sum: 0, min: u64::MAX, max: 0 }
    }
}

impl Histogram {
    pub(crate) fn add(&mut self, latency: Duration) {
        let nanos = nanos_of(latency);
        self.counts[index(nanos)] = self.counts[index(nanos)].saturating_add(1);
        self.count = self.count.saturating_add(1);
        self.sum = self.sum.saturating_add(nanos);
        self.min = self.min.min(nanos);
        self.max = self.max.max(nanos);
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.counts.iter_mut().zip(&other.counts) {
            *mine = mine.saturating_add(*theirs);
        }
        self.count = self.count.saturating_add(other.count);
        self.sum = self.sum.saturating_add(other.sum);
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    pub(crate) fn mean(&self) -> Option<Duration> {
        self.sum.checked_div(u64::from(self.count)).map(Duration::from_nanos)
    }

    pub(crate) fn min(&self) -> Option<Duration> {
        (self.count > 0).then_some(Duration::from_nanos(self.min))
    }

    pub(crate) fn median(&self) -> Option<Duration> {
        let mut rank = self.count.checked_sub(1)? / 2; // this many are smaller
        for (bucket, &count) in (0_u32..).zip(&self.counts) {
            if rank < count {
                // Inside a bucket the values are taken to lie evenly; no further out than those seen.
                let (low, width) = extent(bucket);
                let into = width * (2 * u64::from(rank) + 1) / (2 * u64::from(count));
                return Some(Duration::from_nanos((low + into).clamp(self.min, self.max)));
            }
            rank -= count;
        }
        None
    }
}

fn index(nanos: u64) -> usize {
    let nanos = nanos.clamp(1 << FIRST_DOUBLING, (1 << LAST_DOUBLING) - 1);
    let doubling = nanos.ilog2();
    let step = usize::try_from(nanos >> (doubling - STEP_BITS)).unwrap_or(0) % STEPS;
    (doubling - FIRST_DOUBLING) as usize * STEPS + step
}

/// Where a bucket begins and how wide it is.
const fn extent(bucket: u32) -> (u64, u64) {
    let width = 1 << (FIRST_DOUBLING - STEP_BITS + (bucket >> STEP_BITS));
    let step = (bucket as u64) % STEPS as u64;
    ((STEPS as u64 + step) * width, width)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(millis: &[u64]) -> Histogram {
        let mut histogram = Histogram::default();
        for &value in millis {
            histogram.add(Duration::from_millis(value));
        }
        histogram
    }

    #[test]
    fn the_median_is_within_a_sixteenth_at_every_scale() {
        for scale in [1_000, 1_000_000, 50_000_000, 1_000_000_000] {
            let mut histogram = Histogram::default();
            for value in 1..=999 {
                histogram.add(Duration::from_nanos(value * scale / 10));
            }
            let (is, truth) = (nanos_of(histogram.median().unwrap()), 50 * scale);
            assert!(is.abs_diff(truth) * 16 <= truth, "{is} for {truth}");
        }
    }

    #[test]
    fn equal_values_are_reported_exactly_and_extremes_count_as_the_last_bucket() {
        assert_eq!(of(&[10; 7]).median(), Some(Duration::from_millis(10)));
        assert_eq!(of(&[0; 3]).median(), Some(Duration::ZERO));
        assert_eq!(of(&[9_000_000]).median(), Some(Duration::from_secs(9_000)));
        assert_eq!(of(&[]).median(), None);
        assert_eq!((of(&[]).mean(), of(&[]).min()), (None, None));
    }

    #[test]
    fn merged_pictures_are_the_picture_of_all() {
        let mut merged = of(&[1, 2, 30]);
        merged.merge(&of(&[4, 500]));
        let all = of(&[1, 2, 30, 4, 500]);
        assert_eq!((merged.median(), merged.mean(), merged.min()), (all.median(), all.mean(), all.min()));
        assert_eq!(merged.count, 5);
    }

    #[test]
    fn every_bucket_ends_where_the_next_begins() {
        for bucket in 0..u32::try_from(BUCKETS).unwrap() {
            let (low, width) = extent(bucket);
            assert_eq!((index(low), index(low + width - 1)), (bucket as usize, bucket as usize));
        }
    }
}
