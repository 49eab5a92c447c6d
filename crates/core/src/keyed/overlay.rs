//! What an operator ordered for single keys, until it ends.
//!
//! Few keys have orders, and every decision must ask whether its key has one. Most of the time there are no
//! orders at all, and a count of them says so. While there are some, a decision reads one word of a **sieve**: 64 words of 64 bits, in which every ordered key has set the bit that its hash
//! picks. With the usual handful of orders, all but one other key in a thousand go on without touching
//! the list. The list holds at most [`MOST`] orders; one more is refused, not dropped.

use std::sync::PoisonError;
use std::time::Duration;

use super::key::Key;
use crate::sync::{AtomicU64, Ordering, RwLock};
use crate::units::{Cost, Invalid};
use crate::verdict::Usage;

/// Orders one table holds at once: room for an incident's worth of them; at a thousand, the sieve still
/// spares three decisions in four.
const MOST: usize = 1024;
const WORDS: usize = 64;

/// What an operator ordered for one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Override {
    /// Refuse everything.
    Block,
    /// Let the key have this many times its quota: rate and burst alike.
    Boost(u32),
}

#[derive(Debug)]
pub(crate) struct Overlay {
    /// How many orders stand: none, most of the time.
    count: AtomicU64,
    sieve: [AtomicU64; WORDS],
    orders: RwLock<Vec<Order>>,
}

#[derive(Clone, Copy, Debug)]
struct Order {
    key: Key,
    what: Override,
    /// In nanoseconds of the table's clock.
    until: u64,
}

impl Overlay {
    pub(crate) fn new() -> Self {
        let sieve = [(); WORDS].map(|()| AtomicU64::new(0));
        Self { count: AtomicU64::new(0), sieve, orders: RwLock::new(Vec::new()) }
    }

    /// Whether nobody has an order.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        // Relaxed: an order may take effect a moment later on another core, like any order does.
        self.count.load(Ordering::Relaxed) == 0
    }

    /// The order for `key` and how long it still stands, if it has one.
    pub(crate) fn order(&self, key: Key, now: u64) -> Option<(Override, Duration)> {
        let (word, bit) = sieve_bit(key);
        if self.sieve[word].load(Ordering::Relaxed) & bit == 0 { None } else { self.look_up(key, now) }
    }

    #[cold]
    fn look_up(&self, key: Key, now: u64) -> Option<(Override, Duration)> {
        let orders = self.orders.read().unwrap_or_else(PoisonError::into_inner);
        let order = orders.iter().find(|order| order.key == key && order.until > now)?;
        Some((order.what, Duration::from_nanos(order.until - now)))
    }

    /// Orders `what` for `key` until then, in place of what was ordered for it before.
    pub(crate) fn set(&self, key: Key, what: Override, now: u64, until: u64) -> Result<(), Invalid> {
        if let Override::Boost(0) = what {
            return Err(Invalid::new("boost", 0, "at least 1; block the key to give it nothing"));
        }
        let mut orders = self.orders.write().unwrap_or_else(PoisonError::into_inner);
        orders.retain(|order| order.key != key && order.until > now);
        if orders.len() >= MOST {
            return Err(Invalid::new("overrides of one table", MOST + 1, "at most 1024 at once"));
        }
        orders.push(Order { key, what, until });
        self.sift(&orders);
        Ok(())
    }

    /// Ends what was ordered for `key`.
    pub(crate) fn clear(&self, key: Key) {
        let mut orders = self.orders.write().unwrap_or_else(PoisonError::into_inner);
        orders.retain(|order| order.key != key);
        self.sift(&orders);
    }

    /// Writes the sieve anew. A bit that stays set is never cleared in between.
    fn sift(&self, orders: &[Order]) {
        for (index, word) in self.sieve.iter().enumerate() {
            let bits = orders.iter().map(|order| sieve_bit(order.key)).filter(|(at, _)| *at == index);
            word.store(bits.fold(0, |word, (_, bit)| word | bit), Ordering::Relaxed);
        }
        self.count.store(orders.len() as u64, Ordering::Relaxed);
    }
}

impl Override {
    /// What the counter's usage means to a key under the order.
    pub(crate) fn seen(self, usage: Usage) -> Usage {
        match self {
            Self::Block => Usage { remaining: Cost::ZERO, ..usage },
            Self::Boost(times) => Usage {
                limit: usage.limit.times(times),
                used: usage.used.times(times),
                remaining: usage.remaining.times(times),
                reset: usage.reset,
            },
        }
    }
}

const fn sieve_bit(key: Key) -> (usize, u64) {
    let bits = key.0 % (WORDS as u64 * 64);
    ((bits / 64) as usize, 1 << (bits % 64))
}
