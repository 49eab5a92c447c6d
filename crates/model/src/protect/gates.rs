//! Gates of the core's parts.

use std::sync::Arc;
use std::time::Duration;

use tidegate_core::concurrency::{
    self, Adaptive, Controller, Objective, Surroundings, Vegas, Why, Windowing,
};
use tidegate_core::permit::InFlight;
use tidegate_core::queue::{self, Entry, Fair, Left, Order, Queue};
use tidegate_core::retry::{Advice, AttemptHistogram, HistogramRule};
use tidegate_core::{Invalid, Moment, Ratio, Roll, Verdict};

use crate::gate::{Arrived, Asked, Gate, Passed};

/// So many places, and whoever finds none is refused.
#[derive(Debug)]
pub(super) struct Fixed {
    places: Arc<InFlight>,
    limit: u32,
}

impl Fixed {
    pub(super) fn new(limit: u32) -> Self {
        Self { places: Arc::new(InFlight::new(limit).expect("a limit is above zero")), limit }
    }
}

impl Gate for Fixed {
    fn arrive(&mut self, now: Moment, asked: Asked, _: Roll, _: &mut Vec<Asked>) -> Arrived {
        match self.places.admit(now) {
            Verdict::Admit(permit) => Arrived::Pass(Passed::new(&asked, Some(permit))),
            Verdict::Refuse(_) => Arrived::Refuse,
        }
    }

    fn limit(&self) -> Option<f64> {
        Some(f64::from(self.limit))
    }
}

/// What the gateway waits for an answer where nobody says otherwise. How long callers do is not for it to know.
const UPSTREAM_TIMEOUT: Duration = Duration::from_secs(60);

/// The gateway's limit to begin with, and between which times its requests wait.
const FIRST_LIMIT: u32 = 50;
const SHORTEST_WAIT: Duration = Duration::from_millis(50);
const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// An adaptive limit with its queue: whoever finds no place waits, the more critical in front.
#[derive(Debug)]
pub(super) struct Guarded {
    limiter: Arc<Adaptive>,
    queue: Queue<Asked>,
    /// Whether it stands in the process it protects and so may believe how busy that is.
    is_inside: bool,
    /// Whether requests may wait for as long as the gateway lets them, who does not know the callers' patience.
    waits_by_baseline: bool,
}

impl Guarded {
    /// In front of a process, for callers who wait this long.
    pub(super) fn new(patience: Duration) -> Self {
        Self::made_of(patience, 20).expect("the sizes of scenarios are in their ranges")
    }

    /// In the process itself, with so many places to start with.
    pub(super) fn inside(patience: Duration, start: u32) -> Self {
        let made = Self::made_of(patience, start).expect("the sizes of scenarios are in their ranges");
        Self { is_inside: true, ..made }
    }

    /// A wait of a quarter of the patience leaves three quarters for the work, and keeps P of O1 below 3. First
    /// in, first out: in O2b, where critical_plus alone fills the service, newest first loses 7 % of it instead of
    /// 3 %, because whoever is buried for 50 ms leaves though the queue would have emptied. A wait of
    /// three quarters with a law that drops earlier is a trade: with two workers it serves .994 to .998 of O2a's critical
    /// instead of .972 to .978, and is further from P of O1. Either passes with ten.
    fn made_of(patience: Duration, start: u32) -> Result<Self, Invalid> {
        let bounds = concurrency::Bounds::new(2..=400)?.starting_at(start)?;
        let controller = Controller::new(Vegas, bounds, Objective::half_of(UPSTREAM_TIMEOUT)?);
        Ok(Self {
            limiter: Arc::new(Adaptive::new(controller, Windowing::default(), Moment::ORIGIN)),
            queue: Queue::new(queue::Bounds::new(patience / 4)?, Order::Fifo)?,
            is_inside: false,
            waits_by_baseline: false,
        })
    }

    /// As the gateway has it, which is told nothing of callers.
    pub(super) fn as_gateway() -> Self {
        let made =
            Self::made_of(LONGEST_WAIT * 4, FIRST_LIMIT).expect("the gateway's sizes are in their ranges");
        let order = Order::Fair(Fair::new(0));
        let bounds = queue::Bounds::new(LONGEST_WAIT).expect("a second is in range");
        let queue = Queue::new(bounds, order).expect("turns contradict no bounds");
        Self { queue, waits_by_baseline: true, ..made }
    }

    /// Lets requests wait for as long as an answer takes without load, and twice as long in a burst.
    pub(super) fn renew_waits(&mut self) {
        let Some(baseline) = self.limiter.baseline().filter(|_| self.waits_by_baseline) else { return };
        let wait = baseline.clamp(SHORTEST_WAIT, LONGEST_WAIT);
        let renewed = self.queue.set_waits(wait, (wait * 2).min(LONGEST_WAIT));
        renewed.expect("both are above zero and below ten minutes");
    }

    /// Which share of the places is taken.
    pub(super) fn busy(&self) -> f64 {
        self.limiter.in_flight() as f64 / f64::from(self.limiter.limit())
    }

    /// How many wait for one.
    pub(super) fn waiting(&self) -> u64 {
        self.queue.len() as u64
    }

    /// Whether a place is free that nobody waits for.
    pub(super) fn has_room(&self) -> bool {
        self.queue.is_empty() && self.limiter.in_flight() < u64::from(self.limiter.limit())
    }

    fn take(&self, now: Moment, asked: &Asked) -> Option<Passed> {
        let permit = self.limiter.admit_shared(now, asked.criticality).admitted()?;
        Some(Passed::new(asked, Some(permit)))
    }
}

impl Gate for Guarded {
    fn arrive(&mut self, now: Moment, asked: Asked, _: Roll, refused: &mut Vec<Asked>) -> Arrived {
        if self.queue.is_empty()
            && let Some(passed) = self.take(now, &asked)
        {
            return Arrived::Pass(passed);
        }
        let entry = Entry {
            key: self.queue.key(&asked.user),
            criticality: asked.criticality,
            deadline: Some(asked.deadline),
            ..Entry::new(asked)
        };
        // The newcomer is told by the verdict.
        let others = |left: Left<Asked>| {
            if left.entry.payload.id != asked.id {
                refused.push(left.entry.payload);
            }
        };
        match self.queue.push(entry, now, others) {
            Verdict::Admit(_) => Arrived::Wait,
            Verdict::Refuse(_) => Arrived::Refuse,
        }
    }

    fn next(&mut self, now: Moment, refused: &mut Vec<Asked>) -> Option<Passed> {
        if self.limiter.in_flight() >= u64::from(self.limiter.limit()) {
            return None;
        }
        // The gateway sees that callers leave, and not when they will.
        if let Some(baseline) = self.limiter.baseline().filter(|_| !self.waits_by_baseline) {
            self.queue.expect_service(baseline);
        }
        let served = self.queue.pop(now, |left| refused.push(left.entry.payload))?;
        self.take(now, &served.entry.payload)
    }

    fn tell(&mut self, used: Ratio) {
        if self.is_inside {
            self.limiter.tell(Surroundings { utilisation: Some(used), is_dependency_slow: false });
        }
    }

    fn is_waiting_for_others(&self) -> bool {
        self.limiter.last().is_some_and(|change| change.why == Why::Dependency)
    }

    fn limit(&self) -> Option<f64> {
        Some(f64::from(self.limiter.limit()))
    }
}

/// No limit of its own; counts which attempts arrive, to advise whoever is refused.
#[derive(Debug)]
pub(super) struct Counting {
    histogram: AttemptHistogram,
}

impl Default for Counting {
    fn default() -> Self {
        Self { histogram: AttemptHistogram::new(HistogramRule::default()) }
    }
}

impl Gate for Counting {
    fn arrive(&mut self, _: Moment, asked: Asked, _: Roll, _: &mut Vec<Asked>) -> Arrived {
        Arrived::Pass(Passed::new(&asked, None))
    }

    fn seen(&mut self, asked: &Asked) {
        self.histogram.record(asked.attempt);
    }

    fn advice(&mut self) -> Advice {
        self.histogram.refuse()
    }
}
