//! Chance, for what nobody must be able to foresee and nothing depends on exactly.

use std::cell::Cell;
use std::hash::{BuildHasher, RandomState};

/// A number nobody chose: a step of xorshift, seeded by the system for each thread.
pub(crate) fn roll() -> u64 {
    thread_local! {
        static STATE: Cell<u64> = Cell::new(RandomState::new().hash_one(()) | 1);
    }
    STATE.with(|state| {
        let mut roll = state.get();
        roll ^= roll << 13;
        roll ^= roll >> 7;
        roll ^= roll << 17;
        state.set(roll);
        roll
    })
}
