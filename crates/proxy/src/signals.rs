//! What the gateway knows of overload, signal by signal.
//!
//! | signal | is | measured by |
//! |---|---|---|
//! | `in_flight` | an upstream's places in use, as a share of its limit | the bulkheads, about four times a second |
//! | `queue_delay` | the wait for a place at an upstream | the bulkheads, when asked |
//! | `event_loop` | how late the latest worker's loop is | the workers, twenty times a second |
//! | `upstream_utilization` | how busy an upstream is, as it says itself | load reports on answers |
//! | `cpu`, `memory`, `memory_pressure` | of this process | whoever runs the gateway tells them |
//! | a signal of the policy's own | what it means is known to its author | a field of answers, or the admin API |
//!
//! Shed rules hear of the upstreams behind their own routes; shown is the busiest of all.
//!
//! What is told, and the places in use, are smoothed over a second and forgotten after ten: a sampler that hangs must not
//! shed traffic for ever, nor let everything pass.

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tidegate_core::Moment;
use tidegate_core::signal::Smoothed;
use tidegate_policy::policy::{Policy, SignalFrom, SignalName};

/// Over how long what is told is averaged.
const SMOOTHED_OVER: Duration = Duration::from_secs(1);

/// How long what was told is believed.
const BELIEVED_FOR: Duration = Duration::from_secs(10);

/// How often the rules are told what is known, at most. Workers look four times a second; were this a quarter of a second
/// too, a look that is a little early would not be the turn of anybody, and the next one came as late again.
const STEER_EVERY: Duration = Duration::from_millis(200);

/// How often a worker looks whether it is late.
pub(crate) const LATE_EVERY: Duration = Duration::from_millis(50);

/// A signal and what it says.
#[derive(Clone, Debug, PartialEq)]
pub struct SignalStatus {
    /// Its name.
    pub name: SignalName,
    /// Where operators' own signals come from.
    pub from: Option<SignalFrom>,
    /// What it says; nothing if nothing is known.
    pub value: Option<f64>,
}

/// Why a signal cannot be told.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum UntoldSignal {
    /// The policy has none of this name.
    Unknown,
    /// It is measured elsewhere.
    NotFromApi,
    /// It is no finite number.
    NoNumber,
}

impl fmt::Display for UntoldSignal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unknown => "the policy has no signal of this name",
            Self::NotFromApi => "this signal is measured, not told: only signals with `from = \"api\"` are",
            Self::NoNumber => "the value is no finite number",
        })
    }
}

impl std::error::Error for UntoldSignal {}

/// What has been told.
#[derive(Debug, Default)]
pub(crate) struct Signals {
    /// By name; those of the policy and the process, so their number is bounded.
    told: Mutex<BTreeMap<SignalName, Smoothed>>,
    /// How busy upstreams are, by their names; those of the policy, so their number is bounded.
    busy: Mutex<BTreeMap<String, Smoothed>>,
    /// By worker.
    loops: Vec<Loop>,
    /// When somebody is to steer next, in nanoseconds.
    steering: AtomicU64,
}

/// A worker's loop.
#[derive(Debug, Default)]
struct Loop {
    /// How late it is, in microseconds.
    late: AtomicU64,
    /// When it was last looked at, in nanoseconds; never, if zero.
    seen: AtomicU64,
}

impl Loop {
    /// How late it is: as it was found, or, if it does not even look any more, since it should have.
    fn lateness(&self, now: Moment) -> Duration {
        let found = Duration::from_micros(self.late.load(Ordering::Relaxed));
        match self.seen.load(Ordering::Relaxed) {
            0 => found,
            seen => found.max(now.since(Moment::from_nanos(seen)).saturating_sub(LATE_EVERY)),
        }
    }
}

impl Signals {
    pub(crate) fn new(workers: usize) -> Self {
        Self {
            told: Mutex::default(),
            busy: Mutex::default(),
            loops: (0..workers).map(|_| Loop::default()).collect(),
            steering: AtomicU64::new(0),
        }
    }

    /// Takes a reading.
    pub(crate) fn tell(&self, name: &SignalName, now: Moment, value: f64) {
        tell(&mut lock(&self.told), name, now, value);
    }

    /// Takes a reading of how busy an upstream is. Nothing is in flight before the first, so that one request does not seem
    /// to fill everything.
    pub(crate) fn tell_busy(&self, upstream: &str, now: Moment, value: f64) {
        let mut busy = lock(&self.busy);
        if !busy.contains_key(upstream) {
            tell(&mut busy, upstream, now, 0.0);
        }
        tell(&mut busy, upstream, now, value);
    }

    /// A worker's loop was so late just now.
    pub(crate) fn late(&self, worker: usize, now: Moment, by: Duration) {
        if let Some(Loop { late, seen }) = self.loops.get(worker) {
            let micros = u64::try_from(by.as_micros()).unwrap_or(u64::MAX >> 8).min(u64::MAX >> 8);
            // Only its own worker writes it. Seven eighths of what was: about half a second of looks.
            let smoothed = (late.load(Ordering::Relaxed) * 7 + micros) / 8;
            late.store(smoothed, Ordering::Relaxed);
            seen.store(now.nanos(), Ordering::Relaxed);
        }
    }

    /// A worker has ended, and is late for nothing any more.
    pub(crate) fn ended(&self, worker: usize) {
        if let Some(Loop { late, seen }) = self.loops.get(worker) {
            late.store(0, Ordering::Relaxed);
            seen.store(0, Ordering::Relaxed);
        }
    }

    pub(crate) fn event_loop(&self, now: Moment) -> f64 {
        self.loops.iter().map(|one| one.lateness(now)).max().unwrap_or_default().as_secs_f64()
    }

    /// Whether it is the asker's turn to steer: that of whoever asks first when it is time, so that a worker that hangs
    /// does not keep the others from it.
    pub(crate) fn steers(&self, now: Moment) -> bool {
        let due = self.steering.load(Ordering::Relaxed);
        let next = now.plus(STEER_EVERY).nanos();
        now.nanos() >= due
            && self.steering.compare_exchange(due, next, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    pub(crate) fn told_lately(&self, name: &SignalName, now: Moment) -> Option<f64> {
        lock(&self.told).get(name)?.value_within(BELIEVED_FOR, now)
    }

    pub(crate) fn busy_lately(&self, upstream: &str, now: Moment) -> Option<f64> {
        lock(&self.busy).get(upstream)?.value_within(BELIEVED_FOR, now)
    }

    /// Forgets signals of a policy that is no more.
    pub(crate) fn keep(&self, policy: &Policy) {
        let is_own = |name: &Arc<str>| policy.signals.iter().any(|signal| signal.name == *name);
        lock(&self.told).retain(|name, _| match name {
            SignalName::Own(name) => is_own(name),
            _ => true,
        });
        let is_there = |name: &String| policy.upstreams.iter().any(|upstream| upstream.name == *name);
        lock(&self.busy).retain(|name, _| is_there(name));
    }
}

fn tell<K, Q>(told: &mut BTreeMap<K, Smoothed>, name: &Q, now: Moment, value: f64)
where
    K: Ord + Borrow<Q>,
    Q: Ord + ToOwned<Owned = K> + ?Sized,
{
    if let Some(smoothed) = told.get_mut(name) {
        smoothed.tell(now, value);
    } else if let Ok(mut smoothed) = Smoothed::new(SMOOTHED_OVER) {
        smoothed.tell(now, value);
        told.insert(name.to_owned(), smoothed);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_told_is_forgotten_in_time() {
        let signals = Signals::new(2);
        let (now, cpu) = (Moment::ORIGIN, SignalName::Cpu);
        assert_eq!(signals.told_lately(&cpu, now), None);
        signals.tell(&cpu, now, 0.75);
        assert_eq!(signals.told_lately(&cpu, now.plus(BELIEVED_FOR)), Some(0.75));
        assert_eq!(signals.told_lately(&cpu, now.plus(BELIEVED_FOR + SMOOTHED_OVER)), None);
        signals.tell(&cpu, now, f64::NAN);
        assert_eq!(signals.told_lately(&cpu, now), Some(0.75));
    }

    #[test]
    fn the_latest_loop_counts() {
        let signals = Signals::new(2);
        let now = Moment::from_nanos(1);
        signals.late(1, now, Duration::from_millis(80));
        signals.late(0, now, Duration::from_millis(8));
        assert!((signals.event_loop(now) - 0.010).abs() < 1e-9, "an eighth of 80 ms");
    }

    #[test]
    fn a_loop_that_does_not_look_any_more_is_late() {
        let signals = Signals::new(2);
        let begun = Moment::from_nanos(1);
        let later = begun.plus(Duration::from_secs(3));
        assert!(signals.event_loop(later).abs() < 1e-9, "none has begun");
        signals.late(0, begun, Duration::ZERO);
        signals.late(1, later, Duration::ZERO);
        assert!((signals.event_loop(later) - 2.95).abs() < 1e-9, "the first should have looked after 50 ms");
        signals.ended(0);
        assert!(signals.event_loop(later).abs() < 1e-9, "whoever has ended need not look");
    }

    #[test]
    fn the_first_reading_of_an_upstream_does_not_fill_it() {
        let signals = Signals::new(1);
        let (begun, soon) = (Moment::from_nanos(1), Moment::from_nanos(1).plus(STEER_EVERY));
        signals.tell_busy("orders", begun, 1.0);
        assert_eq!(signals.busy_lately("orders", begun), Some(0.0));
        signals.tell_busy("orders", soon, 1.0);
        let busy = signals.busy_lately("orders", soon).unwrap();
        assert!((0.1..0.3).contains(&busy), "a fifth of a second of one: {busy}");
    }

    #[test]
    fn one_steers_at_a_time_and_anybody_when_it_is_time() {
        let signals = Signals::new(2);
        let now = Moment::from_nanos(1);
        assert_eq!([signals.steers(now), signals.steers(now)], [true, false]);
        assert!(!signals.steers(now.plus(STEER_EVERY - Duration::from_nanos(1))));
        assert!(signals.steers(now.plus(STEER_EVERY)));
    }
}
