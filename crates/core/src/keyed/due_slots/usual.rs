//! The usual case: the key is at home, and its slot is where a hint says.

use std::time::Duration;

use super::place::Probe;
use super::{DueSlots, Origin, charge_until};
use crate::keyed::group::swap;
use crate::keyed::word::{Slot, identity};
use crate::shell::{Enrolled, Packed};
use crate::sync::{AtomicU64, Ordering};
use crate::units::{Cost, Moment};
use crate::verdict::{Charge, Verdict};

/// A yes that has not been carried out: a slot as it was found, and what it becomes.
#[derive(Clone, Copy, Debug)]
pub struct Foreseen<'a> {
    word: &'a AtomicU64,
    slot: Slot,
    due: u64,
    cost: Cost,
    origin: Origin,
}

impl Foreseen<'_> {
    /// Carries it out; nothing when another thread changed the slot first.
    #[inline(always)]
    #[must_use]
    pub fn take(self) -> Option<Charge> {
        let is_ours = swap(self.word, self.slot, self.slot.moved_to(self.due));
        is_ours.then(|| charge_until(self.origin, self.cost, self.due, Duration::ZERO))
    }
}

impl DueSlots {
    /// Decides in the usual case; nothing when it is not that, or another thread is faster.
    #[inline(always)]
    pub(super) fn take_hinted(
        &self,
        rule: &Enrolled<Packed>,
        probe: Probe,
        distance: u64,
        now: Moment,
        cost: Cost,
    ) -> Option<Verdict<Charge>> {
        self.answer(rule, probe, distance, now, cost, |word, slot, due| {
            let origin = self.origin(rule);
            let is_ours = swap(word, slot, slot.moved_to(due));
            is_ours.then(|| charge_until(origin, cost, due, Duration::ZERO))
        })
    }

    /// The answer in the usual case, with what it takes to carry it out.
    #[inline(always)]
    pub(super) fn foresee<'a>(
        &'a self,
        rule: &Enrolled<Packed>,
        probe: Probe,
        now: Moment,
        cost: Cost,
    ) -> Option<Verdict<Foreseen<'a>>> {
        self.answer(rule, probe, 0, now, cost, |word, slot, due| {
            Some(Foreseen { word, slot, due, cost, origin: self.origin(rule) })
        })
    }

    /// The answer in the usual case, in a straight line: the group is tidy, a hint leads to the key's slot, it was
    /// written under this rule, and the answer is a no or a yes without a wait; of a yes, what `admit` makes of the
    /// slot and of when it is due then. Nothing when it is not so.
    ///
    /// A processor looks some three hundred instructions ahead, so with half as many in a decision, two of
    /// them wait for their cache lines at once. With a million keys that is what counts.
    #[inline(always)]
    pub(super) fn answer<'a, T>(
        &'a self,
        rule: &Enrolled<Packed>,
        probe: Probe,
        distance: u64,
        now: Moment,
        cost: Cost,
        admit: impl FnOnce(&'a AtomicU64, Slot, u64) -> Option<T>,
    ) -> Option<Verdict<T>> {
        let group = if distance == 0 { &self.groups[probe.home] } else { self.group(probe, distance) };
        let author = Slot::new(identity(probe.tag, distance), rule.stamp(), 0);
        // With a header come slots at least as new, so what is found in a tidy group can be read. Should the
        // clock be set back between the two looks, this one decision is as late as any that read the clock
        // before that.
        group.tidy_header(now, self.patience.load(Ordering::Relaxed))?;
        let (word, slot) = group.find_hinted(author.0)?;
        let schedule = &rule.rule.0;
        let reading = schedule.read_packed(now);
        let (ahead, grains) = (slot.ahead_of(reading.granted), schedule.grains(cost));
        if let Some(after) = schedule.at_once(ahead, grains) {
            return admit(word, slot, reading.granted.wrapping_add(after)).map(Verdict::Admit);
        }
        let refusal = schedule.refusal(reading, ahead, grains)?;
        schedule.is_readable(ahead).then_some(Verdict::Refuse(refusal))
    }
}
