//! Where a key belongs: its home, and where it may settle when home is full.
//!
//! The hash names the home and the tag, and the tag names a stride. The groups that a key may settle in lie one stride
//! apart, round the table. A slot keeps its key's tag and how many strides it is away from home, so the way can be
//! walked back. With 101 groups, a home of 90 and a stride of 7:
//!
//! | distance | group |
//! |---:|---:|
//! | 0 | 90 |
//! | 1 | 97 |
//! | 2 | 3 |
//! | 3 | 10 |

use super::DueSlots;
use crate::keyed::group::Group;
use crate::keyed::key::Key;
use crate::keyed::word::Slot;

/// A key's home and tag.
#[derive(Clone, Copy)]
pub(super) struct Probe {
    pub(super) home: usize,
    pub(super) tag: u32,
}

impl Probe {
    /// What tells the key from the other keys of its table.
    pub(super) const fn fingerprint(self) -> u64 {
        ((self.home as u64) << 25) | self.tag as u64
    }
}

impl DueSlots {
    #[inline]
    pub(super) fn probe(&self, key: Key) -> Probe {
        Probe { home: key.place(self.groups.len()), tag: key.tag() }
    }

    /// The group at this distance from a key's home.
    pub(super) fn group(&self, probe: Probe, distance: u64) -> &Group {
        &self.groups[wrapped(probe.home + self.away(probe.tag, distance), self.groups.len())]
    }

    /// How far from home a key's next groups lie.
    fn away(&self, tag: u32, distance: u64) -> usize {
        let count = self.groups.len();
        let stride = Key::stride(tag, count);
        (0..distance).fold(0, |away, _| wrapped(away + stride, count))
    }

    /// Home and tag of the key in a slot of the group at `place`: the way from home walked backwards.
    pub(super) fn probe_of(&self, place: usize, slot: Slot) -> Probe {
        let count = self.groups.len();
        let home = wrapped(place + count - self.away(slot.tag(), slot.distance()), count);
        Probe { home, tag: slot.tag() }
    }
}

/// A place less than twice round, without a division.
const fn wrapped(place: usize, count: usize) -> usize {
    if place >= count { place - count } else { place }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keyed::key::MaxKeys;
    use crate::keyed::word::identity;

    #[test]
    fn the_way_from_home_is_walked_in_strides_and_back() {
        let table = DueSlots::new(MaxKeys::new(404).unwrap());
        let tag = (0..).find(|&tag| Key::stride(tag, table.groups.len()) == 7).unwrap();
        let probe = Probe { home: 90, tag };
        for (distance, place) in [(0, 90), (1, 97), (2, 3), (3, 10)] {
            assert!(std::ptr::eq(table.group(probe, distance), &raw const table.groups[place]));
            let slot = Slot::new(identity(tag, distance), 0, 0);
            assert_eq!(table.probe_of(place, slot).fingerprint(), probe.fingerprint());
        }
    }
}
