use std::time::Duration;

use tidegate_core::concurrency::Change;
use tidegate_core::{Criticality, Moment, Ratio};

use super::{Bulkhead, RefusedHere, lock};

/// What a bulkhead is doing; levels are in the order of [`Criticality::ALL`].
#[derive(Clone, Debug, PartialEq)]
pub struct Status {
    /// How many may be in flight.
    pub limit: u32,
    /// How many are.
    pub in_flight: u64,
    /// How many of each level wait for a place.
    pub waiting: [u64; 4],
    /// How long those waited who were served lately; zero for those who found a place at once.
    pub queue_delay: Duration,
    /// What a request takes without load, as far as is known.
    pub baseline: Option<Duration>,
    /// The last changes of the limit, the oldest first.
    pub changes: Vec<(Moment, Change)>,
    /// What the last window made of the limit, also if it left it alone.
    pub last: Option<Change>,
    /// The share of each level that is refused at the edge.
    pub shed: [Ratio; 4],
    /// Who has been refused, and why.
    pub refused: Vec<RefusedHere>,
    /// How much of the capacity there is would be needed for all who come: 1 is just enough. Below 1 it is a guess, unless
    /// the upstream says how busy it is.
    pub wanted_ratio: f64,
    /// How busy the upstream says it is.
    pub utilization: Option<f64>,
    /// Whether callers are told not to retry, because so many of them do.
    pub advises_against_retries: bool,
}

impl Bulkhead {
    /// How many may be in flight.
    #[must_use]
    pub fn limit(&self) -> u32 {
        self.shared.limiter.limit()
    }

    /// The share of its places that is in use.
    #[must_use]
    pub fn busy(&self) -> f64 {
        let in_flight = u32::try_from(self.shared.limiter.in_flight()).unwrap_or(u32::MAX);
        f64::from(in_flight) / f64::from(self.limit().max(1))
    }

    /// How long those waited who were served lately.
    #[must_use]
    pub fn queue_delay(&self, now: Moment) -> Duration {
        self.shared.flows.queue_delay(now)
    }

    /// How busy the upstream says it is.
    #[must_use]
    pub fn utilization(&self, now: Moment) -> Option<f64> {
        self.shared.flows.utilization(now)
    }

    /// What it is doing.
    #[must_use]
    pub fn status(&self, now: Moment) -> Status {
        let shared = &*self.shared;
        let edge = shared.edge.edge();
        let waiting = shared.queue.as_ref().map_or([0; 4], |queue| {
            let queue = lock(queue);
            Criticality::ALL.map(|level| queue.waiting(level) as u64)
        });
        Status {
            limit: shared.limiter.limit(),
            in_flight: shared.limiter.in_flight(),
            waiting,
            queue_delay: shared.flows.queue_delay(now),
            baseline: shared.limiter.baseline(),
            changes: shared.limiter.recent(),
            last: shared.limiter.last(),
            shed: Criticality::ALL.map(|level| edge.refused(level)),
            refused: shared.flows.refused(),
            wanted_ratio: shared.flows.wanted(now),
            utilization: shared.flows.utilization(now),
            advises_against_retries: shared.attempts.is_holding(),
        }
    }
}
