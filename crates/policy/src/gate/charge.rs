//! Charged by all its rules or by none.
//!
//! The method is that of [`together`](tidegate_core::together), over quotas and places in flight alike: ask all,
//! charge in order, and give back when another thread was faster. Most counters, when asked, also say what it takes
//! to charge them, so that nobody looks for a counter twice.
//!
//! Rules in shadow come last and by themselves: they are charged when the request passes, which is when they would
//! be charged if they were enforced, and whatever they answer changes nothing.

use std::hint::black_box;
use std::time::Duration;

use tidegate_core::{Cost, Refusal, Verdict};

use super::Now;
use super::plan::{Measure, Plan};
use super::walk::{Ask, Asks, Foreseen};
use crate::decision::{Met, Mets, Took};

/// What the enforced rules say together.
pub(crate) enum Joint {
    /// All were charged; the request waits as long as the slowest asks.
    Admit(Duration),
    /// None was charged.
    Refuse(u16, Refusal),
}

/// Asks all enforced rules; returns the refusal with the longest way back.
#[inline]
pub(crate) fn foresee(asks: &mut Asks<'_>, now: Now) -> Option<(u16, Refusal)> {
    let mut refused = None;
    for ask in asks.enforced_mut() {
        if let Some(refusal) = foresee_one(ask, now) {
            let own = (ask.rule, refusal);
            refused = Some(refused.map_or(own, |before| longer(before, own)));
        }
    }
    refused
}

/// Charges all enforced rules, as was foreseen.
#[inline]
pub(crate) fn charge(plan: &Plan, asks: &Asks<'_>, now: Now, mets: &mut Mets) -> Joint {
    let mut wait = Duration::ZERO;
    for ask in asks.enforced() {
        let took = match carry_out(ask) {
            Some(took) => took,
            None => match take(ask, now) {
                Verdict::Admit(took) => {
                    wait = wait.max(took.wait());
                    took
                }
                Verdict::Refuse(refusal) => {
                    give_all_back(plan, now, mets);
                    return Joint::Refuse(ask.rule, refusal);
                }
            },
        };
        mets.push(met(ask, took));
    }
    Joint::Admit(wait)
}

#[cold]
fn give_all_back(plan: &Plan, now: Now, mets: &mut Mets) {
    for met in mets.iter_mut() {
        met.settle(plan, now, Cost::ZERO);
        met.give_back(plan);
    }
    *mets = Mets::new();
}

/// Charges the rules in shadow; returns the positions of those that would have refused.
#[inline]
pub(crate) fn charge_shadows(asks: &Asks<'_>, now: Now, mets: &mut Mets) -> u16 {
    let mut refused = 0;
    for ask in asks.shadows() {
        match take(ask, now) {
            Verdict::Admit(took) => mets.push(met(ask, took)),
            Verdict::Refuse(_) => refused |= 1 << ask.check,
        }
    }
    refused
}

/// Notes what was asked and not taken.
pub(crate) fn asked(asks: &Asks<'_>, mets: &mut Mets) {
    for ask in asks.enforced() {
        let took = match &ask.chosen.measure {
            Measure::Rate(counter) => Took::NoCharge(counter.ticket(), ask.cost),
            Measure::Places(_, limit) => Took::Place(*limit, None),
        };
        mets.push(met(ask, took));
    }
}

/// Looks at all counters before any is asked: with many keys none of them is in the processor's cache, and waiting
/// for all at once takes as long as waiting for one. A loop of its own, for a processor looks only some two hundred
/// instructions ahead of what it waits for.
#[inline]
pub(crate) fn touch(asks: &Asks<'_>) {
    black_box(asks.iter().fold(0, |touched, ask| ask.chosen.touch(ask.key).wrapping_add(touched)));
}

/// Asks one rule; notes what it takes to charge it, where the counter says so.
#[inline]
fn foresee_one(ask: &mut Ask<'_>, now: Now) -> Option<Refusal> {
    let foreseen = match &ask.chosen.measure {
        Measure::Rate(counter) => {
            counter.foresee(ask.key, now, ask.cost).map(|verdict| verdict.map(Foreseen::Charge))
        }
        Measure::Places(table, limit) => {
            table.foresee(ask.key, *limit).map(|verdict| verdict.map(Foreseen::Place))
        }
    };
    match foreseen {
        Some(Verdict::Admit(foreseen)) => {
            ask.foreseen = foreseen;
            None
        }
        Some(Verdict::Refuse(refusal)) => Some(refusal),
        None => peek(ask, now),
    }
}

#[inline(never)]
pub(crate) fn peek(ask: &Ask<'_>, now: Now) -> Option<Refusal> {
    match &ask.chosen.measure {
        Measure::Rate(counter) => counter.peek(ask.key, now, ask.cost).refusal(),
        Measure::Places(table, limit) => table.peek(ask.key, *limit).refusal(),
    }
}

/// Charges as foreseen; nothing when nothing was foreseen or another thread was faster.
#[inline]
fn carry_out(ask: &Ask<'_>) -> Option<Took> {
    match (&ask.foreseen, &ask.chosen.measure) {
        (Foreseen::Charge(foreseen), Measure::Rate(counter)) => {
            foreseen.take().map(|charge| Took::Charge(counter.ticket(), charge))
        }
        (Foreseen::Place(foreseen), Measure::Places(_, limit)) => {
            foreseen.take().map(|place| Took::Place(*limit, Some(place)))
        }
        (Foreseen::Unknown | Foreseen::Charge(_) | Foreseen::Place(_), _) => None,
    }
}

#[inline]
fn take(ask: &Ask<'_>, now: Now) -> Verdict<Took> {
    match &ask.chosen.measure {
        Measure::Rate(counter) => {
            counter.take(ask.key, now, ask.cost).map(|charge| Took::Charge(counter.ticket(), charge))
        }
        Measure::Places(table, limit) => {
            table.take(ask.key, *limit).map(|place| Took::Place(*limit, Some(place)))
        }
    }
}

#[inline]
fn met(ask: &Ask<'_>, took: Took) -> Met {
    Met { rule: ask.rule, is_enforced: ask.is_enforced, store: ask.chosen.store, key: ask.key, took }
}

/// The refusal with the longer way back; of equals, the first.
fn longer(a: (u16, Refusal), b: (u16, Refusal)) -> (u16, Refusal) {
    if b.1.retry > a.1.retry { b } else { a }
}
