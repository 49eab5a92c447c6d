//! A limit that threads share.
//!
//! Taking a place must cost next to nothing, for it is done most when there is least time. So it touches
//! two words: the limit, which is only read, and the count of places [`Taken`], which is swapped; and while there is
//! plenty of room, one that hardly any other thread touches.
//!
//! A refusal writes nothing. Giving a place back subtracts it; then, the place being free already, the
//! sample is put into the thread's own of a few pictures of the open window, or into another one if that is in use.
//! Who finds the window old enough closes it; others go on meanwhile.
//!
//! **A request teaches only about the limit it started under.** What started before the last change and
//! ends after it says how the service was under the old limit; a controller that hears it cuts twice for
//! one cause (envoy#11579). For the same reason a window is at least twice as long as the median of the one
//! before: a shorter one would be told of the fast requests first and of the slow ones never.
//!
//! **On the way up from a cold start** a window is looked at every sixteenth of its length, and closes early if it says
//! enough to double the limit.
//!
//! **Until the baseline is known** pictures say too what requests took in which crowd, which is another 8 KB each; see
//! [`Window::unloaded`](super::Window::unloaded).
//!
//! Memory: five pictures of 2 KB, four stocks of a line, the last 16 changes, and nothing for a place in flight but its
//! permit.

use std::collections::VecDeque;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use super::bounds::{Bounds, Surroundings};
use super::change::Change;
use super::controller::Controller;
use super::shares::{self, Shares};
use super::start;
use super::taken::{Line, Taken, Terms};
use super::window::{Gathering, Sample, Windowing};
use crate::permit::{Ended, Permit, Places};
use crate::stripe;
use crate::sync::{AtomicU64, Mutex, Ordering, lock};
use crate::units::{Criticality, Moment, nanos_of};
use crate::verdict::{Reason, Retry, Verdict};

/// Limits what is in flight to what the service has shown to bear.
///
/// ```
/// use std::time::Duration;
/// use tidegate_core::concurrency::{Adaptive, Bounds, Controller, Objective, Vegas, Windowing};
/// use tidegate_core::permit::Outcome;
/// use tidegate_core::{Criticality, Moment};
///
/// let now = Moment::ORIGIN;
/// let objective = Objective::half_of(Duration::from_secs(5))?;
/// let controller = Controller::new(Vegas, Bounds::new(2..=400)?, objective);
/// let limiter = Adaptive::new(controller, Windowing::default(), now);
///
/// let permit = limiter.admit(now, Criticality::Critical).admitted().expect("20 places are free");
/// assert_eq!((limiter.limit(), limiter.in_flight()), (20, 1));
/// permit.complete(now.plus(Duration::from_millis(8)), Outcome::Ok);
/// assert_eq!(limiter.in_flight(), 0);
/// # Ok::<(), tidegate_core::Invalid>(())
/// ```
#[derive(Debug)]
pub struct Adaptive {
    taken: Taken,
    told: Line<Told>,
    shares: Shares,
    shards: [Line<Mutex<Gathering>>; SHARDS],
    control: Mutex<Control>,
}

/// What threads read at every request and write once a window.
#[derive(Debug)]
struct Told {
    limit: AtomicU64,
    /// The moment of the last change: what started earlier teaches nothing.
    epoch: AtomicU64,
    opened: AtomicU64,
    due: AtomicU64,
}

#[derive(Debug)]
struct Control {
    controller: Controller,
    windowing: Windowing,
    surroundings: Surroundings,
    gathering: Gathering,
    opened: Moment,
    /// How old the open window must be.
    length: Duration,
    last: Option<Change>,
    recent: VecDeque<(Moment, Change)>,
}

/// Pictures of the open window. Up to four threads have one each, and more of them find a free one nearly always; under
/// loom, one is enough to find every race, and more would take for ever.
const SHARDS: usize = if cfg!(loom) { 1 } else { 4 };
/// Changes remembered for whoever asks what the limit did.
const REMEMBERED: usize = 16;
/// A window that is not full enough after this many times its length spans a pause; what it gathered says
/// little.
const STALE: u32 = 60;

impl Adaptive {
    /// A limiter whose first window opens `now`.
    #[must_use]
    pub fn new(controller: Controller, windowing: Windowing, now: Moment) -> Self {
        let control = Control {
            controller,
            windowing,
            surroundings: Surroundings::default(),
            gathering: Gathering::first(),
            opened: now,
            length: windowing.length(),
            last: None,
            recent: VecDeque::with_capacity(REMEMBERED),
        };
        let told = Told {
            limit: AtomicU64::new(u64::from(control.controller.limit())),
            epoch: AtomicU64::new(0),
            opened: AtomicU64::new(now.nanos()),
            due: AtomicU64::new(now.plus(control.first_look()).nanos()),
        };
        Self {
            taken: Taken::default(),
            told: Line(told),
            shares: Shares::NONE,
            shards: [(); SHARDS].map(|()| Line(Mutex::new(Gathering::first()))),
            control: Mutex::new(control),
        }
    }

    /// The same limiter with places kept for some levels.
    #[must_use]
    pub fn with_shares(self, shares: Shares) -> Self {
        Self { shares, ..self }
    }

    /// Takes a place if one is free, for work that ends while the limiter is borrowed.
    #[inline]
    pub fn admit(&self, now: Moment, level: Criticality) -> Verdict<Permit<&Self>> {
        self.take(level).map(|note| Permit::noted(self, now, note))
    }

    /// Takes a place if one is free, for work that outlives every borrow: a future, a response body.
    #[inline]
    pub fn admit_shared(self: &Arc<Self>, now: Moment, level: Criticality) -> Verdict<Permit> {
        self.take(level).map(|note| Permit::noted(Arc::<Self>::clone(self) as Arc<dyn Places>, now, note))
    }

    /// Takes a place if one is free, for a `holder` that gives back here what is given back to it.
    #[inline]
    pub fn admit_for<H>(
        &self,
        holder: impl FnOnce() -> H,
        now: Moment,
        level: Criticality,
    ) -> Verdict<Permit<H>>
    where
        H: Deref<Target: Places>,
    {
        self.take(level).map(|note| Permit::noted(holder(), now, note))
    }

    /// Takes a place whether one is free or not, for whoever has been promised one: the limit is exceeded by those
    /// who were faster in the meantime.
    pub fn admit_anyway<H>(&self, holder: H, now: Moment, level: Criticality) -> Permit<H>
    where
        H: Deref<Target: Places>,
    {
        Permit::noted(holder, now, note(level, self.taken.take_anyway(level)))
    }

    /// How many may be in flight.
    pub fn limit(&self) -> u32 {
        let limit = self.told.0.limit.load(Ordering::Relaxed);
        u32::try_from(limit).unwrap_or(u32::MAX)
    }

    /// How many are in flight.
    pub fn in_flight(&self) -> u64 {
        shares::total(self.taken.counts())
    }

    /// How many of one level are in flight.
    pub fn in_flight_of(&self, level: Criticality) -> u64 {
        shares::in_lane(self.taken.counts(), level.index())
    }

    /// What the last window made of the limit, also when it left it alone.
    pub fn last(&self) -> Option<Change> {
        lock(&self.control).last
    }

    /// The last changes of the limit, the oldest first; at most 16.
    pub fn recent(&self) -> Vec<(Moment, Change)> {
        lock(&self.control).recent.iter().copied().collect()
    }

    /// What a request takes without load, as far as is known.
    pub fn baseline(&self) -> Option<Duration> {
        lock(&self.control).controller.baseline()
    }

    /// Says what is known about where the time goes. It holds until it is told otherwise.
    pub fn tell(&self, surroundings: Surroundings) {
        lock(&self.control).surroundings = surroundings;
    }

    /// Other bounds, from now on; [`Bounds::exactly`] pins the limit. Whoever is in flight stays: when the
    /// limit falls below what is taken, nobody is admitted until enough places came back.
    pub fn set_bounds(&self, now: Moment, bounds: Bounds) -> Change {
        self.reconfigure(now, |controller| controller.set_bounds(bounds))
    }

    /// Changes the controller: its algorithm, its objective, its bounds. `change` says what became of the
    /// limit.
    pub fn reconfigure(&self, now: Moment, change: impl FnOnce(&mut Controller) -> Change) -> Change {
        let mut control = lock(&self.control);
        let change = change(&mut control.controller);
        self.publish(&mut control, now, change);
        change
    }

    #[inline]
    fn take(&self, level: Criticality) -> Verdict<u64> {
        match self.taken.take(self.terms(level)) {
            Some(in_flight) => Verdict::Admit(note(level, in_flight)),
            None => Verdict::refuse(Reason::LimitReached, Retry::After(Duration::ZERO)),
        }
    }

    /// Relaxed: a limit that is read a moment late is the limit of a moment ago.
    #[inline]
    fn terms(&self, level: Criticality) -> Terms<'_> {
        let limit = self.told.0.limit.load(Ordering::Relaxed);
        Terms { limit, shares: &self.shares, level }
    }

    fn gather(&self, sample: Sample) {
        let own = stripe::own(SHARDS);
        for turn in 0..SHARDS {
            if let Ok(mut shard) = self.shards[(own + turn) % SHARDS].0.try_lock() {
                shard.add(sample);
                return;
            }
        }
        lock(&self.shards[own].0).add(sample);
    }

    /// Closes the window if nobody else is about to, and if enough has been gathered.
    #[cold]
    fn close(&self, now: Moment) {
        let Ok(mut control) = self.control.try_lock() else { return };
        let length = control.windowing.length();
        if now.plus(length) < control.opened {
            // The clock went back by more than threads can be out of order.
            self.told.0.epoch.store(0, Ordering::Relaxed);
            self.open(&mut control, now, length);
            return;
        }
        if now.nanos() < self.told.0.due.load(Ordering::Relaxed) {
            return;
        }
        for shard in &self.shards {
            control.gathering.drain(&mut lock(&shard.0));
        }
        let old_enough = control.opened.plus(control.length);
        if now < old_enough && !control.is_telling(now) {
            let later = now.plus(start::early(&control.windowing)).min(old_enough);
            self.told.0.due.store(later.nanos(), Ordering::Relaxed);
            return;
        }
        if control.gathering.endings() < u64::from(control.windowing.least_endings()) {
            if now.since(control.opened) > length * STALE {
                control.gathering.clear();
                self.open(&mut control, now, length);
            } else {
                // Not at every request that ends: gathering looks at every picture.
                self.told.0.due.store(now.plus(length / 8).nanos(), Ordering::Relaxed);
            }
            return;
        }
        let opened = control.opened;
        let mut window = control.gathering.close(opened, now);
        if opened.nanos() == self.told.0.epoch.load(Ordering::Relaxed) {
            // Who started in this window could not end in it before one latency had passed.
            let first = window.latency.map_or(Duration::ZERO, |latency| latency.mean);
            window.length -= first.min(window.length / 2);
        }
        let surroundings = control.surroundings;
        let is_known = control.controller.baseline().is_some();
        let change = control.controller.update(&window, surroundings);
        if !is_known && control.controller.baseline().is_some() {
            control.gathering.forget_crowds();
            self.shards.iter().for_each(|shard| lock(&shard.0).forget_crowds());
        }
        self.publish(&mut control, now, change);
        let median = window.latency.map_or(Duration::ZERO, |latency| latency.median);
        self.open(&mut control, now, length.max(median.saturating_mul(2)));
    }

    fn open(&self, control: &mut Control, now: Moment, length: Duration) {
        (control.opened, control.length) = (now, length);
        self.told.0.opened.store(now.nanos(), Ordering::Relaxed);
        self.told.0.due.store(now.plus(control.first_look()).nanos(), Ordering::Relaxed);
    }

    fn publish(&self, control: &mut Control, now: Moment, change: Change) {
        control.last = Some(change);
        if !change.is_change() {
            return;
        }
        self.told.0.limit.store(u64::from(change.to), Ordering::Relaxed);
        if change.to < change.from {
            // What is in stock was taken under the old limit.
            self.taken.end_plenty();
        }
        self.told.0.epoch.store(now.nanos(), Ordering::Relaxed);
        if control.recent.len() == REMEMBERED {
            control.recent.pop_front();
        }
        control.recent.push_back((now, change));
    }
}

impl Control {
    /// How old the open window must be before it is looked at.
    fn first_look(&self) -> Duration {
        if self.controller.is_doubling() { start::early(&self.windowing) } else { self.length }
    }

    /// Whether the open window may close before it is old enough.
    fn is_telling(&self, now: Moment) -> bool {
        let age = now.since(self.opened);
        self.controller.is_doubling()
            && start::is_telling(&self.gathering, &self.windowing, self.controller.limit(), age)
    }
}

impl Places for Adaptive {
    fn give_back(&self, ended: Ended) {
        let (level, in_flight) = noted(ended.note);
        self.taken.give_back(self.terms(level));
        if ended.taken.nanos() >= self.told.0.epoch.load(Ordering::Relaxed) {
            let Ended { outcome, took, .. } = ended;
            self.gather(Sample { outcome, took, in_flight });
        }
        // Who abandons does not know the moment; the next to complete will.
        let Some(took) = ended.took else { return };
        let now = ended.taken.nanos().saturating_add(nanos_of(took));
        let is_due = now >= self.told.0.due.load(Ordering::Relaxed);
        if is_due || now < self.told.0.opened.load(Ordering::Relaxed) {
            self.close(Moment::from_nanos(now));
        }
    }

    fn undo(&self, ended: Ended) {
        let (level, _) = noted(ended.note);
        self.taken.give_back(self.terms(level));
    }
}

/// The level and what was in flight, as a permit carries them.
const fn note(level: Criticality, in_flight: u64) -> u64 {
    (level.index() as u64) << 32 | in_flight
}

#[allow(clippy::cast_possible_truncation, reason = "the lower half was written as a count of places")]
const fn noted(note: u64) -> (Criticality, u32) {
    let level = Criticality::ALL[(note >> 32) as usize % Criticality::ALL.len()];
    (level, note as u32)
}

#[cfg(test)]
mod tests;
