//! From what a policy says to what the core is told.

use std::time::Duration;

use tidegate_core::concurrency::{
    Adaptive, Aimd, Bounds, Controller, Fixed, Gradient, Objective, Vegas, Windowing,
};
use tidegate_core::queue::{self, Codel, DropLaw, Fair, Order, Queue};
use tidegate_core::{Invalid, Moment, Ratio};
use tidegate_policy::policy::{self, Concurrency, LimitAlgorithm, WaitingOrder, WaitingQueue};

/// What an answer may take where an upstream has no timeout at all.
const LONGEST_ANSWER: Duration = Duration::from_secs(30);

/// A queue that has not been empty for so many times its longest wait stands ("Fail at Scale" has 100 ms).
const STANDS_AFTER: u32 = 2;

/// How many times as long requests may wait in a burst. Where 600 a second are critical and 1000 can be served, a pause
/// of 80 ms on their way lets 48 come at once; the last of them waits for 50 ms.
const BURST_TIMES: u32 = 2;

/// The share of the longest wait that is too long for all who wait in an interval.
const CODEL_TARGET: u32 = 10;

/// The limit to begin with. A service whose answers take 100 ms has room for 500 a second, and the limit doubles from
/// there as long as that costs nothing; one that bears ten requests has five times too many for a second.
const FIRST_LIMIT: u32 = 50;

/// Work for callers that have gone holds its place for so many times as long as work takes without load: a limit may be
/// that many times the knee before such work piles up in the service.
const GRACE_TIMES: u32 = 10;
const SHORTEST_GRACE: Duration = Duration::from_millis(100);
const LONGEST_GRACE: Duration = Duration::from_secs(2);
const UNKNOWN_GRACE: Duration = Duration::from_millis(500);

/// What is left of the limit when the service is overloaded.
const BACKOFF: f64 = 0.9;

/// A limiter for an upstream, beginning with this limit if one has been found before.
pub(super) fn limiter(
    upstream: &policy::Upstream,
    found: Option<u32>,
    now: Moment,
) -> Result<Adaptive, Invalid> {
    let (objective, bounds) = (objective(upstream)?, bounds(&upstream.concurrency)?);
    let bounds = bounds.starting_at(found.unwrap_or(FIRST_LIMIT).clamp(bounds.min(), bounds.max()))?;
    let controller = match upstream.concurrency.algorithm {
        LimitAlgorithm::Fixed => Controller::new(Fixed, bounds, objective),
        LimitAlgorithm::Aimd => Controller::new(aimd(objective)?, bounds, objective),
        LimitAlgorithm::Vegas => Controller::new(Vegas, bounds, objective),
        LimitAlgorithm::Gradient => Controller::new(Gradient::default(), bounds, objective),
    };
    Ok(Adaptive::new(controller, Windowing::default(), now))
}

/// What the limiter of an upstream that has changed is to be held to.
#[derive(Debug)]
pub struct NewTerms {
    algorithm: LimitAlgorithm,
    aimd: Aimd,
    objective: Objective,
    bounds: Bounds,
}

impl NewTerms {
    pub(super) fn of(upstream: &policy::Upstream) -> Result<Self, Invalid> {
        let (objective, bounds) = (objective(upstream)?, bounds(&upstream.concurrency)?);
        Ok(Self { algorithm: upstream.concurrency.algorithm, aimd: aimd(objective)?, objective, bounds })
    }

    /// Holds a limiter to them that is in use. What it has learnt stays.
    pub(super) fn hold(self, limiter: &Adaptive, now: Moment) {
        limiter.reconfigure(now, |controller| {
            match self.algorithm {
                LimitAlgorithm::Fixed => controller.set_algorithm(Fixed),
                LimitAlgorithm::Aimd => controller.set_algorithm(self.aimd),
                LimitAlgorithm::Vegas => controller.set_algorithm(Vegas),
                LimitAlgorithm::Gradient => controller.set_algorithm(Gradient::default()),
            }
            controller.set_objective(self.objective);
            controller.set_bounds(self.bounds)
        });
    }
}

fn objective(upstream: &policy::Upstream) -> Result<Objective, Invalid> {
    match (upstream.concurrency.latency, upstream.timeout) {
        (Some(latency), _) => Objective::latency(latency),
        (None, Some(timeout)) => Objective::half_of(timeout),
        (None, None) => Objective::latency(LONGEST_ANSWER),
    }
}

fn bounds(concurrency: &Concurrency) -> Result<Bounds, Invalid> {
    let Concurrency { algorithm, min, max, .. } = *concurrency;
    match algorithm {
        LimitAlgorithm::Fixed => Bounds::exactly(max),
        LimitAlgorithm::Aimd | LimitAlgorithm::Vegas | LimitAlgorithm::Gradient => Bounds::new(min..=max),
    }
}

fn aimd(objective: Objective) -> Result<Aimd, Invalid> {
    Aimd::new(Ratio::new(BACKOFF)?, objective.target())
}

/// How long requests may wait, given what an answer takes without load; and how long in a burst, which is as long where
/// the policy says a time.
pub(super) fn patience(spec: &WaitingQueue, baseline: Option<Duration>) -> (Duration, Duration) {
    let (least, most) = (*WaitingQueue::PATIENCE.start(), *WaitingQueue::PATIENCE.end());
    match (spec.timeout, baseline) {
        (Some(timeout), _) => (timeout, timeout),
        (None, None) => (most, most),
        (None, Some(baseline)) => {
            let patience = baseline.clamp(least, most);
            (patience, (patience * BURST_TIMES).min(most))
        }
    }
}

/// For how long the upstream is taken to be at work for a caller that has gone.
pub(super) fn grace(baseline: Option<Duration>) -> Duration {
    baseline.map_or(UNKNOWN_GRACE, |baseline| (baseline * GRACE_TIMES).clamp(SHORTEST_GRACE, LONGEST_GRACE))
}

pub(super) fn queue<T>(spec: &WaitingQueue, seed: u64) -> Result<Option<Queue<T>>, Invalid> {
    let (patience, in_burst) = patience(spec, None);
    if patience.is_zero() {
        return Ok(None);
    }
    // The laws of a queue go by the shortest that its longest wait can be.
    let shortest = spec.timeout.unwrap_or(*WaitingQueue::PATIENCE.start());
    let bounds =
        queue::Bounds::new(patience)?.with_burst_wait(in_burst)?.with_max_entries(spec.max_waiting)?;
    let queue = match spec.order {
        WaitingOrder::Fifo => Queue::new(bounds, Order::Fifo)?,
        WaitingOrder::AdaptiveLifo => {
            let stands = queue::Adaptive::new(shortest * STANDS_AFTER)?;
            Queue::new(bounds, Order::Adaptive(stands))?
        }
        WaitingOrder::Codel => {
            let law = Codel::new(shortest / CODEL_TARGET, shortest * STANDS_AFTER)?;
            Queue::new(bounds, Order::Fifo)?.with_drop_law(DropLaw::Codel(law))?
        }
        WaitingOrder::Fair => Queue::new(bounds, Order::Fair(Fair::new(seed)))?,
    };
    Ok(Some(queue))
}
