//! A policy made ready to decide with.
//!
//! Two halves, because they live differently long. The [`Plan`] says which rules a route meets and where their
//! counters are kept; every admitted request holds on to the plan it was decided under, for hours if it streams.
//! The [`Limits`] are what is decided with, and nobody holds them longer than a decision takes.
//!
//! Counters are found again by name when a policy replaces another ([`StoreName`]): the rule, what it is keyed by,
//! the family of its algorithm, its `max_keys`, and its role. A rule for which all of these stay the same goes on
//! with what was consumed.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::mem::discriminant;
use std::sync::Arc;

use tidegate_core::keyed::{InFlightTable, Key, MaxKeys};
use tidegate_core::{Criticality, Invalid};

use super::Now;
use super::books::{Books, RuleCounts, TurnedCounts};
use super::check::{Check, checks};
use super::keys::{Keying, Keys, written};
use super::reserving::{Reserved, ToldLimits};
use super::shedding::Shedder;
use super::store::{Counting, Store, family, store_for};
use super::turning;
use crate::policy::{KEYS_OF_ONE_CALLER, KeySpec, Limit, Matcher, Policy, Rule};

/// The most limits that one rule has for plans, its default included. While a policy replaces another, a table knows
/// the limits of both, and it can know 16.
const MOST_PLANS: usize = 8;
/// The most sources of one key.
pub(crate) const MOST_PARTS: usize = 8;
/// The most callers' own limits; each has a table of its own, of about three thousand bytes.
const MOST_OVERRIDES: usize = 16_384;

/// Which rules requests meet, and where their counters are kept.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) policy: Arc<Policy>,
    /// In the order of the policy's routes.
    pub(crate) routes: Vec<Routed>,
    pub(crate) rules: Vec<Ruled>,
    /// In the order of the policy's upstreams.
    pub(crate) upstreams: Vec<Upstreamed>,
    pub(crate) stores: Vec<Arc<Kept>>,
    pub(crate) keys: Arc<Keys>,
    pub(crate) books: Arc<Books>,
    /// Whether routes or criticality are chosen by header fields.
    pub(crate) matches_headers: bool,
}

impl Plan {
    /// Whether an upstream stands behind a route that has this rule.
    pub(crate) fn is_behind(&self, upstream: &str, rule: u16) -> bool {
        let mut routes = self.routes.iter().zip(&self.policy.routes);
        routes.any(|(routed, route)| {
            routed.rules.contains(&rule) && route.upstream.as_deref() == Some(upstream)
        })
    }
}

/// What a route's requests are asked.
#[derive(Clone, Debug)]
pub(crate) struct Routed {
    /// The rule of each check.
    pub(crate) rules: Vec<u16>,
    /// Whether it takes every request.
    pub(crate) takes_all: bool,
}

/// A rule and what belongs to it.
#[derive(Clone, Debug)]
pub(crate) struct Ruled {
    pub(crate) rule: Arc<Rule>,
    pub(crate) keying: Keying,
    pub(crate) tells_callers: bool,
    pub(crate) counts: Arc<RuleCounts>,
}

/// What belongs to an upstream.
#[derive(Clone, Debug)]
pub(crate) struct Upstreamed {
    /// As it refuses: `upstream:orders`.
    pub(crate) refuses_as: Arc<str>,
    pub(crate) counts: Arc<TurnedCounts>,
}

/// Counters with their name.
pub(crate) struct Kept {
    pub(crate) name: StoreName,
    pub(crate) counters: Counters,
}

pub(crate) enum Counters {
    Rate(Arc<dyn Store>),
    Places(Arc<InFlightTable>),
    Shed(Arc<Shedder>),
}

/// By what counters are found again.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct StoreName {
    pub(crate) rule: String,
    role: Role,
    key: KeySpec,
    family: &'static str,
    max_keys: usize,
}

/// What the counters of a rule are for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Role {
    /// Callers with nothing of their own, and those on a plan.
    Main,
    /// The requests of one criticality.
    Criticality(Criticality),
    /// The shadow value.
    Shadow,
    /// One caller.
    Override(String),
}

/// What is decided with.
#[derive(Debug, Default)]
pub(crate) struct Limits {
    pub(crate) rules: Vec<RuleLimits>,
    /// In the order of the policy's routes.
    pub(crate) checks: Vec<Vec<Check>>,
    pub(crate) callers: HashMap<Key, Known, ByKey>,
}

/// What a rule allows whom.
#[derive(Debug)]
pub(crate) struct RuleLimits {
    pub(crate) default: Chosen,
    /// By the plan's number.
    plans: Vec<Option<Chosen>>,
    per_criticality: [Option<Chosen>; 4],
    pub(crate) shadow: Option<Chosen>,
}

/// What the callers table says of one caller.
#[derive(Debug)]
pub(crate) struct Known {
    pub(crate) identity: String,
    plan: Option<u16>,
    overrides: Vec<(u16, Chosen)>,
}

/// A limit and its counters.
#[derive(Clone, Debug)]
pub(crate) struct Chosen {
    /// Which of the plan's stores it counts in.
    pub(crate) store: u32,
    pub(crate) measure: Measure,
}

#[derive(Clone, Debug)]
pub(crate) enum Measure {
    Rate(Counting),
    /// So many in flight.
    Places(Arc<InFlightTable>, u32),
    /// So many in flight, some of them kept.
    Reserved(Arc<Reserved>),
    /// As signals say.
    Shed(Arc<Shedder>),
}

impl Chosen {
    /// Has the key's counter fetched, so that it is at hand when it is asked.
    #[inline]
    pub(crate) fn touch(&self, key: Key) {
        match &self.measure {
            Measure::Rate(counter) => counter.touch(key),
            Measure::Places(table, _) => table.touch(key),
            Measure::Reserved(reserved) => reserved.touch(key),
            Measure::Shed(_) => {}
        }
    }
}

/// Which of a rule's limits was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    Default,
    Plan(u16),
    Criticality(Criticality),
    Override,
}

/// Keys are hashes already.
pub(crate) type ByKey = std::hash::BuildHasherDefault<Already>;

#[derive(Debug, Default)]
pub(crate) struct Already(u64);

impl std::hash::Hasher for Already {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

impl fmt::Debug for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Kept").field(&self.name).finish()
    }
}

impl Kept {
    pub(crate) fn rate(&self) -> Option<&Arc<dyn Store>> {
        match &self.counters {
            Counters::Rate(store) => Some(store),
            Counters::Places(_) | Counters::Shed(_) => None,
        }
    }
}

impl RuleLimits {
    /// Whether all plans and criticalities have the default.
    pub(crate) fn is_uniform(&self) -> bool {
        self.plans.iter().chain(&self.per_criticality).all(Option::is_none)
    }

    /// The limit for a request: the caller's own, else that of its criticality, else that of its plan.
    #[inline]
    pub(crate) fn choose<'a>(
        &'a self,
        rule: u16,
        criticality: Criticality,
        known: Option<&'a Known>,
    ) -> (&'a Chosen, Choice) {
        let own = known.and_then(|known| known.overrides.iter().find(|(of, _)| *of == rule));
        if let Some((_, chosen)) = own {
            return (chosen, Choice::Override);
        }
        if let Some(chosen) = &self.per_criticality[criticality.index()] {
            return (chosen, Choice::Criticality(criticality));
        }
        let plan = known.and_then(|known| known.plan);
        match plan.and_then(|plan| Some((self.plans.get(usize::from(plan))?.as_ref()?, plan))) {
            Some((chosen, plan)) => (chosen, Choice::Plan(plan)),
            None => (&self.default, Choice::Default),
        }
    }
}

/// The names of all plans that a policy's rules have, in order; a plan's number is its position.
pub(crate) fn plan_names(policy: &Policy) -> Vec<&str> {
    let mut names: Vec<&str> =
        policy.rules.iter().flat_map(|rule| rule.plans.keys().map(String::as_str)).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// Builds plans, reusing the counters of the one before.
pub(crate) struct Builder {
    seed: u64,
    now: Now,
    keys: Arc<Keys>,
    known: HashMap<StoreName, Arc<Kept>>,
    stores: Vec<Arc<Kept>>,
    placed: HashMap<StoreName, u32>,
    told: ToldLimits,
}

impl Builder {
    pub(crate) fn new(seed: u64, keys: Arc<Keys>, before: &[Arc<Kept>], now: Now) -> Self {
        let known = before.iter().map(|kept| (kept.name.clone(), Arc::clone(kept))).collect();
        Self { seed, now, keys, known, stores: Vec::new(), placed: HashMap::new(), told: Vec::new() }
    }

    /// The same, with the limits of upstreams that were told last.
    pub(crate) fn told(self, told: ToldLimits) -> Self {
        Self { told, ..self }
    }

    /// # Errors
    /// With what does not fit, when a bound is exceeded.
    pub(crate) fn build(mut self, policy: Policy, books: &Arc<Books>) -> Result<(Plan, Limits), Invalid> {
        let policy = Arc::new(policy);
        let names = plan_names(&policy);
        let numbers: BTreeMap<&str, u16> = names.iter().copied().zip(0..).collect();
        let mut limits = Limits::default();
        let mut rules = Vec::with_capacity(policy.rules.len());
        // Before its limit is told, an upstream may have as many in flight as it ever may.
        self.told.extend(policy.upstreams.iter().map(|up| (up.name.as_str().into(), up.concurrency.max)));
        for rule in &policy.rules {
            limits.rules.push(self.rule_limits(rule, &names)?);
            let keying = keying(rule);
            let tells_callers = keying.tells_callers(&policy.caller);
            rules.push(Ruled {
                rule: Arc::clone(rule),
                keying,
                tells_callers,
                counts: books.counts(&rule.name),
            });
        }
        self.known_callers(&policy, &numbers, &mut limits)?;
        let mut routes = Vec::with_capacity(policy.routes.len());
        for route in &policy.routes {
            let checks = checks(route, &rules, &limits.rules)?;
            let rules = checks.iter().map(|check| check.rule).collect();
            routes.push(Routed { rules, takes_all: route.matcher == Matcher::default() });
            limits.checks.push(checks);
        }
        let upstreams = policy.upstreams.iter().map(|upstream| Upstreamed {
            refuses_as: turning::refuses_as(&upstream.name),
            counts: books.turned(&upstream.name),
        });
        let upstreams = upstreams.collect();
        let (keys, books) = (self.keys, Arc::clone(books));
        let matches_headers = !policy.matched_fields().is_empty();
        let stores = self.stores;
        Ok((Plan { policy, routes, rules, upstreams, stores, keys, books, matches_headers }, limits))
    }

    fn rule_limits(&mut self, rule: &Rule, names: &[&str]) -> Result<RuleLimits, Invalid> {
        if rule.plans.len() >= MOST_PLANS {
            let plans = format!("{} of rule `{}`", rule.plans.len(), rule.name);
            return Err(Invalid::new("plans", plans, "at most 7 a rule"));
        }
        if rule.key.0.len() > MOST_PARTS {
            return Err(Invalid::new("key", format!("{:?}", rule.key), "of at most 8 sources"));
        }
        let has_variations =
            !rule.plans.is_empty() || !rule.per_criticality.is_empty() || rule.shadow.is_some();
        if has_variations && matches!(rule.limit, Limit::Reserve(_) | Limit::Shed(_)) {
            return Err(Invalid::new("limits", &rule.name, "one, of a rule that protects the service"));
        }
        let default = self.chosen(rule, Role::Main, "default", &rule.limit)?;
        let mut plans = Vec::new();
        for name in names {
            let limit = rule.plans.get(*name);
            plans.push(limit.map(|limit| self.chosen(rule, Role::Main, name, limit)).transpose()?);
        }
        let mut per_criticality = [const { None }; 4];
        for (criticality, limit) in &rule.per_criticality {
            let role = Role::Criticality(*criticality);
            per_criticality[criticality.index()] =
                Some(self.chosen(rule, role, criticality.as_str(), limit)?);
        }
        let shadow = rule.shadow.as_ref().map(|limit| self.chosen(rule, Role::Shadow, "shadow", limit));
        Ok(RuleLimits { default, plans, per_criticality, shadow: shadow.transpose()? })
    }

    fn known_callers(
        &mut self,
        policy: &Policy,
        numbers: &BTreeMap<&str, u16>,
        limits: &mut Limits,
    ) -> Result<(), Invalid> {
        let wanted: usize = policy.callers.values().map(|caller| caller.overrides.len()).sum();
        if wanted > MOST_OVERRIDES {
            return Err(Invalid::new("overrides", wanted, "at most 16384 in all"));
        }
        for (identity, caller) in &policy.callers {
            let plan = caller.plan.as_deref().and_then(|plan| numbers.get(plan).copied());
            let mut overrides = Vec::with_capacity(caller.overrides.len());
            for (index, rule) in (0..).zip(&policy.rules) {
                if let Some(limit) = caller.overrides.get(&rule.name) {
                    overrides.push((index, self.own(rule, identity, limit)?));
                }
            }
            let key = self.keys.of(&written(identity, policy));
            limits.callers.insert(key, Known { identity: identity.clone(), plan, overrides });
        }
        Ok(())
    }

    /// A caller's own limit by a rule: of a rate with counters of its own, of places in flight with the rule's.
    pub(crate) fn own(&mut self, rule: &Rule, identity: &str, limit: &Limit) -> Result<Chosen, Invalid> {
        match limit {
            Limit::Rate(_) => self.chosen(rule, Role::Override(identity.to_owned()), identity, limit),
            Limit::Concurrency(_) => self.chosen(rule, Role::Main, identity, limit),
            Limit::Reserve(_) | Limit::Shed(_) => {
                Err(Invalid::new("an override", &rule.name, "of a rule whose key tells callers apart"))
            }
        }
    }

    fn chosen(&mut self, rule: &Rule, role: Role, label: &str, limit: &Limit) -> Result<Chosen, Invalid> {
        if discriminant(limit) != discriminant(&rule.limit) {
            let value = format!("of another kind than rule `{}` itself", rule.name);
            return Err(Invalid::new("a limit", value, "a quota where the rule has one, else a limit"));
        }
        let store = self.store(rule, role, limit)?;
        let measure = match (limit, &self.stores[store as usize].counters) {
            (Limit::Rate(rate), Counters::Rate(store)) => Measure::Rate(store.enrol(label, rate, self.now)?),
            (Limit::Concurrency(limit), Counters::Places(table)) => {
                Measure::Places(Arc::clone(table), *limit)
            }
            (Limit::Reserve(spec), Counters::Places(table)) => {
                Measure::Reserved(Arc::new(Reserved::new(Arc::clone(table), spec, &self.told)))
            }
            (Limit::Shed(_), Counters::Shed(shedder)) => Measure::Shed(Arc::clone(shedder)),
            (Limit::Rate(_) | Limit::Concurrency(_) | Limit::Reserve(_) | Limit::Shed(_), _) => {
                return Err(Invalid::new("counters", &rule.name, "of the kind of the limit"));
            }
        };
        Ok(Chosen { store, measure })
    }

    /// The counters with this name: those of this plan, those of the plan before, or new ones.
    fn store(&mut self, rule: &Rule, role: Role, limit: &Limit) -> Result<u32, Invalid> {
        let is_whole_key = matches!(keying(rule), Keying::Global);
        let is_caller_key = rule.key.0.len() <= 1;
        let keys = match role {
            _ if is_whole_key => MaxKeys::new(1)?,
            Role::Override(_) if is_caller_key => MaxKeys::new(1)?,
            Role::Override(_) => MaxKeys::new(KEYS_OF_ONE_CALLER)?,
            Role::Main | Role::Criticality(_) | Role::Shadow => rule.max_keys,
        };
        let family = match limit {
            Limit::Rate(rate) => family(&rate.shape),
            Limit::Concurrency(_) => "concurrency",
            Limit::Reserve(_) => "reserve",
            Limit::Shed(_) => "shed",
        };
        let name =
            StoreName { rule: rule.name.clone(), role, key: rule.key.clone(), family, max_keys: keys.get() };
        if let Some(index) = self.placed.get(&name) {
            return Ok(*index);
        }
        let kept = self.known.get(&name).map_or_else(
            || {
                let counters = match limit {
                    Limit::Rate(rate) => Counters::Rate(store_for(&rate.shape, keys, self.seed)),
                    Limit::Concurrency(_) | Limit::Reserve(_) => {
                        Counters::Places(Arc::new(InFlightTable::new(keys, self.seed)))
                    }
                    Limit::Shed(_) => Counters::Shed(Arc::default()),
                };
                Arc::new(Kept { name: name.clone(), counters })
            },
            Arc::clone,
        );
        let index = u32::try_from(self.stores.len()).unwrap_or(u32::MAX);
        self.stores.push(kept);
        self.placed.insert(name, index);
        Ok(index)
    }
}

/// What picks a rule's counter: of a rule that protects the service, there is one.
fn keying(rule: &Rule) -> Keying {
    match rule.limit {
        Limit::Rate(_) | Limit::Concurrency(_) => Keying::new(&rule.key),
        Limit::Reserve(_) | Limit::Shed(_) => Keying::Global,
    }
}
