//! What became of a limit after a window, and why.

use std::fmt;

/// Why a limit was raised, cut or left alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Why {
    /// Places were used up and nothing spoke against more of them.
    Headroom,
    /// Places were used up, requests as fast as without load, and nothing has spoken against more since the start.
    SlowStart,
    /// Requests wait inside the service: the latency is above what it is without load.
    Queueing,
    /// The service said that it was overloaded.
    Overloaded,
    /// The latency is above the operator's target.
    Objective,
    /// More places had made requests slower and not more of them.
    Throughput,
    /// The limit has rested for long while requests take longer than without load: is there a queue at all?
    Probe,
    /// Between room to grow and a reason to shrink.
    Steady,
    /// Less than half of the places were in use, so nothing was learnt about more of them.
    Unused,
    /// Less than half of what ended had succeeded, or most of it slowly and for nobody: too little to learn from.
    Unproven,
    /// The time is spent in something the service depends on: fewer places would not help, more of them do while the
    /// service itself is idle.
    Dependency,
    /// The limit is as low as the operator allows.
    Floor,
    /// The limit is as high as the operator allows.
    Ceiling,
    /// The limit does not adapt.
    Fixed,
    /// The operator changed the bounds.
    Operator,
}

impl Why {
    /// The reason as one word for logs and metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Headroom => "headroom",
            Self::SlowStart => "slow_start",
            Self::Queueing => "queueing",
            Self::Overloaded => "overloaded",
            Self::Objective => "objective",
            Self::Throughput => "throughput",
            Self::Probe => "probe",
            Self::Steady => "steady",
            Self::Unused => "unused",
            Self::Unproven => "unproven",
            Self::Dependency => "dependency",
            Self::Floor => "floor",
            Self::Ceiling => "ceiling",
            Self::Fixed => "fixed",
            Self::Operator => "operator",
        }
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What one window made of the limit. A limit that was left alone has its reason too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// The limit before.
    pub from: u32,
    /// The limit after.
    pub to: u32,
    /// Why.
    pub why: Why,
}

impl Change {
    /// Whether the limit is another one now.
    #[must_use]
    pub const fn is_change(&self) -> bool {
        self.from != self.to
    }
}

impl fmt::Display for Change {
    /// Writes `20 -> 26 (headroom)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} -> {} ({})", self.from, self.to, self.why)
    }
}
