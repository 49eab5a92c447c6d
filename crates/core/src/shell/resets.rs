//! Which charges were made before their key was reset.
//!
//! A reset forgets what a key has consumed, and with it what its open charges took. When one of these is refunded
//! afterwards, what it took is no longer there to be given back: it would be credit for what others took since.
//! From the due number alone that cannot be told, for a charge before the reset and one after it may be the same
//! stretch of due time. So resets are counted, and a charge carries how many there had been. Whoever would give back
//! asks whether the key was reset since.
//!
//! The last [`KEPT`] resets are remembered by key. A charge that is open while more keys than that are reset is given
//! nothing back, as is one made while its own key is being reset: the strict side.

use std::collections::VecDeque;
use std::sync::PoisonError;

use crate::rate::Correction;
use crate::sync::{AtomicU32, Ordering, RwLock};

/// Resets remembered by key: room for an operator's afternoon.
const KEPT: usize = 1024;

/// Each is noted twice.
const NOTES: usize = 2 * KEPT;

#[derive(Debug)]
pub(crate) struct Resets {
    /// How many notes there were. It comes round after four thousand million, when no charge of the first is open.
    count: AtomicU32,
    last: RwLock<VecDeque<u64>>,
}

impl Resets {
    pub(crate) fn new() -> Self {
        Self { count: AtomicU32::new(0), last: RwLock::new(VecDeque::new()) }
    }

    /// How many notes there were so far, for a charge that is about to be made. Acquire pairs with the release of a
    /// reset: who counts it finds the key reset.
    #[inline]
    pub(crate) fn count(&self) -> u32 {
        self.count.load(Ordering::Acquire)
    }

    /// Forgets what a key consumed: `forget` does it. Counted before, so that no charge of before is given back
    /// after, and once more after, for charges made meanwhile.
    pub(crate) fn reset(&self, key: u64, forget: impl FnOnce()) {
        self.note(key);
        forget();
        self.note(key);
    }

    fn note(&self, key: u64) {
        let mut last = self.last.write().unwrap_or_else(PoisonError::into_inner);
        if last.len() == NOTES {
            last.pop_front();
        }
        last.push_back(key);
        self.count.fetch_add(1, Ordering::Release);
    }

    /// Has `write` write down the correction of a charge that was made at this count. Nothing is given back when the
    /// key has been reset since, or may have been.
    ///
    /// No reset begins before it is written: after a reset the key may come to be due when it was before, and
    /// `write` would take what others took since for what it has read.
    pub(crate) fn correct<T>(
        &self,
        key: u64,
        made: u32,
        correction: Correction,
        write: impl FnOnce(Correction) -> T,
    ) -> T {
        if let Correction::More(_) | Correction::Less(0) = correction {
            return write(correction);
        }
        let last = self.last.read().unwrap_or_else(PoisonError::into_inner);
        let since = self.count().wrapping_sub(made) as usize;
        let is_forgotten = since > last.len() || last.iter().rev().take(since).any(|&reset| reset == key);
        write(if is_forgotten { Correction::Less(0) } else { correction })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_forgotten(resets: &Resets, key: u64, made: u32) -> bool {
        resets.correct(key, made, Correction::Less(1), |correction| matches!(correction, Correction::Less(0)))
    }

    #[test]
    fn a_reset_concerns_earlier_charges_of_its_key_and_very_old_ones_of_all() {
        let resets = Resets::new();
        let before = resets.count();
        resets.reset(1, || ());
        let after = resets.count();
        assert!(is_forgotten(&resets, 1, before) && !is_forgotten(&resets, 2, before));
        assert!(!is_forgotten(&resets, 1, after));
        for _ in 0..KEPT {
            resets.reset(2, || ());
        }
        assert!(is_forgotten(&resets, 3, before));
        assert!(!is_forgotten(&resets, 3, after) && is_forgotten(&resets, 2, after));
    }
}
