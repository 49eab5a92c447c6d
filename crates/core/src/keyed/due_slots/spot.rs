//! Finding a key's slot, reading it, and writing it again.

use super::DueSlots;
use super::place::Probe;
use crate::keyed::group::{Group, Rules};
use crate::keyed::word::{Header, Slot, identity};
use crate::rate::Schedule;
use crate::shell::{Enrolled, Packed, Writer};
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
        if slot.is_vacant() {
            return 0;
        }
        let held = self.held(rule, slot, now);
        rule.rule.0.carried(&held.writer.rule.0, held.ahead)
    }

    /// What an occupied slot says under the rule that wrote it. Where that has been retired by a thread that was
    /// faster, the key has just spent everything.
    pub(super) fn held<'a>(&self, rule: &'a Enrolled<Packed>, slot: Slot, now: Moment) -> Held<'a> {
        let known = self.rules.writer(rule, slot.stamp());
        let is_known = known.is_some();
        let writer = known.unwrap_or_else(|| rule.writer());
        let schedule = &writer.rule.0;
        let granted = schedule.granted(now);
        let ahead = slot.ahead_of(granted);
        let is_readable = is_known && schedule.is_readable(ahead);
        let ahead = if is_readable { ahead } else { schedule.extent() };
        Held { granted, ahead, is_readable, writer }
    }

    /// Swaps a slot for a due time of this schedule that may lie before what the slot held.
    ///
    /// A thread that was put aside between its last look at the header and the swap, for so long that the
    /// group was tidied or moved meanwhile, may write a due time that can no longer be read; it dates its
    /// word anew.
    pub(super) fn publish(
        &self,
        rule: &Enrolled<Packed>,
        schedule: &Schedule,
        spot: &Spot<'_>,
        new: Slot,
        after: u64,
    ) -> bool {
        if !spot.swap(new) {
            return false;
        }
        let (now, _) = self.keep_up(spot.group, rule, spot.now);
        if now != spot.now {
            spot.group.swap(spot.index, new, new.moved_to(schedule.granted(now).wrapping_add(after)));
        }
        true
    }
}

/// What a slot says, in the terms of the rule that wrote it.
pub(super) struct Held<'a> {
    pub(super) writer: Writer<'a, Packed>,
    pub(super) granted: u64,
    pub(super) ahead: u64,
    /// Whether it can be true.
    pub(super) is_readable: bool,
}

impl Held<'_> {
    /// The same slot of a key so far ahead, in the same terms.
    pub(super) fn with_ahead(&self, slot: Slot, ahead: u64) -> Slot {
        slot.with_due(self.writer.stamp(), self.granted.wrapping_add(ahead))
    }
}
