//! What an operator ordered for single keys, until it ends.
//!
//! Few keys have orders, and every decision must ask whether its key has one. Most of the time there are no
//! orders at all, and a count of them says so. While there are some, a decision reads one word of a **sieve**: 64
//! words of 64 bits, in which every ordered key has set the bit that its hash picks. With the usual handful of orders,
//! all but one other key in a thousand go on without touching the list. The list holds at most [`MOST`] orders; one
//! more is refused, not dropped.
//!
//! Orders end by themselves, and nobody may ever touch the list again. So it is known when the last of them ends, and
//! from that moment on nobody looks further. The first decision an hour later clears the list, and not sooner: the
//! clock may be wrong and be put right, and what is cleared does not come back. An order of 10 minutes for ann and one
//! of 20 for bob:
//!
//! | decision for | at     | count | is slowed by                                                    |
//! |--------------|--------|-------|-----------------------------------------------------------------|
//! | cid          | 5 min  | 2     | one word of the sieve                                           |
//! | ann          | 15 min | 2     | one word of the sieve and the list, where her order has ended   |
//! | cid          | 20 min | 2     | the question when the last order ends                           |
//! | cid          | 80 min | 2     | clearing the list                                               |
//! | cid          | 81 min | 0     | nothing                                                         |

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

/// Nanoseconds for which an order is kept after its end: an hour. A clock that was ahead by less loses no order.
const KEPT: u64 = 3_600_000_000_000;

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
    /// When the last of the orders ends, in nanoseconds of the table's clock.
    last_end: AtomicU64,
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

impl Order {
    /// Whether it may stand again if the clock is put right.
    const fn is_kept(&self, now: u64) -> bool {
        now < self.until.saturating_add(KEPT)
    }
}

impl Overlay {
    pub(crate) fn new() -> Self {
        let sieve = [(); WORDS].map(|()| AtomicU64::new(0));
        Self { count: AtomicU64::new(0), last_end: AtomicU64::new(0), sieve, orders: RwLock::new(Vec::new()) }
    }

    /// Whether nobody has an order.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        // Relaxed: an order may take effect a moment later on another core, like any order does.
        self.count.load(Ordering::Relaxed) == 0
    }

    /// The order for `key` and how long it still stands, if it has one.
    pub(crate) fn order(&self, key: Key, now: u64) -> Option<(Override, Duration)> {
        // Relaxed: whoever clears looks at the list itself.
        let last_end = self.last_end.load(Ordering::Relaxed);
        if now >= last_end {
            if now >= last_end.saturating_add(KEPT) && !self.is_empty() {
                self.end(now);
            }
            return None;
        }
        let (word, bit) = sieve_bit(key);
        if self.sieve[word].load(Ordering::Relaxed) & bit == 0 { None } else { self.look_up(key, now) }
    }

    /// Clears the list of orders that ended long ago.
    #[cold]
    fn end(&self, now: u64) {
        // Somebody who is changing the list clears it as well. Nobody waits for that to decide.
        if let Ok(mut orders) = self.orders.try_write() {
            orders.retain(|order| order.is_kept(now));
            self.sift(&orders);
        }
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
        orders.retain(|order| order.key != key && order.is_kept(now));
        if orders.len() >= MOST {
            orders.retain(|order| order.until > now);
        }
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
        let last_end = orders.iter().map(|order| order.until).max();
        self.last_end.store(last_end.unwrap_or(0), Ordering::Relaxed);
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

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: u64 = 60_000_000_000;

    #[test]
    fn orders_end_as_in_the_example_and_leave_nothing_to_ask() {
        let overlay = Overlay::new();
        let [ann, bob, cid] = [1, 2, 3].map(Key);
        overlay.set(ann, Override::Block, 0, 10 * MINUTE).unwrap();
        overlay.set(bob, Override::Boost(2), 0, 20 * MINUTE).unwrap();
        assert_eq!(overlay.order(cid, 5 * MINUTE), None);
        assert_eq!(overlay.order(ann, 15 * MINUTE), None);
        assert_eq!(overlay.order(bob, 15 * MINUTE), Some((Override::Boost(2), Duration::from_secs(300))));
        assert!(!overlay.is_empty());
        assert_eq!(overlay.order(cid, 20 * MINUTE), None);
        assert!(!overlay.is_empty());
        assert_eq!(overlay.order(cid, 80 * MINUTE), None);
        assert!(overlay.is_empty());
        overlay.set(ann, Override::Block, 81 * MINUTE, 82 * MINUTE).unwrap();
        assert_eq!(overlay.order(ann, 81 * MINUTE), Some((Override::Block, Duration::from_secs(60))));
        overlay.clear(ann);
        assert!(overlay.is_empty());
    }

    #[test]
    fn a_clock_that_is_ahead_for_a_moment_ends_no_order_for_good() {
        let overlay = Overlay::new();
        let [ann, bob] = [1, 2].map(Key);
        overlay.set(ann, Override::Block, 0, 20 * MINUTE).unwrap();
        assert_eq!(overlay.order(ann, 21 * MINUTE), None);
        overlay.set(bob, Override::Block, 21 * MINUTE, 22 * MINUTE).unwrap();
        assert_eq!(overlay.order(ann, 6 * MINUTE), Some((Override::Block, Duration::from_secs(840))));
    }

    #[test]
    fn orders_that_have_ended_take_no_room_from_others() {
        let overlay = Overlay::new();
        for key in 0..MOST as u64 {
            overlay.set(Key(key), Override::Block, 0, MINUTE).unwrap();
        }
        assert!(overlay.set(Key(5_000), Override::Block, 0, MINUTE).is_err());
        assert!(overlay.set(Key(5_000), Override::Block, MINUTE, 2 * MINUTE).is_ok());
    }
}
