use std::hash::Hash;
use std::time::Duration;

use super::{Bounds, Codel, Fair, RequestCodel};
use crate::keyed::Key;
use crate::units::{Invalid, Moment};

/// Who is served next among entries of one criticality.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// The oldest.
    Fifo,
    /// The oldest while the queue empties often, the newest while it does not.
    Adaptive(Adaptive),
    /// The keys in turn.
    Fair(Fair),
}

/// Newest first while a queue stands.
///
/// A queue that empties every few milliseconds only evens out a burst, and serving the oldest first is
/// fair and costs nobody anything. A queue that has not been empty for a while *stands*: as much comes as
/// leaves, and everybody waits as long as it is deep. First in, first out then serves each caller just
/// before or just after it gives up. Newest first serves most callers at once, and those who would have
/// been late anyway do not get the workers' time.
///
/// The worst of it is that somebody who came early waits until the queue is empty or the time is up. At
/// low load that must not happen, and does not: there the queue empties, and the order is by age. While
/// a queue stands, one may ask in addition that nobody waits longer than a few milliseconds, so that
/// those who have no chance hear it soon, while they can still try elsewhere
/// ([`with_standing_wait`](Self::with_standing_wait)); the newest is always spared for the next worker.
///
/// A worker takes 30 ms for each, one comes every 20 ms, a queue stands after 100 ms:
///
/// | moment | waiting, by the moment each came | served | order                              |
/// |--------|----------------------------------|--------|------------------------------------|
/// | 0 ms   | 0                                | 0      | oldest first                       |
/// | 30 ms  | 20                               | 20     | oldest first, and empty once more  |
/// | 60 ms  | 40, 60                           | 40     | oldest first                       |
/// | 90 ms  | 60, 80                           | 60     | oldest first                       |
/// | 120 ms | 80, 100, 120                     | 80     | not empty since 40 ms: 80 ms       |
/// | 150 ms | 100, 120, 140                    | 140    | 110 ms: newest first               |
///
/// Numbers: Facebook takes a queue for standing after 100 ms, and then lets nobody wait more than 5 ms
/// ("Fail at Scale").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Adaptive {
    interval: Duration,
    standing_wait: Option<Duration>,
}

impl Adaptive {
    /// Newest first when the queue has not been empty for longer than `interval`.
    ///
    /// # Errors
    /// When the interval is nothing: every queue would stand.
    pub fn new(interval: Duration) -> Result<Self, Invalid> {
        if interval.is_zero() {
            return Err(Invalid::new("interval", format_args!("{interval:?}"), "above 0"));
        }
        Ok(Self { interval, standing_wait: None })
    }

    /// The same, and while a queue stands nobody but the newest waits longer than `wait`.
    ///
    /// # Errors
    /// When that is as long as the interval, in which the queue should have emptied.
    pub fn with_standing_wait(self, wait: Duration) -> Result<Self, Invalid> {
        if wait >= self.interval {
            return Err(Invalid::new("standing_wait", format_args!("{wait:?}"), "below the interval"));
        }
        Ok(Self { standing_wait: Some(wait), ..self })
    }
}

impl Order {
    /// How many lists a level has.
    pub(super) const fn width(&self) -> usize {
        match self {
            Self::Fifo | Self::Adaptive(_) => 1,
            Self::Fair(fair) => fair.width(),
        }
    }

    /// The key by which `name` takes turns; all names are one where there are no turns.
    pub(super) fn key(&self, name: &(impl Hash + ?Sized)) -> Key {
        match self {
            Self::Fifo | Self::Adaptive(_) => Key(0),
            Self::Fair(fair) => fair.key(name),
        }
    }

    pub(super) const fn standing_after(&self) -> Option<Duration> {
        match self {
            Self::Adaptive(adaptive) => Some(adaptive.interval),
            Self::Fifo | Self::Fair(_) => None,
        }
    }

    pub(super) const fn standing_wait(&self) -> Option<Duration> {
        match self {
            Self::Adaptive(adaptive) => adaptive.standing_wait,
            Self::Fifo | Self::Fair(_) => None,
        }
    }

    pub(super) fn check(&self, bounds: &Bounds) -> Result<(), Invalid> {
        match self.standing_wait() {
            Some(wait) if wait >= bounds.max_wait() => {
                Err(Invalid::new("standing_wait", format_args!("{wait:?}"), "below max_wait"))
            }
            Some(_) | None => Ok(()),
        }
    }
}

/// What drops entries before their time is up, to keep a queue short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropLaw {
    /// The law of RFC 8289: rare drops, ever more often.
    Codel(Codel),
    /// Its form for requests: in an overloaded interval, everything that waited too long.
    Request(RequestCodel),
}

impl DropLaw {
    pub(super) fn drops(&mut self, now: Moment, waited: Duration, is_last: bool) -> bool {
        match self {
            Self::Codel(law) => law.drops(now, waited, is_last),
            Self::Request(law) => law.drops(now, waited, is_last),
        }
    }

    pub(super) fn check(&self, bounds: &Bounds) -> Result<(), Invalid> {
        let (field, acts_above) = match self {
            Self::Codel(law) => ("target", law.target()),
            Self::Request(law) => ("slough", law.slough()),
        };
        if acts_above >= bounds.max_wait() {
            return Err(Invalid::new(field, format_args!("{acts_above:?}"), "below max_wait"));
        }
        Ok(())
    }
}
