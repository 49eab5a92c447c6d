//! Finding a key's slot, reading it, and writing it again.

use super::DueSlots;
use super::place::Probe;
use crate::keyed::group::{Group, Rules};
use crate::keyed::word::{Header, Slot, identity};
use crate::shell::{Enrolled, Packed};
use crate::sync::Ordering;
use crate::units::Moment;

/// A slot as it was found, and the time to decide with there: the asker's, or a later one that somebody has
/// already seen.
pub(super) struct Spot<'a> {
    pub(super) group: &'a Group,
    /// The header for which that holds.
    pub(super) header: Header,
    pub(super) index: usize,
    pub(super) slot: Slot,
    pub(super) now: Moment,
}

impl Spot<'_> {
    /// Swaps the slot, unless another thread changed it, or its group's time, first.
    pub(super) fn swap(&self, new: Slot) -> bool {
        self.group.header() == self.header && self.group.swap(self.index, self.slot, new)
    }
}

impl DueSlots {
    /// Looks at home, then as far from it as its header says.
    pub(super) fn find(&self, rule: &Enrolled<Packed>, probe: Probe, now: Moment) -> Option<Spot<'_>> {
        let group = &self.groups[probe.home];
        let (here, header) = self.keep_up(group, rule, now);
        if let Some((index, slot)) = group.find(identity(probe.tag, 0)) {
            return Some(Spot { group, header, index, slot, now: here });
        }
        (1..=group.header().reach()).find_map(|distance| {
            let group = self.group(probe, distance);
            let (now, header) = self.keep_up(group, rule, now);
            let (index, slot) = group.find(identity(probe.tag, distance))?;
            Some(Spot { group, header, index, slot, now })
        })
    }

    /// The counter that newcomers of a full table share.
    pub(super) fn shared_spot(&self, rule: &Enrolled<Packed>, now: Moment) -> Spot<'_> {
        let (group, index) = (&self.overflow, 0);
        let (now, header) = self.keep_up(group, rule, now);
        let slot = group.slot(index);
        if slot.is_vacant() {
            // Any tag will do, as long as the slot never looks vacant while it is in use.
            group.swap(index, slot, Slot::new(identity(1, 0), rule.stamp(), rule.rule.0.granted(now)));
        }
        Spot { group, header, index, slot: group.slot(index), now }
    }

    /// Brings a group up to the present, where that is due.
    pub(super) fn keep_up(&self, group: &Group, rule: &Enrolled<Packed>, now: Moment) -> (Moment, Header) {
        let patience = self.patience.load(Ordering::Relaxed);
        group.keep_up(&Rules { rules: &self.rules, rule, patience }, now)
    }

    /// How far ahead a slot is under `rule`, whichever rule wrote it.
    pub(super) fn ahead(&self, rule: &Enrolled<Packed>, slot: Slot, now: Moment, granted: u64) -> u64 {
        if slot.stamp() == rule.stamp() && !slot.is_vacant() {
            return rule.rule.0.readable(slot.ahead_of(granted));
        }
        self.ahead_by_other(rule, slot, now)
    }

    fn ahead_by_other(&self, rule: &Enrolled<Packed>, slot: Slot, now: Moment) -> u64 {
        if slot.is_vacant() {
            return 0;
        }
        self.rules.stamped(slot.stamp()).map_or(rule.rule.0.extent(), |Packed(writer)| {
            rule.rule.0.carried(&writer, writer.readable(slot.ahead_of(writer.granted(now))))
        })
    }

    /// Swaps a slot for a due time that may lie before what the slot held.
    ///
    /// A thread that was put aside between its last look at the header and the swap, for so long that the
    /// group was tidied or moved meanwhile, may write a due time that can no longer be read; it dates its
    /// word anew.
    pub(super) fn publish(&self, rule: &Enrolled<Packed>, spot: &Spot<'_>, new: Slot, after: u64) -> bool {
        if !spot.swap(new) {
            return false;
        }
        let (now, _) = self.keep_up(spot.group, rule, spot.now);
        if now != spot.now {
            let due = rule.rule.0.granted(now) + after;
            spot.group.swap(spot.index, new, new.with_due(rule.stamp(), due));
        }
        true
    }
}
