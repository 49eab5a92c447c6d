//! What a request is asked: its route, its criticality, its rules with their keys, limits and costs.
//!
//! [`decide`](super::Gate::decide) and [`explain`](super::Gate::explain) take the same walk, so that what is
//! explained is what would be done.

use tidegate_core::keyed::{self, Key};
use tidegate_core::shed::Cohort;
use tidegate_core::{Cost, Criticality, Moment, Refusal, WallTime};

use super::check::{Check, Keyed, MOST_CHECKS};
use super::current::Current;
use super::keys::{self, Found, NoPart, Part};
use super::plan::{Choice, Chosen, Known, MOST_PARTS, Plan, Ruled};
use super::shedding::Shedder;
use super::who;
use crate::attributes::Attributes;
use crate::policy::{Mode, Policy, Route};

/// One check with everything it needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ask<'a> {
    /// Its place among the route's checks.
    pub(crate) check: u8,
    pub(crate) rule: u16,
    /// Whether it may refuse.
    pub(crate) is_enforced: bool,
    pub(crate) key: Key,
    pub(crate) cost: Cost,
    pub(crate) chosen: &'a Chosen,
    pub(crate) foreseen: Foreseen<'a>,
}

/// What a check is known to answer before it is charged.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Foreseen<'a> {
    /// Nothing; or a yes, which must be asked for again.
    Unknown,
    Charge(keyed::Foreseen<'a>),
    Place(keyed::ForeseenPlace<'a>),
}

/// Up to sixteen of them, without memory from the heap.
#[derive(Debug)]
pub(crate) struct Asks<'a> {
    asks: [Option<Ask<'a>>; MOST_CHECKS],
    count: usize,
}

impl<'a> Asks<'a> {
    /// None yet. Written place by place: a copy of an empty list would move a thousand bytes.
    #[inline]
    pub(crate) fn new() -> Self {
        Self { asks: std::array::from_fn(|_| None), count: 0 }
    }

    #[inline(always)]
    fn push(&mut self, ask: Ask<'a>) {
        if let Some(place) = self.asks.get_mut(self.count) {
            *place = Some(ask);
            self.count += 1;
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Ask<'a>> {
        self.asks[..self.count].iter().flatten()
    }

    pub(crate) fn enforced(&self) -> impl Iterator<Item = &Ask<'a>> {
        self.iter().filter(|ask| ask.is_enforced)
    }

    pub(crate) fn enforced_mut(&mut self) -> impl Iterator<Item = &mut Ask<'a>> {
        self.asks[..self.count].iter_mut().flatten().filter(|ask| ask.is_enforced)
    }

    pub(crate) fn shadows(&self) -> impl Iterator<Item = &Ask<'a>> {
        self.iter().filter(|ask| !ask.is_enforced)
    }
}

/// Where a criticality came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Given {
    /// The policy's assignment at this position.
    Assigned(usize),
    /// A trusted peer.
    Said,
    /// The policy's default.
    Default,
}

/// A request on its way through the plan.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Walk<'a> {
    pub(crate) current: &'a Current,
    pub(crate) attributes: &'a Attributes<'a>,
    pub(crate) now: Moment,
    /// The first route that matches, and its position.
    pub(crate) route: Option<(u16, &'a Route)>,
    pub(crate) criticality: Criticality,
    pub(crate) given: Given,
    pub(crate) caller: Found<'a>,
    pub(crate) caller_key: Option<Key>,
    pub(crate) known: Option<&'a Known>,
    /// Whether its caller may have a limit of its own.
    has_own: bool,
    /// What the route's requests cost.
    pub(crate) cost: Cost,
}

/// A header field with several lines that would have been part of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ambiguous<'a> {
    pub(crate) rule: u16,
    pub(crate) header: &'a str,
}

impl<'a> Walk<'a> {
    #[inline]
    pub(crate) fn new(current: &'a Current, attributes: &'a Attributes<'a>, now: Moment) -> Self {
        let policy = &current.plan.policy;
        let mut routes = (0..).zip(policy.routes.iter().zip(&current.plan.routes));
        let matching =
            routes.find(|(_, (route, routed))| routed.takes_all || route.matcher.matches(attributes));
        let route = matching.map(|(index, (route, _))| (index, route));
        let (criticality, given) = criticality(policy, attributes);
        let (caller, caller_key, known) = match route {
            Some((_, route)) if !route.is_exempt && (!route.rules.is_empty() || current.has_blocks) => {
                let caller = keys::caller(policy, attributes);
                let key = caller.ok().map(|part| current.plan.keys.of(&part));
                (caller, key, key.and_then(|key| current.known(key)))
            }
            _ => (Err(NoPart::Missing), None, None),
        };
        let cost = route.map_or(Cost::ONE, |(_, route)| route.cost.of(attributes.method));
        let has_own = known.is_some() || !current.overrides.is_empty();
        Self { current, attributes, now, route, criticality, given, caller, caller_key, known, has_own, cost }
    }

    pub(crate) fn plan(&self) -> &'a Plan {
        &self.current.plan
    }

    /// The checks of its route: none for an exempt one.
    pub(crate) fn checks(&self) -> &'a [Check] {
        match self.route {
            Some((index, route)) if !route.is_exempt => &self.current.limits.checks[usize::from(index)],
            _ => &[],
        }
    }

    pub(crate) fn ruled(&self, rule: u16) -> &'a Ruled {
        &self.plan().rules[usize::from(rule)]
    }

    /// Everything to ask. A key that could be read in two ways ends the walk if its rule is enforced.
    #[inline]
    pub(crate) fn fill(&self, asks: &mut Asks<'a>) -> Result<(), Ambiguous<'a>> {
        for (place, check) in (0..).zip(self.checks()) {
            let mode = self.current.mode(check.rule, self.now);
            if mode == Mode::Disabled {
                continue;
            }
            let is_enforced = mode == Mode::Enforce && !check.is_shadow_value;
            match self.ask(place, check, is_enforced) {
                Ok((ask, _)) => asks.push(ask),
                Err(header) if is_enforced => return Err(Ambiguous { rule: check.rule, header }),
                Err(_) => {}
            }
        }
        Ok(())
    }

    /// What one check asks, and which of the rule's limits that is; the header field that could be read in two ways, if
    /// its key has one.
    #[inline(always)]
    pub(crate) fn ask(
        &self,
        place: u8,
        check: &'a Check,
        is_enforced: bool,
    ) -> Result<(Ask<'a>, Choice), &'a str> {
        let (key, is_missing) = match self.key(check) {
            Ok(key) => (key, false),
            Err(NoPart::Missing) => (self.plan().keys.missing, true),
            Err(NoPart::Repeated(header)) => return Err(header),
        };
        let (chosen, choice) = if check.is_uniform && !self.has_own || check.is_shadow_value {
            (&check.usual, Choice::Default)
        } else {
            self.choose(check, key, is_missing)
        };
        let (cost, foreseen) = (check.cost.unwrap_or(self.cost), Foreseen::Unknown);
        Ok((Ask { check: place, rule: check.rule, is_enforced, key, cost, chosen, foreseen }, choice))
    }

    /// The limit that applies where not all have the same.
    #[inline(never)]
    fn choose(&self, check: &Check, key: Key, is_missing: bool) -> (&'a Chosen, Choice) {
        let limits = &self.current.limits.rules[usize::from(check.rule)];
        let ruled = self.ruled(check.rule);
        let is_caller = ruled.tells_callers && !is_missing;
        // A rule that tells senders apart by something else than `[caller]` does: by its own key.
        let own = if is_caller { self.caller_key } else { (ruled.rule.key.0.len() == 1).then_some(key) };
        if let Some(key) = own.filter(|_| !is_missing)
            && let Some(own) = self.current.overridden(key, check.rule, self.now)
        {
            return (own, Choice::Override);
        }
        limits.choose(check.rule, self.criticality, self.known.filter(|_| is_caller))
    }

    #[inline(always)]
    fn key(&self, check: &Check) -> Result<Key, NoPart<'a>> {
        match (check.keyed, self.caller_key) {
            (Keyed::Everybody, _) => Ok(self.plan().keys.everybody),
            (Keyed::Caller, Some(key)) => Ok(key),
            (Keyed::Caller | Keyed::Parts, _) => self.composite(self.ruled(check.rule)),
        }
    }

    #[inline(never)]
    pub(crate) fn composite(&self, ruled: &'a Ruled) -> Result<Key, NoPart<'a>> {
        if ruled.rule.key.0.len() == 1
            && let Some(part) = self.parts(ruled).next()
        {
            return part.map(|part| self.plan().keys.of(&part));
        }
        let (mut parts, mut count) = ([Part::Everybody; MOST_PARTS], 0);
        for part in self.parts(ruled) {
            parts[count] = part?;
            count += 1;
        }
        Ok(self.plan().keys.all(&parts[..count]))
    }

    /// What a shed rule says. Who it is about is asked only while anybody is refused.
    #[inline]
    pub(crate) fn shed(&self, shedder: &Shedder, wall: WallTime) -> Option<Refusal> {
        if shedder.edge.is_open() {
            return None;
        }
        shedder.edge.decide(self.criticality, self.cohort(wall)).refusal()
    }

    /// The cohort of whoever sent it.
    pub(crate) fn cohort(&self, wall: WallTime) -> Cohort {
        who::cohort(who::sender(&self.plan().policy, self.caller, self.attributes), wall)
    }

    /// What a rule's key is made of here.
    pub(crate) fn parts(&self, ruled: &'a Ruled) -> impl Iterator<Item = Found<'a>> {
        let route = self.route.map_or("", |(_, route)| route.name.as_str());
        let (policy, attributes, caller) = (&self.plan().policy, self.attributes, self.caller);
        let sources = ruled.rule.key.0.iter().take(MOST_PARTS);
        sources.map(move |source| keys::part(source, policy, attributes, caller, route))
    }
}

fn criticality(policy: &Policy, attributes: &Attributes<'_>) -> (Criticality, Given) {
    let mut assignments = policy.criticality.iter().enumerate();
    if let Some((index, (_, assigned))) = assignments.find(|(_, (matcher, _))| matcher.matches(attributes)) {
        return (*assigned, Given::Assigned(index));
    }
    attributes.criticality.map_or((policy.default_criticality, Given::Default), |said| (said, Given::Said))
}
