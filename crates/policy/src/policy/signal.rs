use std::fmt;
use std::sync::Arc;

/// The most signals of a policy's own: each is kept, smoothed and exported.
pub const MOST_SIGNALS: usize = 32;

/// A measurement that shed rules can have a target for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SignalName {
    /// The share of the upstreams' limits that is in use.
    InFlight,
    /// How long requests wait for a place.
    QueueDelay,
    /// How late the workers' loops are.
    EventLoop,
    /// The share of the processors that the process may use.
    Cpu,
    /// The share of the memory that the process may use.
    Memory,
    /// The share of the time in which somebody waits for memory.
    MemoryPressure,
    /// How busy the upstreams say they are.
    UpstreamUtilization,
    /// One of the policy's own.
    Own(Arc<str>),
}

/// What the readings of a signal are, and so its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignalUnit {
    /// A share, from 0 to 1.
    Share,
    /// Seconds.
    Time,
    /// A number whose meaning only the policy knows, or a share.
    Number,
}

impl SignalName {
    /// Those that every gateway measures.
    pub const KNOWN: [Self; 7] = [
        Self::InFlight,
        Self::QueueDelay,
        Self::EventLoop,
        Self::Cpu,
        Self::Memory,
        Self::MemoryPressure,
        Self::UpstreamUtilization,
    ];

    /// Those of each upstream.
    pub const OF_UPSTREAMS: [Self; 3] = [Self::InFlight, Self::QueueDelay, Self::UpstreamUtilization];

    /// As it is written in policies and metrics.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::InFlight => "in_flight",
            Self::QueueDelay => "queue_delay",
            Self::EventLoop => "event_loop",
            Self::Cpu => "cpu",
            Self::Memory => "memory",
            Self::MemoryPressure => "memory_pressure",
            Self::UpstreamUtilization => "upstream_utilization",
            Self::Own(name) => name,
        }
    }

    /// What its readings are.
    #[must_use]
    pub const fn unit(&self) -> SignalUnit {
        match self {
            Self::QueueDelay | Self::EventLoop => SignalUnit::Time,
            Self::InFlight | Self::Cpu | Self::Memory | Self::MemoryPressure | Self::UpstreamUtilization => {
                SignalUnit::Share
            }
            Self::Own(_) => SignalUnit::Number,
        }
    }
}

impl fmt::Display for SignalName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A signal of the policy's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignalSpec {
    /// What it is called; none of [`SignalName::KNOWN`].
    pub name: Arc<str>,
    /// Where its readings come from.
    pub from: SignalFrom,
}

/// Where the readings of a signal come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SignalFrom {
    /// A header field of the upstreams' responses, by its name in lower case.
    ResponseHeader(String),
    /// The admin API.
    Api,
}
