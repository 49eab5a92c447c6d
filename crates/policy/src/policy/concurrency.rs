use std::ops::RangeInclusive;
use std::time::Duration;

/// How many requests an upstream may have in flight, and how the others wait for a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Concurrency {
    /// How the limit is found.
    pub algorithm: LimitAlgorithm,
    /// The lowest limit.
    pub min: u32,
    /// The highest limit; where the algorithm is fixed, the limit.
    pub max: u32,
    /// How long an answer may take before the limit shrinks, however long answers took before; half of the
    /// upstream's timeout where nobody says.
    pub latency: Option<Duration>,
    /// How requests wait.
    pub queue: WaitingQueue,
}

/// How a limit is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitAlgorithm {
    /// It is known.
    Fixed,
    /// From what the service refuses.
    Aimd,
    /// From the queue inside the service.
    Vegas,
    /// From how much slower answers become.
    Gradient,
}

/// How requests wait for a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitingQueue {
    /// How long at most, nobody at all if it is zero; where nobody says, as long as an answer takes without load, within
    /// [`PATIENCE`](Self::PATIENCE).
    pub timeout: Option<Duration>,
    /// Who comes first among those of the same criticality.
    pub order: WaitingOrder,
    /// How many may wait, so that memory is bounded.
    pub max_waiting: usize,
}

/// Who comes first among those of the same criticality.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitingOrder {
    /// The oldest.
    Fifo,
    /// The oldest, and the newest while a queue stands.
    AdaptiveLifo,
    /// The oldest, and while a queue stands some leave early.
    Codel,
    /// The callers in turn.
    Fair,
}

impl Default for Concurrency {
    /// Finds the limit by itself.
    fn default() -> Self {
        Self {
            algorithm: LimitAlgorithm::Vegas,
            min: 10,
            max: 1_000,
            latency: None,
            queue: WaitingQueue::default(),
        }
    }
}

impl WaitingQueue {
    /// How long requests wait at least and at most where nobody says. While it is not known what an answer takes, it
    /// is the most: whoever refuses then knows too little to do so.
    pub const PATIENCE: RangeInclusive<Duration> = Duration::from_millis(50)..=Duration::from_secs(1);
}

impl Default for WaitingQueue {
    fn default() -> Self {
        Self { timeout: None, order: WaitingOrder::Fair, max_waiting: 10_000 }
    }
}

impl LimitAlgorithm {
    /// As it is written in policies.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Fixed => "fixed",
            Self::Aimd => "aimd",
            Self::Vegas => "vegas",
            Self::Gradient => "gradient",
        }
    }
}
