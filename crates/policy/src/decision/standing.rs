use std::iter::{Chain, Flatten};
use std::slice;
use std::sync::Arc;
use std::time::Duration;

use tidegate_core::{Cost, Refusal, Retry, Usage};

use super::{Met, Mets, Took};
use crate::gate::{Counted, Now, Plan};
use crate::policy::Rule;

/// What a caller may be told of the rules its request met, in their order: of up to four without memory from the heap.
#[derive(Debug, Default)]
pub struct Standings<'a> {
    /// Filled from the first place on.
    first: [Option<Standing<'a>>; IN_PLACE],
    rest: Vec<Standing<'a>>,
}

/// Standings that are kept in place.
const IN_PLACE: usize = 4;

/// Where a request stands with one rule.
#[derive(Clone, Debug)]
pub struct Standing<'a> {
    /// The rule.
    pub rule: &'a Arc<Rule>,
    /// The most that can be taken at once, or be in flight.
    pub limit: Cost,
    /// The time in which that much comes back; zero where places in flight are counted.
    pub window: Duration,
    /// What is taken now.
    pub used: Cost,
    /// What could be taken now.
    pub remaining: Cost,
    /// The time after which, without further requests, nothing counts as used; zero where places in flight are
    /// counted, since nobody knows.
    pub reset: Duration,
    /// When the request may work, where this rule refuses it.
    pub retry: Option<Retry>,
    /// Whether it counts places in flight.
    pub is_concurrency: bool,
    /// Whether this rule refuses the request.
    pub is_violated: bool,
}

impl<'a> Standings<'a> {
    /// One after another, in the order of the rules.
    pub fn iter(&self) -> impl Iterator<Item = &Standing<'a>> {
        self.into_iter()
    }

    /// The one at this place, counted from zero.
    #[must_use]
    pub fn get(&self, place: usize) -> Option<&Standing<'a>> {
        match self.first.get(place) {
            Some(standing) => standing.as_ref(),
            None => self.rest.get(place - IN_PLACE),
        }
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.iter().next().is_none()
    }

    /// `answer` is the rule that refused, and how.
    pub(crate) fn of(plan: &'a Plan, mets: &Mets, now: Now, answer: Option<(u16, Refusal)>) -> Self {
        let mut standings = Self::default();
        let mut places = standings.first.iter_mut();
        for met in mets.iter().filter(|met| met.is_enforced) {
            let Some(standing) = standing(plan, met, now, answer) else { continue };
            match places.next() {
                Some(place) => *place = Some(standing),
                None => standings.rest.push(standing),
            }
        }
        standings
    }
}

impl<'a, 'b> IntoIterator for &'b Standings<'a> {
    type Item = &'b Standing<'a>;
    type IntoIter = Chain<Flatten<slice::Iter<'b, Option<Standing<'a>>>>, slice::Iter<'b, Standing<'a>>>;

    fn into_iter(self) -> Self::IntoIter {
        self.first.iter().flatten().chain(&self.rest)
    }
}

#[inline]
fn standing<'a>(plan: &'a Plan, met: &Met, now: Now, answer: Option<(u16, Refusal)>) -> Option<Standing<'a>> {
    let rule = &plan.rules.get(usize::from(met.rule))?.rule;
    let (answer, is_asked) = match answer {
        Some((by, refusal)) if by == met.rule => (Some(refusal), false),
        // Another rule answers, and this one may refuse too.
        Some(_) => (None, true),
        None => (None, false),
    };
    let (usage, window, refusal) = match (&met.took, plan.counted(met.store)?) {
        (Took::Charge(ticket, _) | Took::NoCharge(ticket, _), Counted::Rate(store)) => {
            let counter = store.counter(*ticket)?;
            let refusal = match met.took {
                Took::NoCharge(_, cost) if is_asked => counter.peek(met.key, now, cost).refusal(),
                _ => answer,
            };
            (counter.usage(met.key, now), counter.rate().window(), refusal)
        }
        (Took::Place(limit, place), Counted::Places(table)) => {
            let is_asked = is_asked && place.is_none();
            let refusal = if is_asked { table.peek(met.key, *limit).refusal() } else { answer };
            (places(table.in_flight(met.key), *limit), Duration::ZERO, refusal)
        }
        _ => return None,
    };
    Some(Standing {
        rule,
        limit: usage.limit,
        window,
        used: usage.used,
        remaining: usage.remaining,
        reset: usage.reset,
        retry: refusal.map(|refusal| refusal.retry),
        is_concurrency: matches!(met.took, Took::Place(..)),
        is_violated: refusal.is_some(),
    })
}

/// Places in flight as a usage.
pub(crate) fn places(taken: u32, limit: u32) -> Usage {
    let (limit, used) = (Cost::of(limit), Cost::of(taken));
    Usage { limit, used, remaining: limit.minus(used), reset: Duration::ZERO }
}
