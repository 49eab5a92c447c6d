//! What a gateway tells of overload: limits, signals, what is shed and what would help.

use std::fmt;
use std::time::Duration;

use tidegate_core::Moment;
use tidegate_core::concurrency::Change;

pub use tidegate_proxy::CapacityStatus;

/// What stands before an upstream. Levels are in the order of [`Criticality::ALL`](tidegate_core::Criticality::ALL).
#[derive(Clone, Debug, PartialEq)]
pub struct ConcurrencyStatus {
    /// How the limit is found, as it is written in policies.
    pub algorithm: &'static str,
    /// How many may be in flight.
    pub limit: u32,
    /// How many are.
    pub in_flight: u64,
    /// How many of each level wait for a place.
    pub waiting: [u64; 4],
    /// How long those waited who were served lately.
    pub queue_delay: Duration,
    /// What a request takes without load, as far as is known.
    pub baseline: Option<Duration>,
    /// The last changes of the limit, the oldest first.
    pub changes: Vec<(Moment, Change)>,
    /// What was last made of the limit, also if it was left alone.
    pub last: Option<Change>,
    /// The share of each level that is refused at once, from 0 to 1.
    pub shed: [f64; 4],
    /// How much of the capacity there is would be needed for all who come: 1 is just enough.
    pub wanted_ratio: f64,
    /// How busy the upstream says it is, from 0 to 1.
    pub utilization: Option<f64>,
    /// Whether callers are told not to retry, because so many of them do.
    pub advises_against_retries: bool,
}

/// A signal and its reading.
#[derive(Clone, Debug, PartialEq)]
pub struct SignalStatus {
    /// Its name in the policy.
    pub name: String,
    /// Its reading, smoothed, in its unit; none as long as nothing is known.
    pub value: Option<f64>,
}

/// A route that an operator switched to its cheaper answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SwitchedRoute {
    /// The route.
    pub route: String,
    /// When that ends; none for never.
    pub until: Option<Moment>,
}

/// What an operator wants of a route's cheaper answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DegradeSwitch {
    /// Give it, until that ends by itself or for good.
    On {
        /// For how long.
        ttl: Option<Duration>,
    },
    /// As the policy says.
    Auto,
}

/// There is nothing of this name that could be told so: a policy has come between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gone;

impl fmt::Display for Gone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("another policy has come meanwhile, which does not have it")
    }
}

impl std::error::Error for Gone {}
