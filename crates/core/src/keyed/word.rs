//! How a slot fits a key and its state into one word, and a group its affairs into another.
//!
//! ```text
//! slot    [rule: 4][distance: 3][tag: 25][due: 32]        0 when vacant
//! header  [moving: 1][locked: 1][reach: 3][era: 59]
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

/// An era lasts 2^30 ns, about a second. In it, no quota's clock advances by more than 2^30 grains.
const ERA_BITS: u32 = 30;

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

    /// How far the slot is ahead of `granted`, in a group that was tidied in this era or the last: the
    /// difference of two 32-bit numbers less than half their range apart.
    #[inline]
    pub(crate) const fn ahead_of(self, granted: u64) -> u64 {
        let difference = (self.0 as u32).wrapping_sub(granted as u32);
        if difference < 1 << 31 { difference as u64 } else { 0 }
    }

    /// The full due time, in a group last tidied when `base` was granted. Dues written since then lie
    /// between half an era before and an era plus eight extents after: less than 2^32 grains in all.
    pub(crate) const fn due_since(self, base: u64) -> u64 {
        const MARGIN: u32 = 1 << 29;
        let offset = (self.0 as u32).wrapping_sub(base as u32).wrapping_add(MARGIN);
        base.saturating_add(offset as u64).saturating_sub(MARGIN as u64)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header(pub(crate) u64);

impl Header {
    const MOVING: u64 = 1 << 63;
    pub(crate) const LOCKED: u64 = 1 << 62;
    const REACH: u64 = 7 << 59;

    /// The era in which the group was last tidied.
    #[inline]
    pub(crate) const fn era(self) -> Era {
        Era(self.0 & !(Self::MOVING | Self::LOCKED | Self::REACH))
    }

    /// Whether its slots are being rewritten for an earlier time.
    #[inline]
    pub(crate) const fn is_moving(self) -> bool {
        self.0 & Self::MOVING != 0
    }

    pub(crate) const fn is_locked(self) -> bool {
        self.0 & Self::LOCKED != 0
    }

    /// How many groups away keys at home here may be found.
    #[inline]
    pub(crate) const fn reach(self) -> u64 {
        (self.0 & Self::REACH) >> 59
    }

    pub(crate) const fn with_era(self, era: Era) -> Self {
        Self(self.0 & (Self::MOVING | Self::LOCKED | Self::REACH) | era.0)
    }

    pub(crate) const fn moving(self) -> Self {
        Self(self.0 | Self::MOVING)
    }

    pub(crate) const fn settled(self) -> Self {
        Self(self.0 & !Self::MOVING)
    }

    pub(crate) fn with_reach(self, reach: u64) -> Self {
        Self(self.0 & !Self::REACH | self.reach().max(reach) << 59)
    }
}

/// A second or so of the table's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Era(u64);

impl Era {
    #[inline]
    pub(crate) const fn of(now: Moment) -> Self {
        Self(now.nanos() >> ERA_BITS)
    }

    pub(crate) const fn start(self) -> Moment {
        Moment::from_nanos(self.0 << ERA_BITS)
    }

    pub(crate) const fn next(self) -> Self {
        Self(self.0 + 1)
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
        let era = Era::of(Moment::from_nanos(u64::MAX));
        let header = Header(Header::LOCKED).with_era(era).with_reach(3).with_reach(2).moving();
        assert!(header.is_locked() && header.is_moving() && !header.settled().is_moving());
        assert_eq!((header.era(), header.reach()), (era, 3));
    }
}
