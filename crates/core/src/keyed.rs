//! A counter for each of millions of keys, chosen by strangers.
//!
//! A map that grows with its keys is a gift to whoever invents keys: it fills memory, and evicting the
//! least recently used key hands a new burst to whoever made it the least recent. The tables here have their
//! slots allocated once, for [`MaxKeys`], and follow three rules:
//!
//! - A slot is reused only when its state answers exactly as a fresh one would. So forgetting a key
//!   never gives it anything.
//! - When no slot near a newcomer's place is free or idle, it shares one **overflow** counter with all
//!   such newcomers, with the quota of a single key. So a full table is never an open door.
//! - Keys are hashed with a seed the driver drew. So nobody can aim at somebody else's slot.
//!
//! | table | for | a key takes | a decision |
//! |---|---|---|---|
//! | [`DueTable`] | token bucket, leaky bucket, smooth | 16 bytes | one cache line, one compare-and-swap |
//! | [`CellTable`] | every algorithm | 32 bytes and its state, times 1.5 | a mutex that only its own key uses |
//! | [`InFlightTable`] | places in flight | 12 bytes | one cache line, one compare-and-swap |
//!
//! Two algorithms need more memory for a key that is active than for one that is not: the log, and the sliding window
//! with more than two counters. They take it when the key's first request is counted, the log again whenever what it
//! holds has doubled, and it stays with the cell for the next key. [`Table::bytes`] counts the most that all
//! cells can come to take, and [`CellTable::most_heap`] tells it before there is a table.
//!
//! An operator can look at one key, reset it, [boost](Override::Boost) it or [block](Override::Block)
//! it for a time.

mod cells;
mod due_slots;
mod group;
mod in_flight;
mod key;
mod overlay;
mod table;
mod word;

pub use cells::{CellTable, Cells};
pub use due_slots::{DueSlots, DueTable, Foreseen};
pub use in_flight::{ForeseenPlace, InFlightTable, Place};
pub use key::{Hashing, Key, MaxKeys};
pub use overlay::Override;
pub use table::{Counter, Counters, Table};
