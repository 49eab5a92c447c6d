//! A histogram of durations with a bounded relative error.
//!
//! For a time-out it does not matter whether the slowest thousandth took 100 ms or 101 ms; it does matter
//! that 1 ms and 10 s fit the same table. So buckets grow with what they hold: each doubling is cut into
//! 32 of equal width, and a duration is known up to 1/32 of itself.
//!
//! In units of 1024 ns, about a microsecond: 20 ms are 19 531 units, which have 15 bits. The five bits
//! after the leading one name the bucket, and it is 2⁹ = 512 units wide:
//!
//! ```text
//! 19 531 = 0b1_00110_001001011      bucket from 0b1_00110_000000000 = 19 456 up to 19 967
//!                                   reported: the last of it, 19 967 units = 20.45 ms, which is 2.2 % above 20 ms
//! ```
//!
//! Below 32 units each has its own bucket. From 2³¹ units, about 37 minutes, all share the last. A
//! quantile is reported as the end of its bucket, so it is never too short, and too long by less than
//! 1/32.

use std::time::Duration;

use crate::units::nanos_of;

/// A unit is 2¹⁰ ns: response times below a microsecond need no time-out.
const UNIT_BITS: u32 = 10;
const STEP_BITS: u32 = 5;
const STEPS: u64 = 1 << STEP_BITS;
/// Units have at most this many bits.
const MOST_BITS: u32 = 31;
/// A bucket for each small number of units, 32 for each further bit.
const BUCKETS: usize = ((MOST_BITS - STEP_BITS + 1) as usize) << STEP_BITS;

/// How many durations of each length there were. Its size is fixed: 864 counts.
///
/// ```
/// use std::time::Duration;
/// use tidegate_core::timeout::Latencies;
///
/// let mut latencies = Latencies::default();
/// (1..=100).for_each(|millis| latencies.record(Duration::from_millis(millis)));
/// let median = Latencies::at_rank(&[&latencies], 50).expect("there are a hundred");
/// assert!(median >= Duration::from_millis(50) && median < Duration::from_millis(52));
/// ```
#[derive(Clone, Debug)]
pub struct Latencies {
    counts: Box<[u32; BUCKETS]>,
    count: u64,
}

impl Default for Latencies {
    fn default() -> Self {
        Self { counts: Box::new([0; BUCKETS]), count: 0 }
    }
}

impl Latencies {
    /// Counts one duration.
    pub fn record(&mut self, duration: Duration) {
        let count = &mut self.counts[bucket(duration)];
        // At four thousand million alike a count stands still, and with it the total.
        if let Some(more) = count.checked_add(1) {
            *count = more;
            self.count += 1;
        }
    }

    /// How many durations were counted.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// The duration that has the place `rank`, counted from 1, among those of all histograms in order: at
    /// least what it was, and less than 1/32 above it. `None` when there are fewer.
    #[must_use]
    pub fn at_rank(histograms: &[&Self], rank: u64) -> Option<Duration> {
        let mut below = 0;
        (0..BUCKETS).find_map(|bucket| {
            below += histograms.iter().map(|histogram| u64::from(histogram.counts[bucket])).sum::<u64>();
            (below >= rank.max(1)).then(|| end_of(bucket))
        })
    }

    /// Adds what another histogram counted.
    pub fn merge(&mut self, other: &Self) {
        for (count, more) in self.counts.iter_mut().zip(other.counts.iter()) {
            let sum = count.saturating_add(*more);
            self.count += u64::from(sum - *count);
            *count = sum;
        }
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.counts.fill(0);
        self.count = 0;
    }
}

fn bucket(duration: Duration) -> usize {
    let units = (nanos_of(duration) >> UNIT_BITS).min((1 << MOST_BITS) - 1);
    if units < STEPS {
        return usize::try_from(units).unwrap_or(0);
    }
    // The bits beyond the leading six only refine the place within the bucket.
    let shift = units.ilog2() - STEP_BITS;
    let step = u64::from(shift) * STEPS + (units >> shift);
    usize::try_from(step).unwrap_or(BUCKETS - 1).min(BUCKETS - 1)
}

/// The longest duration of a bucket.
fn end_of(bucket: usize) -> Duration {
    let bucket = u64::try_from(bucket).unwrap_or(0);
    let units = if bucket < STEPS * 2 {
        bucket + 1
    } else {
        let shift = bucket / STEPS - 1;
        (bucket % STEPS + STEPS + 1) << shift
    };
    Duration::from_nanos((units << UNIT_BITS) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn twenty_milliseconds_lie_in_the_bucket_of_the_example() {
        let mut latencies = Latencies::default();
        latencies.record(Duration::from_millis(20));
        let reported = Latencies::at_rank(&[&latencies], 1).unwrap();
        assert_eq!(reported, Duration::from_nanos(((19_967 + 1) << 10) - 1));
        assert_eq!(reported.as_micros() / 10, 2_044);
    }

    #[test]
    fn a_reported_duration_is_never_too_short_and_less_than_a_32nd_too_long() {
        let longest = Duration::from_nanos((1 << 41) - 1);
        let mut nanos: u64 = 1;
        while Duration::from_nanos(nanos) < longest {
            for duration in [nanos - 1, nanos, nanos + 1, nanos + nanos / 3].map(Duration::from_nanos) {
                let reported = end_of(bucket(duration));
                assert!(reported >= duration, "{duration:?} is reported as {reported:?}");
                let above = (reported - duration).as_nanos();
                assert!(above < 1_024 || above * 32 <= duration.as_nanos(), "{duration:?}: {above} ns above");
            }
            nanos *= 2;
        }
        assert_eq!(end_of(bucket(Duration::MAX)), longest);
    }

    #[test]
    fn ranks_are_counted_over_several_histograms() {
        let [mut fast, mut slow] = [Latencies::default(), Latencies::default()];
        (0..9).for_each(|_| fast.record(Duration::from_millis(1)));
        slow.record(Duration::from_millis(900));
        let at = |rank| Latencies::at_rank(&[&fast, &slow], rank).map(|found| found.as_millis());
        assert_eq!((at(9), at(11)), (Some(1), None));
        assert!(at(10).unwrap() >= 900);
        fast.merge(&slow);
        assert_eq!(fast.count(), 10);
    }
}
