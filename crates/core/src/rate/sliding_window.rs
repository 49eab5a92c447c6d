//! A count over the last window, from a few counters.
//!
//! A [`FixedWindow`](super::FixedWindow) forgets everything at its boundary, so twice the amount can pass
//! around it. Keeping the moment of every request ([`SlidingLog`](super::SlidingLog)) is exact, and costs
//! memory for every one of them. In between: keep the count of the present window and of the one before,
//! and assume that the requests of the one before came evenly. Of those, the share that still lies
//! within the last window's length is what the present window has not yet replaced:
//!
//! ```text
//! estimate = current + previous × (1 − elapsed share of the current window)
//! ```
//!
//! 100 a minute; 80 came in the previous minute and 30 in this one:
//!
//! | into this minute | estimate           | a request of 10 | a request of 11                |
//! |------------------|--------------------|-----------------|--------------------------------|
//! | 0 s              | 30 + 80×1 = 110    | retry in 15 s   | retry in 15.75 s               |
//! | 15 s             | 30 + 80×0.75 = 90  | admit           | refuse, retry after 750 ms     |
//! | 15.75 s          | 30 + 80×0.7375 = 89| admit           | admit                          |
//!
//! All of it is whole-number arithmetic on both sides multiplied by the window, so nothing is ever
//! rounded, and the retry is the very nanosecond from which the request fits.
//!
//! # How far it is from the truth
//!
//! With even arrivals the estimate is right to within one request. Two cases are worse, for a limit L and a window W:
//!
//! - An adversary sends L in the last instant of a window. He is then admitted at the pace at which the
//!   estimate decays, L/W: any stretch of length d sees at most L + L·d/W, as with a token bucket of
//!   burst L. That is still up to 2L in one window's length, but never a second *instant* burst.
//! - An unlucky caller sends L in the first instant of a window and is quiet. Just after the boundary
//!   nothing of it lies within the last W, yet the estimate says L: up to (1 − f)·L are refused that an
//!   exact log would admit.
//!
//! Both errors come from the one counter that is weighted. [`with_sub_buckets`](SlidingWindow::with_sub_buckets)
//! cuts the window into n buckets: all full buckets count as they are, and only the oldest is weighted.
//! Then the error is at most the content of one bucket, stretches up to W·(1 − 1/n) hold at most L, and
//! a key costs n + 1 counters, for which memory is taken when the first request of the key is counted.

use std::time::Duration;

use super::fixed_window::refuse_burst;
use super::window::{Place, duration_of, wide_nanos};
use super::{Algorithm, Marks};
use crate::units::{Cost, Invalid, Moment, Quota};
use crate::verdict::{Charge, Reason, Retry, Usage, Verdict};

/// At most so much in the last window, estimated from two counters or a few more.
///
/// ```
/// use tidegate_core::rate::{Algorithm, SlidingWindow};
/// use tidegate_core::{Cost, Moment, Quota};
///
/// let rule = SlidingWindow::new(Quota::per_minute(Cost::of(2))?)?.with_sub_buckets(6)?;
/// let mut state = rule.fresh(Moment::ORIGIN);
/// assert!(rule.decide(&mut state, Moment::ORIGIN, Cost::of(2)).is_admit());
/// assert!(!rule.decide(&mut state, Moment::ORIGIN, Cost::ONE).is_admit());
/// # Ok::<(), tidegate_core::Invalid>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlidingWindow {
    amount: Cost,
    window: Duration,
    buckets: u64,
}

/// Beyond this a key's counters fill more than eight cache lines, and a bucket's error is below 2 %.
const MOST_BUCKETS: u64 = 64;

impl SlidingWindow {
    /// The quota's amount in the last of its windows, from two counters.
    ///
    /// # Errors
    /// When the quota names a burst.
    pub fn new(quota: Quota) -> Result<Self, Invalid> {
        refuse_burst(&quota)?;
        Ok(Self { amount: quota.amount(), window: quota.window(), buckets: 1 })
    }

    /// The same with the window cut into `buckets`, for an error of one bucket instead of one window.
    ///
    /// # Errors
    /// When there would be none, or more than 64.
    pub fn with_sub_buckets(self, buckets: u32) -> Result<Self, Invalid> {
        let buckets = u64::from(buckets);
        if (1..=MOST_BUCKETS).contains(&buckets) {
            Ok(Self { buckets, ..self })
        } else {
            Err(Invalid::new("buckets", buckets, "from 1 to 64"))
        }
    }

    /// The bucket of `now`, and how much of it has passed in parts of the window.
    ///
    /// Buckets need not be whole nanoseconds: with time counted in n-ths of a nanosecond, one is exactly
    /// as many of those as the window has nanoseconds.
    fn bucket(&self, now: Moment) -> (u64, u128) {
        let time = u128::from(now.nanos()) * u128::from(self.buckets);
        let window = wide_nanos(self.window);
        (u64::try_from(time / window).unwrap_or(u64::MAX), time % window)
    }

    fn view<'a>(&self, state: &'a BucketCounts, now: Moment) -> View<'a> {
        let (bucket, passed) = self.bucket(now);
        let place = Place::of(bucket, state.index, self.buckets);
        let passed = if matches!(place, Place::Late(_)) { 0 } else { passed };
        let mut view = View { state, place, passed, full: 0, oldest: 0 };
        view.full = (0..self.buckets).map(|age| view.aged(age)).sum();
        view.oldest = view.aged(self.buckets);
        view
    }

    /// The estimate times the window. At most 65 counts of 64 bits times a window of 55: no overflow.
    fn estimate(&self, view: &View<'_>) -> u128 {
        let window = wide_nanos(self.window);
        view.full * window + view.oldest * (window - view.passed)
    }

    /// The time from `now` to the first moment at which `cost` fits if nobody else comes.
    fn wait(&self, view: &View<'_>, now: Moment, cost: Cost) -> Duration {
        let window = wide_nanos(self.window);
        let room = u128::from(self.amount.minus(cost).micros());
        let (mut full, mut oldest) = (view.full, view.oldest);
        let mut bucket = u128::from(view.place.number());
        let mut passed = 0;
        // Bucket by bucket the oldest one decays and then leaves; the one after it takes its place.
        for age in (0..=self.buckets).rev() {
            // The part of the window for which the oldest may still count, if what is full leaves room.
            let stays = room.checked_sub(full).map_or(0, |room| {
                (room * window).checked_div(oldest).map_or(window, |stays| stays.min(window))
            });
            if stays > 0 {
                passed = window - stays;
                break;
            }
            bucket += 1;
            oldest = age.checked_sub(1).map_or(0, |age| view.aged(age));
            full -= oldest;
        }
        self.until(bucket * window + passed, now)
    }

    /// The time from `now` to a time in n-ths of a nanosecond.
    fn until(&self, time: u128, now: Moment) -> Duration {
        duration_of(time.div_ceil(u128::from(self.buckets)).saturating_sub(u128::from(now.nanos())))
    }

    /// The counts that a state needs beyond the two it has room for.
    fn ring(&self) -> usize {
        match usize::try_from(self.buckets) {
            Ok(1) | Err(_) => 0,
            Ok(buckets) => buckets + 1,
        }
    }

    #[inline]
    fn take(&self, state: &mut BucketCounts, cost: Cost) {
        match &state.slots {
            Slots::Ring(ring) if ring.is_empty() => self.take_first(state, cost),
            Slots::Ring(_) | Slots::Pair(_) => state.take(cost),
        }
    }

    /// Takes from a state whose ring has no memory yet, and gives it some if there is anything to count.
    #[cold]
    #[inline(never)]
    fn take_first(&self, state: &mut BucketCounts, cost: Cost) {
        if cost > Cost::ZERO {
            state.slots = Slots::Ring(vec![0; self.ring()].into_boxed_slice());
            state.take(cost);
        }
    }

    fn advance(&self, state: &mut BucketCounts, now: Moment) {
        match Place::of(self.bucket(now).0, state.index, self.buckets) {
            Place::On(bucket) => state.roll(bucket),
            Place::Late(_) => {}
            Place::SetBack(bucket) => state.restart(bucket),
        }
    }
}

impl Algorithm for SlidingWindow {
    type Time = Moment;
    type State = BucketCounts;

    fn fresh(&self, now: Moment) -> BucketCounts {
        let slots = if self.buckets == 1 { Slots::Pair([0; 2]) } else { Slots::Ring(Box::default()) };
        BucketCounts { index: self.bucket(now).0, slots }
    }

    fn renew(&self, state: &mut BucketCounts, now: Moment) {
        match &mut state.slots {
            Slots::Ring(ring) if !ring.is_empty() && ring.len() == self.ring() => {
                ring.fill(0);
                state.index = self.bucket(now).0;
            }
            Slots::Ring(_) | Slots::Pair(_) => *state = self.fresh(now),
        }
    }

    fn most_heap(&self) -> usize {
        self.ring() * size_of::<u64>()
    }

    fn peek(&self, state: &BucketCounts, now: Moment, cost: Cost) -> Verdict<Duration> {
        if cost > self.amount {
            return Verdict::refuse(Reason::CostAboveBurst, Retry::Never);
        }
        let view = self.view(state, now);
        let room = u128::from(self.amount.minus(cost).micros()) * wide_nanos(self.window);
        if self.estimate(&view) > room {
            return Verdict::refuse(Reason::QuotaSpent, Retry::After(self.wait(&view, now, cost)));
        }
        Verdict::Admit(Duration::ZERO)
    }

    fn decide(&self, state: &mut BucketCounts, now: Moment, cost: Cost) -> Verdict<Charge> {
        self.advance(state, now);
        self.peek(state, now, cost).map(|_| {
            self.take(state, cost);
            Charge::new(cost, state.index)
        })
    }

    /// A smaller cost is given back to the bucket it was taken from, as long as that one counts.
    fn correct(&self, state: &mut BucketCounts, now: Moment, charge: &Charge, taken: Cost, true_cost: Cost) {
        self.advance(state, now);
        self.take(state, true_cost.minus(taken));
        if let Some(count) = state.count_mut(charge.mark) {
            *count = count.saturating_sub(taken.minus(true_cost).micros());
        }
    }

    fn usage(&self, state: &BucketCounts, now: Moment) -> Usage {
        let view = self.view(state, now);
        let used = Cost::from_micros(narrow(self.estimate(&view).div_ceil(wide_nanos(self.window))));
        let newest = (0..=self.buckets).find(|age| view.aged(*age) > 0);
        let reset = newest.map_or(Duration::ZERO, |age| {
            let gone = u128::from(view.place.number()) + u128::from(self.buckets + 1 - age);
            self.until(gone * wide_nanos(self.window), now)
        });
        Usage { limit: self.amount, used, remaining: self.amount.minus(used), reset }
    }

    fn is_idle(&self, state: &BucketCounts, now: Moment) -> bool {
        let view = self.view(state, now);
        view.full + view.oldest == 0 && !matches!(view.place, Place::Late(_))
    }

    /// Where window or buckets have changed, the estimate goes on as the count of the present bucket: we
    /// do not know where in the old buckets it lay.
    fn carry(&self, before: &Self, state: &mut BucketCounts, now: Moment) {
        before.advance(state, now);
        if (self.window, self.buckets) != (before.window, before.buckets) {
            let used = before.usage(state, now).used;
            self.renew(state, now);
            self.take(state, used);
        }
    }

    /// Charges that counted in full are moved with the estimate. Of those in the oldest bucket only a part still
    /// counted, and nobody can tell later which; they give nothing back.
    fn marks(&self, before: &Self, state: &BucketCounts, now: Moment) -> Marks {
        if (self.window, self.buckets) == (before.window, before.buckets) {
            return Marks::SAME;
        }
        let newest = Place::of(before.bucket(now).0, state.index, before.buckets).number();
        Marks::moved(newest, self.bucket(now).0).and_before(before.buckets)
    }
}

/// What one key has consumed, bucket by bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BucketCounts {
    /// The number of the newest bucket.
    index: u64,
    slots: Slots,
}

/// Millionths of a unit; bucket b is at b modulo the length. The usual two need no memory of their own, and a ring
/// has none until there is something to count.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Slots {
    Pair([u64; 2]),
    Ring(Box<[u64]>),
}

impl BucketCounts {
    fn slots(&self) -> &[u64] {
        match &self.slots {
            Slots::Pair(pair) => pair,
            Slots::Ring(ring) => ring,
        }
    }

    /// The slot of bucket `bucket`, whatever it holds.
    fn slot_mut(&mut self, bucket: u64) -> &mut u64 {
        let slots: &mut [u64] = match &mut self.slots {
            Slots::Pair(pair) => pair,
            Slots::Ring(ring) => ring,
        };
        let length = slots.len();
        &mut slots[slot(bucket, length)]
    }

    fn is_kept(&self, bucket: u64) -> bool {
        self.index.checked_sub(bucket).is_some_and(|age| age < self.length())
    }

    fn length(&self) -> u64 {
        u64::try_from(self.slots().len()).unwrap_or(u64::MAX)
    }

    fn count(&self, bucket: u64) -> u64 {
        let slots = self.slots();
        if self.is_kept(bucket) { slots[slot(bucket, slots.len())] } else { 0 }
    }

    fn count_mut(&mut self, bucket: u64) -> Option<&mut u64> {
        self.is_kept(bucket).then(|| self.slot_mut(bucket))
    }

    fn total(&self) -> u128 {
        self.slots().iter().map(|count| u128::from(*count)).sum()
    }

    /// Counts in the newest bucket, for which there is room.
    fn take(&mut self, cost: Cost) {
        let count = self.slot_mut(self.index);
        *count = count.saturating_add(cost.micros());
    }

    /// Makes `bucket`, which is not before the newest, the newest.
    fn roll(&mut self, bucket: u64) {
        for passed in 0..(bucket - self.index).min(self.length()) {
            *self.slot_mut(bucket - passed) = 0;
        }
        self.index = bucket;
    }

    /// Makes `bucket`, which lies far before the newest, the newest, and counts everything there.
    fn restart(&mut self, bucket: u64) {
        let total = narrow(self.total());
        match &mut self.slots {
            Slots::Pair(pair) => pair.fill(0),
            Slots::Ring(ring) => ring.fill(0),
        }
        self.index = bucket;
        if total > 0 {
            *self.slot_mut(bucket) = total;
        }
    }
}

fn slot(bucket: u64, length: usize) -> usize {
    let length = u64::try_from(length).unwrap_or(u64::MAX);
    usize::try_from(bucket % length).unwrap_or(0)
}

/// The counts as they stand at some moment, without having been moved there.
#[derive(Debug)]
struct View<'a> {
    state: &'a BucketCounts,
    place: Place,
    /// How much of the present bucket has passed, in parts of the window.
    passed: u128,
    /// The sum of the buckets that count in full, the present one included.
    full: u128,
    /// The count of the bucket that leaves while the present one passes.
    oldest: u128,
}

impl View<'_> {
    /// The count of the bucket `age` before the present one.
    fn aged(&self, age: u64) -> u128 {
        match self.place {
            Place::On(now) | Place::Late(now) => {
                now.checked_sub(age).map_or(0, |bucket| u128::from(self.state.count(bucket)))
            }
            // Everything counts as if it had come just now: when it came, the new clock cannot say.
            Place::SetBack(_) if age == 0 => u128::from(narrow(self.state.total())),
            Place::SetBack(_) => 0,
        }
    }
}

/// Millionths in 64 bits; more than that is more than any amount.
fn narrow(micros: u128) -> u64 {
    u64::try_from(micros).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
