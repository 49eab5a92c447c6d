//! How a newcomer gets a slot.

use super::DueSlots;
use super::place::Probe;
use super::spot::Spot;
use crate::keyed::group::SLOTS;
use crate::keyed::word::{Slot, identity};
use crate::shell::{Enrolled, Packed};
use crate::units::Moment;

/// Groups in which a key may settle: its home and seven more. In a table that holds all the keys it was
/// made for, and all of them active, one newcomer in a million finds all eight full.
const PROBES: u64 = 8;

/// Groups in which a newcomer looks for a vacant slot before it takes an idle one. In such a table all of
/// them are full for a few newcomers in a thousand.
const NEARBY: u64 = 3;

/// How a newcomer fared.
pub(super) enum Arrival {
    /// It has a slot and is due then.
    Settled(u64),
    /// Another thread brought the same key in first.
    Known,
    /// There is no room.
    Full,
}

impl DueSlots {
    /// Gives a key that is `after` ahead a slot: a vacant one or one that is idle.
    pub(super) fn settle_in(
        &self,
        rule: &Enrolled<Packed>,
        probe: Probe,
        now: Moment,
        after: u64,
    ) -> Arrival {
        let home = &self.groups[probe.home];
        home.lock();
        let (arrival, reach) = if self.find(rule, probe, now).is_some() {
            (Arrival::Known, 0)
        } else {
            self.settle_near(rule, probe, now, after)
        };
        home.unlock(reach);
        arrival
    }

    /// Looks for a vacant slot nearby, then for an idle one: whoever left an idle slot may come back to it,
    /// but a search through all groups for a vacant one would cost a newcomer more than that.
    fn settle_near(&self, rule: &Enrolled<Packed>, probe: Probe, now: Moment, after: u64) -> (Arrival, u64) {
        let vacant = |slot: Slot, _, _| slot.is_vacant();
        let idle = |slot: Slot, now, granted| self.ahead(rule, slot, now, granted) == 0;
        self.settle_where(rule, probe, now, after, NEARBY, vacant)
            .or_else(|| self.settle_where(rule, probe, now, after, PROBES, idle))
            .unwrap_or((Arrival::Full, 0))
    }

    fn settle_where(
        &self,
        rule: &Enrolled<Packed>,
        probe: Probe,
        now: Moment,
        after: u64,
        groups: u64,
        is_free: impl Fn(Slot, Moment, u64) -> bool,
    ) -> Option<(Arrival, u64)> {
        (0..groups).find_map(|distance| {
            let group = self.group(probe, distance);
            let (now, header) = self.keep_up(group, rule, now);
            let granted = rule.rule.0.granted(now);
            let due = granted.wrapping_add(after);
            let new = Slot::new(identity(probe.tag, distance), rule.stamp(), due);
            (0..SLOTS).find_map(|index| {
                let slot = group.slot(index);
                let spot = Spot { group, header, index, slot, now };
                let is_ours =
                    is_free(slot, now, granted) && self.publish(rule, &rule.rule.0, &spot, new, after);
                is_ours.then(|| {
                    group.leave_hint(index, new.0);
                    (Arrival::Settled(due), distance)
                })
            })
        })
    }
}
