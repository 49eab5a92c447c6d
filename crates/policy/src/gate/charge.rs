//! Charged by all its rules or by none.
//!
//! The method is that of [`together`](tidegate_core::together), over quotas and places in flight alike: peek at
//! all, charge in order, and give back when another thread was faster. The first rule is not peeked at, for
//! charging it first asks the same question: if it refuses, nothing has been charged yet.
//!
//! Rules in shadow come last and by themselves: they are charged when the request passes, which is when they would
//! be charged if they were enforced, and whatever they answer changes nothing.

use std::hint::black_box;
use std::time::Duration;

use tidegate_core::{Cost, Refusal, Verdict};

use super::plan::{Measure, Plan};
use super::walk::{Ask, Asks};
use super::{Counted, Now};
use crate::decision::{Met, Mets, Took};

/// What the enforced rules say together.
pub(crate) enum Joint {
    /// All were charged; the request waits as long as the slowest asks.
    Admit(Duration),
    /// None was charged.
    Refuse(u16, Refusal),
}

#[inline]
pub(crate) fn charge(plan: &Plan, asks: &Asks<'_>, now: Now, mets: &mut Mets) -> Joint {
    let refusals = asks.enforced().skip(1).filter_map(|ask| Some((ask.rule, peek(plan, ask, now)?)));
    if let Some(others) = refusals.reduce(longer) {
        let first = asks.enforced().next().and_then(|ask| Some((ask.rule, peek(plan, ask, now)?)));
        let (rule, refusal) = first.map_or(others, |first| longer(first, others));
        return Joint::Refuse(rule, refusal);
    }
    let mut wait = Duration::ZERO;
    for ask in asks.enforced() {
        match take(plan, ask, now) {
            Verdict::Admit(took) => {
                if let Took::Charge(_, charge) = &took {
                    wait = wait.max(charge.wait());
                }
                mets.push(met(ask, took));
            }
            Verdict::Refuse(refusal) => {
                for met in mets.iter_mut() {
                    met.settle(plan, now, Cost::ZERO);
                    met.give_back(plan);
                }
                *mets = Mets::new();
                return Joint::Refuse(ask.rule, refusal);
            }
        }
    }
    Joint::Admit(wait)
}

/// Charges the rules in shadow; returns the positions of those that would have refused.
#[inline]
pub(crate) fn charge_shadows(plan: &Plan, asks: &Asks<'_>, now: Now, mets: &mut Mets) -> u16 {
    let mut refused = 0;
    for ask in asks.shadows() {
        match take(plan, ask, now) {
            Verdict::Admit(took) => mets.push(met(ask, took)),
            Verdict::Refuse(_) => refused |= 1 << ask.check,
        }
    }
    refused
}

/// What was asked and not taken.
pub(crate) fn asked(asks: &Asks<'_>) -> Mets {
    let mut mets = Mets::new();
    for ask in asks.enforced() {
        let took = match &ask.chosen.measure {
            Measure::Rate(counter) => Took::NoCharge(counter.ticket(), ask.cost),
            Measure::Places(limit) => Took::Place(*limit, None),
        };
        mets.push(met(ask, took));
    }
    mets
}

/// Looks at all counters before any is asked: with many keys none of them is in the processor's cache, and waiting
/// for all at once takes as long as waiting for one.
#[inline]
pub(crate) fn touch(plan: &Plan, asks: &Asks<'_>) {
    let touched = asks.iter().map(|ask| match &ask.chosen.measure {
        Measure::Rate(counter) => counter.touch(ask.key),
        Measure::Places(_) => match plan.counted(ask.chosen.store) {
            Some(Counted::Places(table)) => table.touch(ask.key),
            Some(Counted::Rate(_)) | None => 0,
        },
    });
    black_box(touched.fold(0, u64::wrapping_add));
}

#[inline]
pub(crate) fn peek(plan: &Plan, ask: &Ask<'_>, now: Now) -> Option<Refusal> {
    match &ask.chosen.measure {
        Measure::Rate(counter) => counter.peek(ask.key, now, ask.cost).refusal(),
        Measure::Places(limit) => match plan.counted(ask.chosen.store) {
            Some(Counted::Places(table)) => table.peek(ask.key, *limit).refusal(),
            _ => None,
        },
    }
}

#[inline]
fn take(plan: &Plan, ask: &Ask<'_>, now: Now) -> Verdict<Took> {
    match &ask.chosen.measure {
        Measure::Rate(counter) => {
            counter.take(ask.key, now, ask.cost).map(|charge| Took::Charge(counter.ticket(), charge))
        }
        Measure::Places(limit) => match plan.counted(ask.chosen.store) {
            Some(Counted::Places(table)) => {
                table.take(ask.key, *limit).map(|place| Took::Place(*limit, Some(place)))
            }
            _ => Verdict::Admit(Took::Place(*limit, None)),
        },
    }
}

fn met(ask: &Ask<'_>, took: Took) -> Met {
    Met { rule: ask.rule, is_enforced: ask.is_enforced, store: ask.chosen.store, key: ask.key, took }
}

/// The refusal with the longer way back; of equals, the first.
fn longer(a: (u16, Refusal), b: (u16, Refusal)) -> (u16, Refusal) {
    if b.1.retry > a.1.retry { b } else { a }
}
