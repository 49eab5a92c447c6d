use std::time::Duration;

use tidegate_core::keyed::{Key, Place};
use tidegate_core::permit::Outcome;
use tidegate_core::{Charge, Cost, Criticality};

use super::{DecisionId, Standings, record};
use crate::attributes::Attributes;
use crate::gate::{Counted, HeldPlan, Note, Now, Plan, Spot, Ticket};
use crate::policy::{Route, Rule, RuleCost, Settle};
use crate::record::Record;

/// A request that may pass, with what it took.
#[derive(Debug)]
#[must_use = "a request that is dropped at once is abandoned"]
pub struct Admitted {
    pub(crate) plan: HeldPlan,
    pub(crate) id: DecisionId,
    pub(crate) spot: Spot,
    /// What was noted of it, while it may yet be turned away.
    pub(crate) note: Option<Box<Note>>,
    pub(crate) route: Option<u16>,
    pub(crate) criticality: Criticality,
    pub(crate) cost: Cost,
    pub(crate) wait: Duration,
    pub(crate) began: Now,
    pub(crate) caller: Option<Key>,
    pub(crate) mets: Mets,
    /// By the position of the check: which shadows would have refused.
    pub(crate) shadow_refusals: u16,
    pub(crate) settled: Settled,
    pub(crate) is_over: bool,
}

/// One check a request has met.
#[derive(Debug)]
pub(crate) struct Met {
    pub(crate) rule: u16,
    pub(crate) is_enforced: bool,
    pub(crate) store: u32,
    pub(crate) key: Key,
    pub(crate) took: Took,
}

/// What it took there.
#[derive(Debug)]
pub(crate) enum Took {
    /// A charge under the limit with this number.
    Charge(Ticket, Charge),
    /// One of so many places.
    Place(u32, Option<Place>),
    /// Nothing: a charge of this cost would have been.
    NoCharge(Ticket, Cost),
    /// A place of a reserve, of which callers are told nothing.
    Reserved(Option<Place>),
    /// Nothing, since there is nothing to take.
    Nothing,
}

impl Took {
    /// How long the request must wait for it.
    pub(crate) const fn wait(&self) -> Duration {
        match self {
            Self::Charge(_, charge) => charge.wait(),
            Self::Place(..) | Self::NoCharge(..) | Self::Reserved(_) | Self::Nothing => Duration::ZERO,
        }
    }
}

/// What a request met, up to eight checks of it without memory from the heap. A decision is moved a few times, so room
/// for sixteen would be carried about by all for the few that need it.
#[derive(Debug)]
pub(crate) struct Mets {
    first: [Option<Met>; IN_PLACE],
    count: usize,
    rest: Vec<Met>,
}

/// Checks that are kept in place.
const IN_PLACE: usize = 8;

impl Mets {
    /// None yet. Written place by place: a copy of an empty list would move half a thousand bytes.
    #[inline]
    pub(crate) fn new() -> Self {
        Self { first: std::array::from_fn(|_| None), count: 0, rest: Vec::new() }
    }

    #[inline(always)]
    pub(crate) fn push(&mut self, met: Met) {
        match self.first.get_mut(self.count) {
            Some(place) => {
                *place = Some(met);
                self.count += 1;
            }
            None => self.rest.push(met),
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Met> {
        self.first[..self.count].iter().flatten().chain(&self.rest)
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Met> {
        self.first[..self.count].iter_mut().flatten().chain(&mut self.rest)
    }
}

/// By the position of the rule: what its charge was settled to. The first of them takes no memory from the heap; few
/// requests have more.
#[derive(Debug, Default)]
pub(crate) struct Settled {
    first: Option<(u16, Cost)>,
    rest: Vec<(u16, Cost)>,
}

impl Settled {
    fn push(&mut self, rule: u16, cost: Cost) {
        match self.first {
            Some(_) => self.rest.push((rule, cost)),
            None => self.first = Some((rule, cost)),
        }
    }
}

impl Admitted {
    /// The decision's number.
    #[must_use]
    pub const fn id(&self) -> DecisionId {
        self.id
    }

    /// The route it took; none when no route matches, and then it met no rules either.
    #[must_use]
    pub fn route(&self) -> Option<&Route> {
        self.plan.policy.routes.get(usize::from(self.route?))
    }

    /// How late it should be shed.
    #[must_use]
    pub const fn criticality(&self) -> Criticality {
        self.criticality
    }

    /// What its route says it costs.
    #[must_use]
    pub const fn cost(&self) -> Cost {
        self.cost
    }

    /// How long it must wait before it goes on. Zero unless a rule shapes.
    #[must_use]
    pub const fn wait(&self) -> Duration {
        self.wait
    }

    /// The rules in shadow that would have refused it.
    pub fn shadow_refusals(&self) -> impl Iterator<Item = &Rule> {
        let routed = self.route.and_then(|route| self.plan.routes.get(usize::from(route)));
        let rules = routed.map_or([].as_slice(), |routed| routed.rules.as_slice());
        let refused = rules.iter().enumerate().filter(|(check, _)| self.shadow_refusals >> check & 1 == 1);
        refused.map(|(_, rule)| &*self.plan.rules[usize::from(*rule)].rule)
    }

    /// The line it makes in the access log; how it ended is for its driver to add.
    #[must_use]
    pub fn record(&self, attributes: &Attributes<'_>) -> Record {
        Record {
            route: self.route().map(|route| route.name.clone()),
            criticality: self.criticality,
            cost: self.cost,
            shadow_refusals: self.shadow_refusals().map(|rule| rule.name.clone()).collect(),
            wait: self.wait,
            ..record(&self.plan, (self.id, self.began), attributes, (self.caller, &self.mets))
        }
    }

    /// What its caller may be told of the rules it met. Shadow rules are not among them.
    #[must_use]
    pub fn standings(&self, now: Now) -> Standings<'_> {
        Standings::of(&self.plan, &self.mets, now, None)
    }

    /// Where the true costs of its rules come from, each source once.
    pub fn settles(&self) -> impl Iterator<Item = &Settle> {
        let sources = self.mets.iter().enumerate().filter_map(|(at, met)| Some((at, self.source(met)?)));
        sources
            .filter(|(at, source)| !self.mets.iter().take(*at).any(|met| self.source(met) == Some(source)))
            .map(|(_, source)| source)
    }

    /// Settles what it was charged by the rules with this source to the true cost. Doing it twice changes nothing.
    pub fn settle(&mut self, now: Now, source: &Settle, true_cost: Cost) {
        let Self { plan, mets, settled, .. } = self;
        for met in mets.iter_mut().filter(|met| settle_of(plan, met.rule) == Some(source)) {
            if met.settle(plan, now, true_cost) {
                settled.push(met.rule, true_cost);
            }
        }
    }

    /// The same for a cost that is not known to its end: it is at least what the rule says such a request costs, so that
    /// nothing comes back because a caller leaves.
    pub fn settle_at_least(&mut self, now: Now, source: &Settle, known: Cost) {
        let Self { plan, mets, settled, .. } = self;
        for met in mets.iter_mut() {
            if let Some(cost) = cost_of(plan, met.rule).filter(|cost| cost.settle.as_ref() == Some(source)) {
                let known = known.max(cost.unheard());
                if met.settle(plan, now, known) {
                    settled.push(met.rule, known);
                }
            }
        }
    }

    /// No answer was heard: what is still to be settled by one costs what the rules say for that.
    pub fn settle_unheard(&mut self, now: Now) {
        let Self { plan, mets, settled, .. } = self;
        for met in mets.iter_mut() {
            let cost = cost_of(plan, met.rule).filter(|cost| cost.settle.is_some());
            if let Some(abandoned) = cost.and_then(|cost| cost.abandoned)
                && met.settle(plan, now, abandoned)
            {
                settled.push(met.rule, abandoned);
            }
        }
    }

    /// Whether it holds a place among those that a rule allows in flight.
    #[must_use]
    pub fn holds_place(&self) -> bool {
        self.mets.iter().any(|met| matches!(met.took, Took::Place(_, Some(_)) | Took::Reserved(Some(_))))
    }

    /// What the charges of its rules were settled to, by the rules' names.
    pub fn settled(&self) -> impl Iterator<Item = (&str, Cost)> {
        let named = |rule: u16| self.plan.rules.get(usize::from(rule)).map(|ruled| ruled.rule.name.as_str());
        self.settled
            .first
            .iter()
            .chain(&self.settled.rest)
            .filter_map(move |(rule, cost)| Some((named(*rule)?, *cost)))
    }

    /// Ends it with what was learnt.
    #[inline]
    pub fn complete(mut self, now: Now, outcome: Outcome) {
        self.end(Some(now), outcome);
    }

    /// Ends it with everything given back that has not been settled: nothing was done for it.
    pub fn refund(mut self, now: Now) {
        self.undo(now);
    }

    /// Gives everything back that has not been settled, and ends it without an outcome; nothing the second time.
    pub(crate) fn undo(&mut self, now: Now) {
        if std::mem::replace(&mut self.is_over, true) {
            return;
        }
        let Self { plan, mets, .. } = self;
        for met in mets.iter_mut() {
            met.settle(plan, now, Cost::ZERO);
        }
        self.give_back();
    }

    fn source(&self, met: &Met) -> Option<&Settle> {
        settle_of(&self.plan, met.rule)
    }

    #[inline]
    fn end(&mut self, now: Option<Now>, outcome: Outcome) {
        if !std::mem::replace(&mut self.is_over, true) {
            self.end_once(now, outcome);
        }
    }

    fn end_once(&mut self, now: Option<Now>, outcome: Outcome) {
        self.give_back();
        self.plan.books.end(self.spot, self.id, outcome, now.map(|now| now.moment.since(self.began.moment)));
    }

    fn give_back(&mut self) {
        let Self { plan, mets, .. } = self;
        mets.iter_mut().for_each(|met| met.give_back(plan));
    }
}

impl Drop for Admitted {
    #[inline]
    fn drop(&mut self) {
        self.end(None, Outcome::Abandoned);
    }
}

fn cost_of(plan: &Plan, rule: u16) -> Option<&RuleCost> {
    plan.rules.get(usize::from(rule))?.rule.cost.as_ref()
}

fn settle_of(plan: &Plan, rule: u16) -> Option<&Settle> {
    cost_of(plan, rule)?.settle.as_ref()
}

impl Met {
    /// Settles its charge, if it has one that is not settled; says whether.
    pub(crate) fn settle(&mut self, plan: &Plan, now: Now, true_cost: Cost) -> bool {
        if let Took::Charge(ticket, charge) = &mut self.took
            && !charge.is_settled()
            && let Some(Counted::Rate(store)) = plan.counted(self.store)
            && let Some(counter) = store.counter(*ticket)
        {
            counter.settle(self.key, now, charge, true_cost);
            return true;
        }
        false
    }

    pub(crate) fn give_back(&mut self, plan: &Plan) {
        if let Took::Place(_, place) | Took::Reserved(place) = &mut self.took
            && let Some(place) = place.take()
            && let Some(Counted::Places(table)) = plan.counted(self.store)
        {
            table.give_back(place);
        }
    }
}
