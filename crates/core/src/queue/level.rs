use std::time::Duration;

use super::DropLaw;
use crate::units::Moment;

/// What the queue knows of one level of criticality: at most 64 lists, and whether they have been empty.
#[derive(Debug, Default)]
pub(super) struct Level {
    pub(super) length: usize,
    pub(super) bytes: u64,
    pub(super) law: Option<DropLaw>,
    /// One bit for each list that holds somebody.
    occupied: u64,
    /// The list whose turn it is.
    turn: u32,
    /// When it last had nobody waiting.
    was_empty: Moment,
}

impl Level {
    pub(super) fn enters(&mut self, list: usize, bytes: u64, now: Moment) {
        if self.length == 0 {
            self.was_empty = now;
        }
        self.length += 1;
        self.bytes += bytes;
        self.occupied |= 1 << list;
    }

    pub(super) fn leaves(&mut self, list: usize, bytes: u64, is_list_empty: bool, now: Moment) {
        self.length -= 1;
        self.bytes -= bytes;
        if is_list_empty {
            self.occupied &= !(1 << list);
        }
        if self.length == 0 {
            self.was_empty = now;
        }
    }

    /// Whether it has not been empty for longer than `interval`.
    pub(super) fn stands(&self, interval: Duration, now: Moment) -> bool {
        self.length > 0 && now.since(self.was_empty) > interval
    }

    /// The first list that holds somebody, from the one whose turn it is.
    pub(super) const fn next_list(&self) -> Option<usize> {
        if self.occupied == 0 {
            return None;
        }
        let ahead = self.occupied.rotate_right(self.turn).trailing_zeros();
        Some(((ahead + self.turn) % u64::BITS) as usize)
    }

    /// After this list was served, the one behind it is next.
    pub(super) fn turn_passes(&mut self, list: usize) {
        self.turn = u32::try_from(list + 1).unwrap_or(0) % u64::BITS;
    }
}
