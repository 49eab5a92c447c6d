//! Every other case: newcomers, keys away from home, a new rule, the time after a pause, beside faster threads.

use super::place::Probe;
use super::settle::Arrival;
use super::spot::Spot;
use super::{DueSlots, charge_until};
use crate::keyed::table::shared;
use crate::rate::Reading;
use crate::shell::{Enrolled, Packed};
use crate::sync::Ordering;
use crate::units::{Cost, Moment};
use crate::verdict::{Charge, Verdict};

impl DueSlots {
    /// Decides for a key that is not to be found at home by a hint: after a pause, or since it is one of the
    /// twentieth that settled elsewhere when the table is full.
    #[inline(never)]
    pub(super) fn take_away(
        &self,
        rule: &Enrolled<Packed>,
        probe: Probe,
        now: Moment,
        cost: Cost,
    ) -> Verdict<Charge> {
        let home = &self.groups[probe.home];
        // At home it has just been looked for, unless a pause hid it.
        let first = u64::from(home.tidy_header(now, self.patience.load(Ordering::Relaxed)).is_some());
        let (_, header) = self.keep_up(home, rule, now);
        (first..=header.reach())
            .find_map(|distance| self.take_hinted(rule, probe, distance, now, cost))
            .unwrap_or_else(|| self.take_anywhere(rule, probe, now, cost))
    }

    /// Decides in every case: for newcomers, under a new rule, after a pause, beside faster threads.
    fn take_anywhere(
        &self,
        rule: &Enrolled<Packed>,
        probe: Probe,
        now: Moment,
        cost: Cost,
    ) -> Verdict<Charge> {
        loop {
            let answer = match self.find(rule, probe, now) {
                Some(spot) => {
                    spot.group.leave_hint(spot.index, spot.slot.0);
                    self.charge(rule, &spot, now, cost)
                }
                None => self.arrive(rule, probe, now, cost),
            };
            if let Some(verdict) = answer {
                return verdict;
            }
        }
    }

    /// Charges the counter at `spot`; nothing when another thread was faster.
    fn charge(
        &self,
        rule: &Enrolled<Packed>,
        spot: &Spot<'_>,
        now: Moment,
        cost: Cost,
    ) -> Option<Verdict<Charge>> {
        let schedule = &rule.rule.0;
        let origin = self.origin(rule);
        let granted = schedule.granted(spot.now);
        let ahead = self.ahead(rule, spot.slot, spot.now, granted);
        let (new, verdict) = match schedule.ask(Reading { now, granted }, ahead, cost) {
            Verdict::Admit((after, wait)) => {
                let due = granted.wrapping_add(after);
                (spot.slot.with_due(rule.stamp(), due), Verdict::Admit(charge_until(origin, cost, due, wait)))
            }
            Verdict::Refuse(refusal) => {
                // What another rule wrote stays in its terms, in which all of it can be told.
                let held = self.held(rule, spot.slot, spot.now);
                if held.is_readable {
                    return (spot.group.header() == spot.header).then_some(Verdict::Refuse(refusal));
                }
                (held.with_ahead(spot.slot, held.ahead), Verdict::Refuse(refusal))
            }
        };
        spot.swap(new).then_some(verdict)
    }

    /// Decides for a key that has no slot, as for a fresh one; nothing when another thread was faster.
    fn arrive(
        &self,
        rule: &Enrolled<Packed>,
        probe: Probe,
        now: Moment,
        cost: Cost,
    ) -> Option<Verdict<Charge>> {
        let (after, wait) = match rule.rule.0.ask(rule.rule.0.read(now), 0, cost) {
            Verdict::Refuse(refusal) => return Some(Verdict::Refuse(refusal)),
            Verdict::Admit(taken) => taken,
        };
        let origin = self.origin(rule);
        if after == 0 {
            return Some(Verdict::Admit(charge_until(origin, cost, 0, wait)));
        }
        match self.settle_in(rule, probe, now, after) {
            Arrival::Settled(due) => Some(Verdict::Admit(charge_until(origin, cost, due, wait))),
            Arrival::Known => None,
            Arrival::Full => Some(self.share(rule, now, cost)),
        }
    }

    /// Decides by the counter that newcomers of a full table share.
    fn share(&self, rule: &Enrolled<Packed>, now: Moment, cost: Cost) -> Verdict<Charge> {
        self.overflowed.fetch_add(1, Ordering::Relaxed);
        loop {
            if let Some(verdict) = self.charge(rule, &self.shared_spot(rule, now), now, cost) {
                return shared(verdict);
            }
        }
    }
}
