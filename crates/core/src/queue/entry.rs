use std::time::Duration;

use crate::keyed::Key;
use crate::units::{Criticality, Moment};
use crate::verdict::Reason;

/// A request that waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry<T> {
    /// Who it is counted for where keys take turns; see [`Queue::key`](super::Queue::key).
    pub key: Key,
    /// How late it should be shed.
    pub criticality: Criticality,
    /// When its answer must be there, if its caller said so.
    pub deadline: Option<Moment>,
    /// The memory it holds.
    pub bytes: u64,
    /// What the driver knows it by.
    pub payload: T,
}

impl<T> Entry<T> {
    /// A critical request of nobody in particular, without deadline, that holds no memory worth counting.
    pub fn new(payload: T) -> Self {
        Self { key: Key(0), criticality: Criticality::default(), deadline: None, bytes: 0, payload }
    }
}

/// What an entry is cancelled by. It fits no other entry, also when the place is used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Handle {
    pub(super) slot: u32,
    pub(super) generation: u32,
}

/// An entry whose turn has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Served<T> {
    /// The entry.
    pub entry: Entry<T>,
    /// How long it waited: a sample of the queue delay.
    pub waited: Duration,
}

/// An entry that leaves unserved.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "its caller waits for an answer"]
pub struct Left<T> {
    /// The entry.
    pub entry: Entry<T>,
    /// How long it waited.
    pub waited: Duration,
    /// Why it leaves.
    pub reason: Reason,
}
