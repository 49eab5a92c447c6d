//! What a request takes without load, read from a window that begins with none.
//!
//! A limiter is made when its gateway starts, and often the flood is there already, or the first thing that comes is a
//! burst. The median of its first window is then the latency of a queue. Taken for the baseline, it makes the knee of a
//! service unknown: nothing is slower than what was first seen, so the limit doubles where it should be cut, and it takes
//! the [`Baseline`](super::Baseline) dozens of windows to come down.
//!
//! But even that window begins with nobody in flight. The first requests of a burst find a worker each; those after them
//! find a queue. So until the baseline is known, latencies are kept apart by how many were in flight when each request
//! started, its own included. Where those that found fewer than half of the most took half as long as all, or less, what
//! they took is the latency without load.
//!
//! Twelve workers of 50 ms, so 240 a second, and 50 places; 720 a second come, and the window closes after 700 ms:
//!
//! | found in flight | requests | took | |
//! |-----------------|----------|------|---|
//! | 1 to 15         | 15       | 50 ms, three of them up to 63 ms | fewer than half of 50: about 50 ms |
//! | 16 to 50        | 35       | 67 to 208 ms  | |
//! | 50              | 100      | 208 ms        | all together: about 200 ms |
//!
//! The baseline is about 50 ms and not 208, and the limit goes from 50 to 28 where it went to 100. In the model the same
//! service, with work that varies and callers who wait for 300 ms, is hit by waves of two seconds every four. From the
//! second wave on it answers .60 to .84 of what it could without this, and .94 and more with it, in ten seeds of chance.
//!
//! Medians and means must agree, since either can be chance: the median of ten requests whose work varies is half of the
//! truth once in ten windows, and the mean of ten says nothing where one in twenty takes a hundred times as long.
//! Latencies are counted by doublings, which leaves the result within a third of the truth.
//!
//! **Limits of the method.** Fewer than ten requests with so few in flight are not asked. If the first requests of a burst
//! are the cheap ones, the baseline begins too low, until a cut of the limit proves that nobody waited. A service that
//! is full of other gateways' requests shows no contrast; then the median of the window is all there is.

use std::time::Duration;

use crate::units::nanos_of;

/// Doublings of a time in nanoseconds and of what is in flight: all there are, for counting a request is on its way, and
/// holding numbers within fewer would cost more than the memory, which is given back when the baseline is known.
const DOUBLINGS: usize = 64;
const CROWDS: usize = 32;

/// As many endings as the shortest window may have.
const LEAST: u32 = 10;

/// How many times as long all took as those that found few in flight. Less is told from chance only by more requests
/// than the beginning of a burst has.
const CONTRAST: u32 = 2;

/// How often each latency was seen, for each number in flight; both by doublings.
#[derive(Clone, Debug)]
pub(crate) struct Crowds {
    counts: [Counts; CROWDS],
}

type Counts = [u32; DOUBLINGS];

impl Default for Crowds {
    fn default() -> Self {
        Self { counts: [[0; DOUBLINGS]; CROWDS] }
    }
}

impl Crowds {
    pub(crate) fn add(&mut self, in_flight: u32, took: Duration) {
        let crowd = (in_flight | 1).ilog2() as usize;
        let doubling = (nanos_of(took) | 1).ilog2() as usize;
        let count = &mut self.counts[crowd][doubling];
        *count = count.saturating_add(1);
    }

    pub(crate) fn clear(&mut self) {
        self.counts.iter_mut().for_each(|counts| counts.fill(0));
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.counts.iter_mut().zip(&other.counts).for_each(|(mine, theirs)| add(mine, theirs));
    }

    /// What a request takes without load, if the window shows it.
    pub(crate) fn unloaded(&self, max_in_flight: u32) -> Option<Duration> {
        // Up to a power of two, so that all of them are fewer than half.
        let few = (max_in_flight.saturating_add(1).ilog2() as usize).saturating_sub(1);
        let (few, all) = (self.found_in(few), self.found_in(CROWDS));
        let is_enough = total(&few) >= u64::from(LEAST);
        let is_clear = |of: fn(&Counts) -> Option<Duration>| {
            of(&few).zip(of(&all)).is_some_and(|(few, all)| few * CONTRAST <= all)
        };
        median(&few).filter(|_| is_enough && is_clear(median) && is_clear(mean))
    }

    /// The latencies of those that found a crowd of the first so many classes.
    fn found_in(&self, classes: usize) -> Counts {
        self.counts.iter().take(classes).fold([0; DOUBLINGS], |mut sums, counts| {
            add(&mut sums, counts);
            sums
        })
    }
}

fn add(mine: &mut Counts, theirs: &Counts) {
    mine.iter_mut().zip(theirs).for_each(|(mine, theirs)| *mine = mine.saturating_add(*theirs));
}

fn total(counts: &Counts) -> u64 {
    counts.iter().map(|count| u64::from(*count)).sum()
}

/// The mean, as if all in a doubling were in its middle.
fn mean(counts: &Counts) -> Option<Duration> {
    let middle = |doubling: u32| (1_u64 << doubling) + (1 << doubling) / 2;
    let sums = (0..).zip(counts).map(|(at, count)| middle(at).saturating_mul((*count).into()));
    sums.fold(0, u64::saturating_add).checked_div(total(counts)).map(Duration::from_nanos)
}

/// The median, as if all in a doubling lay in it evenly.
fn median(counts: &Counts) -> Option<Duration> {
    let mut rank = total(counts).checked_sub(1)? / 2; // this many are smaller
    for (doubling, count) in (0_u32..).zip(counts.map(u64::from)) {
        if rank < count {
            let low = 1_u64 << doubling;
            // Parts before the product, which would leave 64 bits.
            return Some(Duration::from_nanos(low + low / (2 * count) * (2 * rank + 1)));
        }
        rank -= count;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// What is in the table: a burst of 720 a second before twelve workers of 50 ms, and 50 places.
    fn burst() -> Crowds {
        let mut crowds = Crowds::default();
        let took = |found: u32| 50 * MS * found.max(12) / 12;
        (1..=50).for_each(|found| crowds.add(found, took(found)));
        (0..100).for_each(|_| crowds.add(50, took(50)));
        crowds
    }

    fn flat(took: impl Fn(u32) -> Duration) -> Crowds {
        let mut crowds = Crowds::default();
        (1..=50).chain(std::iter::repeat_n(50, 100)).for_each(|found| crowds.add(found, took(found)));
        crowds
    }

    #[test]
    fn a_burst_shows_what_its_first_requests_took_as_in_the_example() {
        let unloaded = burst().unloaded(50).unwrap();
        assert!((45 * MS..=55 * MS).contains(&unloaded), "{unloaded:?}");
    }

    #[test]
    fn requests_that_take_the_same_in_any_crowd_show_nothing() {
        assert_eq!(flat(|_| 50 * MS).unloaded(50), None);
        // One in twenty takes a hundred times as long, and none of the first was one of them.
        assert_eq!(flat(|found| if found == 20 { 100 * MS } else { MS }).unloaded(50), None);
    }

    #[test]
    fn fewer_than_ten_show_nothing() {
        let mut crowds = Crowds::default();
        (1..=9).for_each(|found| crowds.add(found, 10 * MS));
        (0..100).for_each(|_| crowds.add(50, 200 * MS));
        assert_eq!(crowds.unloaded(50), None);
        crowds.add(10, 10 * MS);
        assert!(crowds.unloaded(50).is_some_and(|unloaded| unloaded < 17 * MS));
    }

    #[test]
    fn what_two_threads_saw_is_as_what_one_saw() {
        let (mut one, mut other) = (burst(), Crowds::default());
        other.merge(&one);
        assert_eq!(one.unloaded(50), other.unloaded(50));
        one.merge(&other);
        assert!(one.unloaded(50).is_some());
    }

    #[test]
    fn latencies_and_crowds_of_any_size_are_counted() {
        let mut crowds = Crowds::default();
        for found in [0, 1, u32::MAX] {
            for took in [Duration::ZERO, MS, Duration::MAX] {
                crowds.add(found, took);
            }
        }
        assert_eq!(total(&crowds.found_in(CROWDS)), 9);
        assert_eq!((crowds.unloaded(0), crowds.unloaded(u32::MAX)), (None, None));
        assert!(median(&crowds.found_in(CROWDS)).is_some());
    }
}
