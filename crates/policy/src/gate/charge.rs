//! Charged by all its rules or by none.
//!
//! The method is that of [`together`](tidegate_core::together), over quotas and places in flight alike: ask all,
//! charge in order, and give back when another thread was faster. Most counters, when asked, also say what it takes
//! to charge them, so that nobody looks for a counter twice.
//!
//! Places of a reserve are taken after everything else: they are few, everybody wants them, and whoever is refused by
//! another rule should not have held one for an instant. Shed rules take nothing, so their answer stands.
//!
//! Rules in shadow come last and by themselves: they are charged when the request passes, which is when they would
//! be charged if they were enforced, and whatever they answer changes nothing.

use std::time::Duration;

use tidegate_core::{Cost, Refusal, Verdict};

use super::Now;
use super::plan::{Measure, Plan};
use super::walk::{Ask, Asks, Foreseen, Walk};
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
pub(crate) fn foresee(walk: &Walk<'_>, asks: &mut Asks<'_>, now: Now) -> Option<(u16, Refusal)> {
    let mut refused = None;
    for ask in asks.enforced_mut() {
        if let Some(refusal) = foresee_one(walk, ask, now) {
            let own = (ask.rule, refusal);
            refused = Some(refused.map_or(own, |before| longer(before, own)));
        }
    }
    refused
}

/// Charges all enforced rules, as was foreseen.
#[inline]
pub(crate) fn charge(walk: &Walk<'_>, asks: &Asks<'_>, now: Now, mets: &mut Mets) -> Joint {
    let (mut wait, mut has_reserves) = (Duration::ZERO, false);
    for ask in asks.enforced() {
        if carry_out(ask, mets) {
            continue;
        }
        match later(ask) {
            Some(is_reserve) => has_reserves |= is_reserve,
            None => match take_after_all(walk, ask, now, mets) {
                Ok(asked) => wait = wait.max(asked),
                Err(refused) => return undone(walk.plan(), now, mets, refused),
            },
        }
    }
    if has_reserves && let Err(refused) = charge_reserves(walk, asks, mets) {
        return undone(walk.plan(), now, mets, refused);
    }
    Joint::Admit(wait)
}

/// Whether a rule has its turn after the others: a reserve has, and a shed rule has had it.
#[inline]
const fn later(ask: &Ask<'_>) -> Option<bool> {
    match ask.chosen.measure {
        Measure::Rate(_) | Measure::Places(..) => None,
        Measure::Reserved(_) => Some(true),
        Measure::Shed(_) => Some(false),
    }
}

/// Takes a place of each reserve; or none of those that are left, when one refuses.
#[inline(never)]
fn charge_reserves(walk: &Walk<'_>, asks: &Asks<'_>, mets: &mut Mets) -> Result<(), (u16, Refusal)> {
    for ask in asks.enforced() {
        let Measure::Reserved(reserved) = &ask.chosen.measure else { continue };
        let foreseen = match &ask.foreseen {
            Foreseen::Place(foreseen) => foreseen.take(),
            Foreseen::Unknown | Foreseen::Charge(_) => None,
        };
        let place = match foreseen {
            Some(place) => place,
            None => match reserved.take(ask.key, walk.criticality) {
                Verdict::Admit(place) => place,
                Verdict::Refuse(refusal) => return Err((ask.rule, refusal)),
            },
        };
        mets.push(met(ask, Took::Reserved(Some(place))));
    }
    Ok(())
}

#[cold]
fn undone(plan: &Plan, now: Now, mets: &mut Mets, (rule, refusal): (u16, Refusal)) -> Joint {
    give_all_back(plan, now, mets);
    Joint::Refuse(rule, refusal)
}

fn give_all_back(plan: &Plan, now: Now, mets: &mut Mets) {
    for met in mets.iter_mut() {
        met.settle(plan, now, Cost::ZERO);
        met.give_back(plan);
    }
    *mets = Mets::new();
}

/// Charges the rules in shadow; returns the positions of those that would have refused.
#[inline]
pub(crate) fn charge_shadows(walk: &Walk<'_>, asks: &Asks<'_>, now: Now, mets: &mut Mets) -> u16 {
    let mut refused = 0;
    for ask in asks.shadows() {
        match take(walk, ask, now) {
            Verdict::Admit(Took::Nothing) => {}
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
            // What we can bear is not told.
            Measure::Reserved(_) | Measure::Shed(_) => continue,
        };
        mets.push(met(ask, took));
    }
}

/// Has all counters fetched before any is asked: with many keys none of them is in the processor's cache, and waiting
/// for all at once takes as long as waiting for one. A loop of its own, for a processor looks only some two hundred
/// instructions ahead of what it waits for.
#[inline]
pub(crate) fn touch(asks: &Asks<'_>) {
    asks.iter().for_each(|ask| ask.chosen.touch(ask.key));
}

/// Asks one rule; notes what it takes to charge it, where the counter says so.
#[inline]
fn foresee_one(walk: &Walk<'_>, ask: &mut Ask<'_>, now: Now) -> Option<Refusal> {
    let foreseen = match &ask.chosen.measure {
        Measure::Rate(counter) => {
            counter.foresee(ask.key, now, ask.cost).map(|verdict| verdict.map(Foreseen::Charge))
        }
        Measure::Places(table, limit) => {
            table.foresee(ask.key, *limit).map(|verdict| verdict.map(Foreseen::Place))
        }
        Measure::Reserved(_) | Measure::Shed(_) => return foresee_protecting(walk, ask, now),
    };
    match foreseen {
        Some(Verdict::Admit(foreseen)) => {
            ask.foreseen = foreseen;
            None
        }
        Some(Verdict::Refuse(refusal)) => Some(refusal),
        None => peek(walk, ask, now),
    }
}

/// The same for a rule that protects the service: apart, so that the others stay short.
#[inline(never)]
fn foresee_protecting(walk: &Walk<'_>, ask: &mut Ask<'_>, now: Now) -> Option<Refusal> {
    let Measure::Reserved(reserved) = &ask.chosen.measure else { return peek(walk, ask, now) };
    match reserved.foresee(ask.key, walk.criticality) {
        Some(Verdict::Admit(place)) => {
            ask.foreseen = Foreseen::Place(place);
            None
        }
        Some(Verdict::Refuse(refusal)) => Some(refusal),
        None => reserved.peek(ask.key, walk.criticality),
    }
}

#[inline(never)]
pub(crate) fn peek(walk: &Walk<'_>, ask: &Ask<'_>, now: Now) -> Option<Refusal> {
    match &ask.chosen.measure {
        Measure::Rate(counter) => counter.peek(ask.key, now, ask.cost).refusal(),
        Measure::Places(table, limit) => table.peek(ask.key, *limit).refusal(),
        Measure::Reserved(reserved) => reserved.peek(ask.key, walk.criticality),
        Measure::Shed(shedder) => walk.shed(shedder, now.wall),
    }
}

/// Charges as foreseen; false when nothing was foreseen or another thread was faster.
#[inline]
fn carry_out(ask: &Ask<'_>, mets: &mut Mets) -> bool {
    // Each puts down what it took by itself: a value that may be this or that is put together in memory and copied.
    match (&ask.foreseen, &ask.chosen.measure) {
        (Foreseen::Charge(foreseen), Measure::Rate(counter)) => {
            let Some(charge) = foreseen.take() else { return false };
            mets.push(met(ask, Took::Charge(counter.ticket(), charge)));
        }
        (Foreseen::Place(foreseen), Measure::Places(_, limit)) => {
            let Some(place) = foreseen.take() else { return false };
            mets.push(met(ask, Took::Place(*limit, Some(place))));
        }
        (Foreseen::Unknown | Foreseen::Charge(_) | Foreseen::Place(_), _) => return false,
    }
    true
}

/// Charges what could not be foreseen; returns how long the request must wait for it.
#[inline(never)]
fn take_after_all(
    walk: &Walk<'_>,
    ask: &Ask<'_>,
    now: Now,
    mets: &mut Mets,
) -> Result<Duration, (u16, Refusal)> {
    match take(walk, ask, now) {
        Verdict::Admit(took) => {
            let wait = took.wait();
            mets.push(met(ask, took));
            Ok(wait)
        }
        Verdict::Refuse(refusal) => Err((ask.rule, refusal)),
    }
}

#[inline]
fn take(walk: &Walk<'_>, ask: &Ask<'_>, now: Now) -> Verdict<Took> {
    match &ask.chosen.measure {
        Measure::Rate(counter) => {
            counter.take(ask.key, now, ask.cost).map(|charge| Took::Charge(counter.ticket(), charge))
        }
        Measure::Places(table, limit) => {
            table.take(ask.key, *limit).map(|place| Took::Place(*limit, Some(place)))
        }
        Measure::Reserved(reserved) => {
            reserved.take(ask.key, walk.criticality).map(|place| Took::Reserved(Some(place)))
        }
        Measure::Shed(shedder) => match walk.shed(shedder, now.wall) {
            Some(refusal) => Verdict::Refuse(refusal),
            None => Verdict::Admit(Took::Nothing),
        },
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
