//! What the gateway counts.
//!
//! Counts belong to a route and are striped by worker, so that workers write their own cache lines; whoever asks adds
//! them up. Nothing here is looked up on the way of a request: its route's figures are at hand with the settings.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tidegate_core::{Criticality, WallTime};
use tidegate_policy::policy::DegradeWhen;

pub use crate::listen::protocol_errors::ProtocolError;
use crate::metrics::Histogram;

/// The most names of routes that are told apart; later ones, of policies still to come, share the last.
const MOST_ROUTES: usize = 1024;

/// What routes beyond that are called.
const OTHER: &str = "other";

/// The upper bounds of the buckets of durations, in microseconds; one more bucket has no bound.
pub const BOUNDS_MICROS: [u64; 14] = [
    1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 2_500_000, 5_000_000,
    10_000_000, 30_000_000,
];

/// The upper bounds of the buckets of the time a decision takes, in nanoseconds; one more bucket has no bound.
pub const DECIDE_BOUNDS_NANOS: [u64; BOUNDS_MICROS.len()] = [
    500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 2_500_000,
    5_000_000, 10_000_000,
];

/// Of so many decisions one is timed. Reading the clock once more costs about as much as a rule.
const TIMED_OF: u64 = 16;

/// How many classes of statuses there are: 1xx to 5xx.
pub const STATUS_CLASSES: usize = 5;

/// Why cheaper answers are given, in the order in which they are counted.
pub const DEGRADED_WHEN: [DegradeWhen; 2] = [DegradeWhen::Shedding, DegradeWhen::Switched];

/// The routes that have been counted, by name.
#[derive(Debug)]
pub(crate) struct Routes {
    listeners: usize,
    workers: usize,
    /// Of each route, what each worker counts.
    known: Mutex<BTreeMap<String, Vec<Arc<RouteFigures>>>>,
}

impl Routes {
    pub(crate) fn new(listeners: usize, workers: usize) -> Self {
        Self { listeners, workers, known: Mutex::default() }
    }

    /// Where a worker counts a route. Figures outlive policies.
    pub(crate) fn of(&self, name: &str, worker: usize) -> Arc<RouteFigures> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let name = if known.len() < MOST_ROUTES || known.contains_key(name) { name } else { OTHER };
        let new = || (0..self.workers).map(|_| Arc::new(RouteFigures::new(name, self.listeners))).collect();
        let figures: &Vec<_> = known.entry(name.to_owned()).or_insert_with(new);
        Arc::clone(&figures[worker % figures.len()])
    }

    pub(crate) fn figures(&self) -> Vec<RouteCounts> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let sum = |(name, figures): (&String, &Vec<Arc<RouteFigures>>)| {
            let mut sum = RouteCounts::none(name, self.listeners);
            figures.iter().for_each(|figures| figures.add_to(&mut sum));
            sum
        };
        known.iter().map(sum).collect()
    }
}

/// What one worker counts of one route, on cache lines of its own.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct RouteFigures {
    name: String,
    /// By listener, criticality, and whether it was admitted.
    decided: Vec<[[Own; 2]; Criticality::ALL.len()]>,
    /// Cheaper answers, by [`DEGRADED_WHEN`].
    degraded: [Own; DEGRADED_WHEN.len()],
    begun: Own,
    ended: Own,
    durations: [Buckets; STATUS_CLASSES],
}

/// Lengths of time that one worker counts.
#[derive(Debug, Default)]
pub(crate) struct Buckets {
    counts: [Own; BOUNDS_MICROS.len() + 1],
    micros: Own,
}

impl Buckets {
    pub(crate) fn add(&self, time: Duration) {
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        self.counts[BOUNDS_MICROS.partition_point(|bound| *bound < micros)].add(1);
        self.micros.add(micros);
    }

    pub(crate) fn add_to(&self, sum: &mut Durations) {
        for (sum, count) in sum.counts.iter_mut().zip(&self.counts) {
            *sum += count.get();
        }
        sum.total += Duration::from_micros(self.micros.get());
    }
}

/// A count that one worker writes and everybody reads. It is read and written instead of added to: keeping others off,
/// of whom there are none, takes five times as long.
#[derive(Debug, Default)]
struct Own(AtomicU64);

impl Own {
    fn add(&self, more: u64) {
        self.0.store(self.get().wrapping_add(more), Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl RouteFigures {
    fn new(name: &str, listeners: usize) -> Self {
        Self {
            name: name.to_owned(),
            decided: (0..listeners).map(|_| Default::default()).collect(),
            degraded: Default::default(),
            begun: Own::default(),
            ended: Own::default(),
            durations: Default::default(),
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Counts a decision.
    pub(crate) fn decided(&self, listener: usize, criticality: Criticality, is_admitted: bool) {
        let counts = self.decided.get(listener).and_then(|counts| counts.get(criticality as usize));
        if let Some(counts) = counts {
            counts[usize::from(is_admitted)].add(1);
        }
    }

    /// Counts a cheaper answer.
    pub(crate) fn degraded(&self, why: DegradeWhen) {
        for (known, count) in DEGRADED_WHEN.iter().zip(&self.degraded) {
            if *known == why {
                count.add(1);
            }
        }
    }

    /// A request is answered from now on.
    pub(crate) fn begin(&self) {
        self.begun.add(1);
    }

    /// Its answer has ended.
    pub(crate) fn end(&self, status: u16, took: Duration) {
        self.ended.add(1);
        self.of_status(status).add(took);
    }

    /// A request was answered as soon as it was read: within microseconds, which are not worth a look at the clock.
    pub(crate) fn answered_at_once(&self, status: u16) {
        self.of_status(status).counts[0].add(1);
    }

    fn of_status(&self, status: u16) -> &Buckets {
        &self.durations[usize::from(status / 100).saturating_sub(1).min(STATUS_CLASSES - 1)]
    }

    fn add_to(&self, sum: &mut RouteCounts) {
        for (sum, counts) in sum.decided.iter_mut().zip(&self.decided) {
            for (sum, count) in sum.iter_mut().flatten().zip(counts.iter().flatten()) {
                *sum += count.get();
            }
        }
        for (sum, count) in sum.degraded.iter_mut().zip(&self.degraded) {
            *sum += count.get();
        }
        // In this order: what ends meanwhile had begun.
        let ended = self.ended.get();
        sum.in_flight += self.begun.get().saturating_sub(ended);
        sum.durations.iter_mut().zip(&self.durations).for_each(|(sum, buckets)| buckets.add_to(sum));
    }
}

impl RouteCounts {
    fn none(route: &str, listeners: usize) -> Self {
        Self {
            route: route.to_owned(),
            decided: vec![[[0; 2]; Criticality::ALL.len()]; listeners],
            degraded: [0; DEGRADED_WHEN.len()],
            in_flight: 0,
            durations: [Durations::default(); STATUS_CLASSES],
        }
    }
}

/// What the gateway itself adds to requests, from a sample of them.
#[derive(Debug)]
pub struct Overhead {
    workers: Vec<OverheadStripe>,
}

/// One worker's times, on cache lines of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
struct OverheadStripe {
    asked: Own,
    counts: [Own; DECIDE_BOUNDS_NANOS.len() + 1],
    nanos: Own,
}

impl Overhead {
    pub(crate) fn new(workers: usize) -> Self {
        Self { workers: (0..workers).map(|_| OverheadStripe::default()).collect() }
    }

    /// How many workers there are.
    pub(crate) fn workers(&self) -> usize {
        self.workers.len().max(1)
    }

    /// Whether the next decision of a worker is to be timed: the first, and then one of sixteen.
    #[must_use]
    pub fn is_next(&self, worker: usize) -> bool {
        let Some(stripe) = self.workers.get(worker) else { return false };
        let asked = stripe.asked.get();
        stripe.asked.add(1);
        asked.is_multiple_of(TIMED_OF)
    }

    /// Counts how long it took from a request's head until it might be sent on or was refused.
    pub fn decided_in(&self, worker: usize, took: Duration) {
        let Some(stripe) = self.workers.get(worker) else { return };
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        let bucket = DECIDE_BOUNDS_NANOS.partition_point(|bound| *bound < nanos);
        stripe.counts[bucket].add(1);
        stripe.nanos.add(nanos);
    }

    pub(crate) fn figures(&self) -> Durations {
        let mut sum = Durations::default();
        for stripe in &self.workers {
            for (sum, count) in sum.counts.iter_mut().zip(&stripe.counts) {
                *sum += count.get();
            }
            sum.total += Duration::from_nanos(stripe.nanos.get());
        }
        sum
    }
}

/// The counts of one route, over all workers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteCounts {
    /// Its name; `none` for requests that no route takes.
    pub route: String,
    /// By listener, criticality (in the order of [`Criticality::ALL`]), and refused before admitted.
    pub decided: Vec<[[u64; 2]; Criticality::ALL.len()]>,
    /// Cheaper answers, by [`DEGRADED_WHEN`].
    pub degraded: [u64; DEGRADED_WHEN.len()],
    /// Requests that are being served.
    pub in_flight: u64,
    /// By class of status, 1xx first.
    pub durations: [Durations; STATUS_CLASSES],
}

/// How long something took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Durations {
    /// How many took up to each of [`BOUNDS_MICROS`], or of [`DECIDE_BOUNDS_NANOS`], and longer than the one before; the
    /// last, longer than all.
    pub counts: [u64; BOUNDS_MICROS.len() + 1],
    /// All of them together.
    pub total: Duration,
}

impl Durations {
    /// The same with its bounds.
    #[must_use]
    pub fn histogram(&self, bounds: [Duration; BOUNDS_MICROS.len()]) -> Histogram {
        let beyond = self.counts.last().copied().unwrap_or_default();
        Histogram { steps: bounds.into_iter().zip(self.counts).collect(), beyond, total: self.total }
    }
}

/// What the gateway has counted since it began.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Figures {
    /// The names of its listeners.
    pub listeners: Vec<ListenerCounts>,
    /// Its routes, those of policies before included.
    pub routes: Vec<RouteCounts>,
    /// How long a sample of decisions took, by [`DECIDE_BOUNDS_NANOS`].
    pub decide: Durations,
    /// How many decisions the access log could not take in time.
    pub unlogged: u64,
}

/// What one listener has counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenerCounts {
    /// Its name.
    pub listener: String,
    /// Connections it serves.
    pub open: usize,
    /// Connections it has taken in.
    pub accepted: u64,
    /// Connections it has turned away, because their address had too many.
    pub turned_away: u64,
    /// Connections whose callers had left before it could take them in.
    pub left: u64,
    /// Breaches of protocols, in the order of [`ProtocolError::ALL`].
    pub errors: [u64; ProtocolError::ALL.len()],
    /// When its certificate expires, if it has one and that is known.
    pub certificate_expires: Option<WallTime>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_are_added_up() {
        let routes = Routes::new(1, 2);
        let (first, second) = (routes.of("a", 0), routes.of("a", 1));
        first.decided(0, Criticality::Critical, true);
        second.decided(0, Criticality::Critical, true);
        second.decided(0, Criticality::Sheddable, false);
        first.begin();
        second.begin();
        first.end(200, Duration::from_millis(3));
        let counts = routes.figures().remove(0);
        assert_eq!(counts.decided[0][Criticality::Critical as usize], [0, 2]);
        assert_eq!(counts.decided[0][Criticality::Sheddable as usize], [1, 0]);
        assert_eq!((counts.in_flight, counts.durations[1].counts[2]), (1, 1));
        second.end(502, Duration::from_secs(60));
        let counts = routes.figures().remove(0);
        assert_eq!((counts.in_flight, counts.durations[4].counts[BOUNDS_MICROS.len()]), (0, 1));
    }

    #[test]
    fn one_decision_of_sixteen_is_timed() {
        let overhead = Overhead::new(2);
        let timed = (0..33).filter(|_| overhead.is_next(1)).count();
        assert_eq!(timed, 3, "the first, the 17th and the 33rd");
        overhead.decided_in(0, Duration::from_nanos(500));
        overhead.decided_in(1, Duration::from_nanos(501));
        overhead.decided_in(1, Duration::from_secs(1));
        let counted = overhead.figures();
        assert_eq!((counted.counts[0], counted.counts[1]), (1, 1));
        assert_eq!(counted.counts[DECIDE_BOUNDS_NANOS.len()], 1);
        assert_eq!(counted.total, Duration::from_nanos(1_000_001_001));
    }

    #[test]
    fn names_are_bounded() {
        let routes = Routes::new(1, 1);
        (0..MOST_ROUTES + 5).for_each(|number| drop(routes.of(&number.to_string(), 0)));
        assert_eq!(routes.figures().len(), MOST_ROUTES + 1);
        assert_eq!(routes.of("new", 0).name(), OTHER);
        assert_eq!(routes.of("7", 0).name(), "7");
    }
}
