//! What went through a bulkhead, counted where no other thread writes, and what moves its edge.
//!
//! The edge wants to know, twice a second: how many came, how many went in, how many were served, how many wait, and how
//! busy the places were on average. Two of these are counted as requests come; the others follow:
//!
//! ```text
//! entered = arrived − refused at the edge        served = entered − left the queue unserved − more waiting than before
//! ```
//!
//! How busy the places were is what those who came found: who comes at random sees the average over time.
//!
//! How much capacity is wanted is asked of more than the edge sees: all who would have come, and only those whose work was
//! done. 30 come in a tick, 20 more are held back by rules of their route, and 25 are answered while the places are
//! half busy: 50 are wanted of the 50 that could be done, a ratio of 1. When the service fails all 30 in no time, nothing
//! is learnt of what it can do, and what was known before stays.
//!
//! How busy the places are says how busy the service is only when nearly all are taken: a limit is not lowered because it is
//! unused, so ten workers of which nine are at work behind a limit of 50 look a fifth busy. Below 1 the ratio is therefore a
//! guess, and too low. A service that says how busy it is ends the guessing: the ratio is never below what it says.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tidegate_core::concurrency::Surroundings;
use tidegate_core::permit::Outcome;
use tidegate_core::shed::{Edge, Flow, Steering, Tick};
use tidegate_core::signal::Smoothed;
use tidegate_core::{Criticality, Invalid, Moment, Ratio, Reason};

use super::lock;

/// How often the edge moves.
pub const TICK: Duration = Duration::from_millis(500);

/// Over how long waits and wants are averaged: long enough to be read, short enough to be news.
const RECENT: Duration = Duration::from_secs(5);

/// How long what an upstream said of itself is believed.
const BELIEVED: Duration = Duration::from_secs(10);

/// Places that were hardly busy say little of what they could do.
const LEAST_BUSY: f64 = 0.01;

/// How busy is counted in: thousandths of the places.
const WHOLE: u64 = 1_000;

/// Why requests are refused at a bulkhead.
const REASONS: [Reason; 7] = [
    Reason::Shed,
    Reason::LimitReached,
    Reason::WaitTooLong,
    Reason::QueueFull,
    Reason::Displaced,
    Reason::StandingQueue,
    Reason::DeadlinePassed,
];

/// Refusals for one reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RefusedHere {
    /// Why.
    pub reason: Reason,
    /// How many of each level.
    pub counts: [u64; 4],
}

/// What one entrance has counted, on cache lines of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct Counts {
    arrived: [AtomicU64; 4],
    /// The sum of what each found, in thousandths of the places.
    busy: AtomicU64,
    /// Gone before their turn came.
    abandoned: AtomicU64,
    /// Their place came back, and they had not failed.
    done: AtomicU64,
    /// Refused before they came here, by rules that spare the upstream.
    held_back: AtomicU64,
    refused: [[AtomicU64; 4]; REASONS.len()],
}

impl Counts {
    #[inline]
    pub(super) fn arrived(&self, level: Criticality, in_flight: u64, limit: u32) {
        self.arrived[level.index()].fetch_add(1, Ordering::Relaxed);
        let busy = (in_flight * WHOLE).checked_div(limit.into()).unwrap_or(WHOLE).min(WHOLE);
        self.busy.fetch_add(busy, Ordering::Relaxed);
    }

    pub(super) fn abandoned(&self) {
        self.abandoned.fetch_add(1, Ordering::Relaxed);
    }

    #[inline]
    pub(super) fn ended(&self, outcome: Outcome) {
        match outcome {
            Outcome::Ok | Outcome::Abandoned => _ = self.done.fetch_add(1, Ordering::Relaxed),
            // What fails at once says nothing of how much could be done.
            Outcome::Failed | Outcome::Overloaded => {}
        }
    }

    pub(super) fn held_back(&self) {
        self.held_back.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn refused(&self, level: Criticality, reason: Reason) {
        let known = REASONS.iter().position(|known| *known == reason);
        if let Some(counts) = known.and_then(|index| self.refused.get(index)) {
            counts[level.index()].fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Sums over all entrances.
#[derive(Clone, Copy, Debug, Default)]
struct Totals {
    arrived: [u64; 4],
    busy: u64,
    abandoned: u64,
    done: u64,
    held_back: u64,
    refused: [[u64; 4]; REASONS.len()],
    /// How many waited when it was summed.
    waiting: u64,
}

/// All entrances together, over time.
#[derive(Debug)]
pub(super) struct Flows {
    stripes: Mutex<Vec<Arc<Counts>>>,
    /// When the edge moves next.
    due: AtomicU64,
    steered: Mutex<Steered>,
}

#[derive(Debug)]
struct Steered {
    steering: Steering,
    before: Totals,
    demand: Smoothed,
    capacity: Smoothed,
    delay: Smoothed,
    utilization: Smoothed,
}

impl Flows {
    pub(super) fn new(now: Moment) -> Result<Self, Invalid> {
        let steered = Steered {
            steering: Steering::default(),
            before: Totals::default(),
            demand: Smoothed::new(RECENT)?,
            capacity: Smoothed::new(RECENT)?,
            delay: Smoothed::new(RECENT)?,
            utilization: Smoothed::new(RECENT)?,
        };
        Ok(Self {
            stripes: Mutex::default(),
            due: AtomicU64::new(now.plus(TICK).nanos()),
            steered: Mutex::new(steered),
        })
    }

    /// Where a new entrance counts.
    pub(super) fn stripe(&self) -> Arc<Counts> {
        let counts = Arc::new(Counts::default());
        lock(&self.stripes).push(Arc::clone(&counts));
        counts
    }

    #[inline]
    pub(super) fn is_due(&self, now: Moment) -> bool {
        now.nanos() >= self.due.load(Ordering::Relaxed)
    }

    /// Where the edge is from now on, if it is time and nobody else is looking.
    pub(super) fn look(&self, now: Moment, waiting: u64) -> Option<Edge> {
        let mut steered = self.steered.try_lock().ok()?;
        if !self.is_due(now) {
            return None;
        }
        self.due.store(now.plus(TICK).nanos(), Ordering::Relaxed);
        let totals = self.totals(waiting);
        let seen = Seen::between(&steered.before, &totals);
        steered.before = totals;
        steered.demand.tell(now, seen.demand());
        if let Some(capacity) = seen.capacity() {
            steered.capacity.tell(now, capacity);
        }
        if waiting == 0 && seen.flow.served > 0 {
            // Whoever finds a place at once does not say so each time.
            steered.delay.tell(now, 0.0);
        }
        let tick = Tick { arrived: seen.arrived, flow: Some(seen.flow), ..Tick::default() };
        Some(steered.steering.tick(&tick))
    }

    /// Somebody was served who had waited.
    pub(super) fn waited(&self, now: Moment, waited: Duration) {
        lock(&self.steered).delay.tell(now, waited.as_secs_f64());
    }

    pub(super) fn utilized(&self, now: Moment, utilization: f64) {
        lock(&self.steered).utilization.tell(now, utilization);
    }

    pub(super) fn utilization(&self, now: Moment) -> Option<f64> {
        lock(&self.steered).utilization.value_within(BELIEVED, now)
    }

    /// What is known of where the time goes.
    pub(super) fn surroundings(&self, now: Moment) -> Surroundings {
        let utilization = self.utilization(now).and_then(|value| Ratio::new(value.clamp(0.0, 1.0)).ok());
        Surroundings { utilisation: utilization, is_dependency_slow: false }
    }

    pub(super) fn queue_delay(&self, now: Moment) -> Duration {
        let recent = lock(&self.steered).delay.value_within(RECENT * 2, now);
        Duration::try_from_secs_f64(recent.unwrap_or(0.0)).unwrap_or_default()
    }

    /// How much of the capacity there is would be needed for all who come. Each is averaged by itself: the ratio of one
    /// tick in which hardly anybody was served says nothing.
    pub(super) fn wanted(&self, now: Moment) -> f64 {
        let steered = lock(&self.steered);
        let wanted = match (steered.demand.value(), steered.capacity.value()) {
            (Some(demand), Some(capacity)) if capacity > 0.0 => demand / capacity,
            _ => 0.0,
        };
        wanted.max(steered.utilization.value_within(BELIEVED, now).unwrap_or(0.0))
    }

    pub(super) fn refused(&self) -> Vec<RefusedHere> {
        let totals = self.totals(0);
        let named = REASONS.iter().zip(totals.refused);
        named.map(|(reason, counts)| RefusedHere { reason: *reason, counts }).collect()
    }

    fn totals(&self, waiting: u64) -> Totals {
        let mut totals = Totals { waiting, ..Totals::default() };
        for counts in lock(&self.stripes).iter() {
            let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
            add(&mut totals.arrived, &counts.arrived);
            totals.busy += read(&counts.busy);
            totals.abandoned += read(&counts.abandoned);
            totals.done += read(&counts.done);
            totals.held_back += read(&counts.held_back);
            for (sums, counts) in totals.refused.iter_mut().zip(&counts.refused) {
                add(sums, counts);
            }
        }
        totals
    }
}

fn add(sums: &mut [u64; 4], counts: &[AtomicU64; 4]) {
    sums.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count.load(Ordering::Relaxed));
}

/// What happened in one tick.
#[derive(Clone, Copy, Debug)]
struct Seen {
    arrived: [u64; 4],
    held_back: u64,
    done: u64,
    flow: Flow,
}

impl Seen {
    #[expect(clippy::cast_precision_loss, reason = "counts of a tick")]
    fn between(before: &Totals, after: &Totals) -> Self {
        let arrived = std::array::from_fn(|level| after.arrived[level] - before.arrived[level]);
        let came: u64 = arrived.iter().sum();
        let refused = |totals: &Totals, is_at_edge: bool| -> u64 {
            let those = REASONS.iter().zip(totals.refused);
            let those = those.filter(|(reason, _)| (**reason == Reason::Shed) == is_at_edge);
            those.flat_map(|(_, counts)| counts).sum()
        };
        let left = |totals: &Totals| refused(totals, false) + totals.abandoned + totals.waiting;
        let entered = came.saturating_sub(refused(after, true) - refused(before, true));
        // Those who wait now had entered and have not been served; those who waited before have, or left.
        let served = (entered + left(before)).saturating_sub(left(after));
        let busy = match came {
            0 => 0.0,
            came => (after.busy - before.busy) as f64 / (came * WHOLE) as f64,
        };
        let busy = Ratio::new(busy.min(1.0)).unwrap_or(Ratio::ONE);
        let (held_back, done) = (after.held_back - before.held_back, after.done - before.done);
        Self { arrived, held_back, done, flow: Flow { entered, served, waiting: after.waiting, busy } }
    }

    /// How many came, or would have.
    #[expect(clippy::cast_precision_loss, reason = "counts of a tick")]
    fn demand(&self) -> f64 {
        (self.arrived.iter().sum::<u64>() + self.held_back) as f64
    }

    /// How many could have been done had all places been busy; unknown if none was.
    #[expect(clippy::cast_precision_loss, reason = "counts of a tick")]
    fn capacity(&self) -> Option<f64> {
        let busy = self.flow.busy.value().max(LEAST_BUSY);
        (self.done > 0).then(|| self.done as f64 / busy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wanted_is_as_in_the_example() {
        let came = Totals { arrived: [0, 0, 30, 0], busy: 15 * WHOLE, held_back: 20, ..Totals::default() };
        let seen = Seen::between(&Totals::default(), &Totals { done: 25, ..came });
        assert_eq!((seen.demand(), seen.capacity()), (50.0, Some(50.0)));
        assert_eq!((seen.flow.entered, seen.flow.served), (30, 30), "the edge is told of those who came");
        assert_eq!(Seen::between(&Totals::default(), &came).capacity(), None);
    }
}
