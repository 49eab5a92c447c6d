//! What a gateway tells of overload: limits, signals, what is shed and what would help.

use std::fmt;
use std::time::Duration;

use tidegate_core::Moment;

pub use tidegate_proxy::CapacityStatus;
pub use tidegate_tower::bulkhead::Status as ConcurrencyStatus;

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
