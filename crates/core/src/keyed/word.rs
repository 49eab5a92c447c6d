//! How a slot fits a key and its state into one word, and a group its affairs into another.
//!
//! ```text
//! slot    [rule: 4][distance: 3][tag: 25][due: 32]        0 when vacant
//! header  [tidied: 60][reach: 3][locked: 1]               tidied all ones while moving
//! ```
//!
//! Identity and state share a word, so that whoever changes the one notices a change of the other: a slot
//! cannot be given to a new key while the old one is being charged.

#![expect(clippy::cast_possible_truncation, reason = "words are cut into fields on purpose")]

use crate::units::Moment;

/// The lower half: the last 32 bits of the due time, in grains.
const DUE: u64 = 0xffff_ffff;
/// Tag and distance: whose slot it is.
pub(crate) const IDENTITY: u64 = 0x0fff_ffff_0000_0000;

/// Who a slot belongs to: the key's tag and how many groups from its home it lies.
#[inline]
pub(crate) const fn identity(tag: u32, distance: u64) -> u64 {
    (distance << 57) | ((tag as u64) << 32)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot(pub(crate) u64);

impl Slot {
    pub(crate) const VACANT: Self = Self(0);

    #[inline]
    pub(crate) const fn new(identity: u64, stamp: u64, due: u64) -> Self {
        Self(stamp << 60 | identity | (due & DUE))
    }

    /// The same slot, due at another time under another rule.
    #[inline]
    pub(crate) const fn with_due(self, stamp: u64, due: u64) -> Self {
        Self::new(self.0 & IDENTITY, stamp, due)
    }

    /// The same slot, due at another time under the same rule.
    #[inline]
    pub(crate) const fn moved_to(self, due: u64) -> Self {
        Self(self.0 & !DUE | due & DUE)
    }

    pub(crate) const fn is_vacant(self) -> bool {
        self.0 == 0
    }

    pub(crate) const fn stamp(self) -> u64 {
        self.0 >> 60
    }

    /// How many groups from its home it lies.
    pub(crate) const fn distance(self) -> u64 {
        (self.0 >> 57) & 7
    }

    pub(crate) const fn tag(self) -> u32 {
        (self.0 >> 32) as u32 & 0x1ff_ffff
    }

    /// How far the slot is ahead of `granted`, in a group tidied within its [`PATIENCE`]: the difference of
    /// two 32-bit numbers less than half their range apart.
    #[inline]
    pub(crate) const fn ahead_of(self, granted: u64) -> u64 {
        let difference = (self.0 as u32).wrapping_sub(granted as u32);
        if difference < 1 << 31 { difference as u64 } else { 0 }
    }

    /// The full due time, in a group that was tidied when `base` was granted. Dues written since then lie
    /// between a margin before it and patience and eight extents after it: within 2^32 grains.
    pub(crate) const fn due_since(self, base: u64) -> u64 {
        let offset = (self.0 as u32).wrapping_sub(base as u32).wrapping_add(MARGIN);
        base.saturating_add(offset as u64).saturating_sub(MARGIN as u64)
    }
}

/// Ticks for which a group need not be tidied. With the margin, and with eight extents of at most 2^26
/// grains, it stays below 2^31, half of what a slot's bits can tell apart.
pub(crate) const PATIENCE: u64 = 3 << 29;

/// Grains after the last tidying at which a slot may be due, so that its group can be read at any moment since. Who
/// decides in time stays below it by itself; the debt that a late thread writes down may end here.
pub(crate) const FARTHEST: u64 = (1 << 31) - 1;

/// Grains before the last tidying at which a slot may be due: an idle one, or one that a late thread wrote.
const MARGIN: u32 = 1 << 29;

/// Grains before now at which an idle slot is made due.
pub(crate) const A_WHILE: u64 = MARGIN as u64 / 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header(pub(crate) u64);

impl Header {
    pub(crate) const LOCKED: u64 = 1;
    const REACH: u64 = 7 << 1;
    const TIDIED_SHIFT: u32 = 4;
    const TIDIED: u64 = u64::MAX << Self::TIDIED_SHIFT;

    /// When the group was last tidied.
    #[inline]
    pub(crate) const fn tidied(self) -> Beat {
        Beat(self.0 >> Self::TIDIED_SHIFT)
    }

    /// How many groups away keys at home here may be found.
    pub(crate) const fn reach(self) -> u64 {
        (self.0 & Self::REACH) >> 1
    }

    pub(crate) const fn is_locked(self) -> bool {
        self.0 & Self::LOCKED != 0
    }

    /// Whether its slots are being rewritten for an earlier time.
    pub(crate) const fn is_moving(self) -> bool {
        self.0 & Self::TIDIED == Self::TIDIED
    }

    pub(crate) const fn tidied_at(self, beat: Beat) -> Self {
        Self(self.0 & !Self::TIDIED | beat.0 << Self::TIDIED_SHIFT)
    }

    /// A time at which nobody finds the group tidy, so that the quick look need not ask for more.
    pub(crate) const fn moving(self) -> Self {
        Self(self.0 | Self::TIDIED)
    }

    pub(crate) fn with_reach(self, reach: u64) -> Self {
        Self(self.0 & !Self::REACH | self.reach().max(reach) << 1)
    }
}

/// A moment to within 2^20 ns, about a millisecond: as well as a header knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Beat(u64);

impl Beat {
    const BITS: u32 = 20;

    #[inline]
    pub(crate) const fn of(now: Moment) -> Self {
        Self(now.nanos() >> Self::BITS)
    }

    /// How many beats fit a length of time.
    pub(crate) const fn count(nanos: u64) -> u64 {
        nanos >> Self::BITS
    }

    pub(crate) const fn start(self) -> Moment {
        Moment::from_nanos(self.0 << Self::BITS)
    }

    /// How many beats after `earlier`; as good as endless when it is in fact before.
    #[inline]
    pub(crate) const fn after(self, earlier: Self) -> u64 {
        self.0.wrapping_sub(earlier.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_keeps_what_it_is_given() {
        let slot = Slot::new(identity(0x1ab_cdef, 5), 9, 0x1_0000_0007);
        assert_eq!((slot.stamp(), slot.distance(), slot.tag()), (9, 5, 0x1ab_cdef));
        assert_eq!(slot.0 & IDENTITY, identity(0x1ab_cdef, 5));
        assert_eq!(slot.ahead_of(0x1_0000_0000), 7);
        assert_eq!(slot.ahead_of(0x1_0000_0008), 0);
        assert_eq!(slot.due_since(0x1_0000_0000), 0x1_0000_0007);
        assert_eq!(slot.due_since(0x1_0000_0008), 0x1_0000_0007);
    }

    #[test]
    fn a_header_keeps_what_it_is_given() {
        let beat = Beat::of(Moment::from_nanos(u64::MAX));
        let header = Header(Header::LOCKED).tidied_at(beat).with_reach(3).with_reach(2);
        assert!(header.is_locked() && header.moving().is_moving() && !header.is_moving());
        assert_eq!(header.moving().tidied_at(beat), header);
        assert_eq!((header.tidied(), header.reach()), (beat, 3));
    }
}
