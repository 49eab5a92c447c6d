//! A policy with its live state: may this request pass now, and what follows?
//!
//! ```text
//! attributes ──walk──> route, criticality, caller, asks ──charge──> all or none ──> Decision
//! ```
//!
//! The gate is told the moments and shared by threads. A decision takes no lock that another decision waits for, and,
//! with up to eight rules, no memory from the heap.
//!
//! **A request that no route matches** is admitted and meets no rules, as a server without a matching `limit_req`
//! would: rules refuse, the absence of rules does not. Write a last route for `/**` to leave no gap.
//!
//! | in `gate/` | is |
//! |---|---|
//! | `keys` | which counter a request belongs to |
//! | `store` | where counters are kept, whatever the algorithm |
//! | `plan` | a policy made ready to decide with |
//! | `current` | what is decided with at this moment, and how it is replaced |
//! | `check` | what a route's requests are asked, as far as it is known before one comes |
//! | `walk` | what a request is asked |
//! | `charge` | charged by all or by none |
//! | `reserving`, `shedding` | rules that protect the service itself, and what moves them |
//! | `blocking`, `naming` | callers that an operator keeps out, and how callers are named |
//! | `books`, `recent` | numbers, counts, the last decisions, the heaviest callers |
//! | `stripes` | what all threads write, spread out |
//! | `turning` | what was admitted and then turned away by an upstream |
//! | `admin` | what operators do to a running gate, and what they are told |
//! | `explaining` | the walk of a decision, looked at instead of taken |
//! | `who` | what those who shed want to know of a caller |

mod admin;
mod blocking;
mod books;
mod charge;
mod check;
mod current;
mod explaining;
mod keys;
mod naming;
mod plan;
mod reasons;
mod recent;
mod reserving;
mod shedding;
mod store;
mod stripes;
mod turning;
mod walk;
mod who;

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tidegate_core::keyed::InFlightTable;
use tidegate_core::{Invalid, Moment, Reason, Refusal, Retry, WallTime};

use self::admin::Overlay;
pub use self::admin::{Order, RuleRefusals, RuleStatistics, Statistics, UpstreamRefusals};
pub use self::blocking::{Block, OPERATOR};
use self::books::{Books, Entry};
use self::charge::Joint;
pub(crate) use self::current::HeldPlan;
use self::current::{Cell, Current, Switch};
use self::keys::Keys;
pub use self::naming::{CallerName, CounterName};
pub(crate) use self::plan::Plan;
use self::plan::{Builder, Counters, Limits};
pub use self::reasons::ReasonRefusals;
pub(crate) use self::recent::{Note, Spot};
use self::reserving::ToldLimits;
pub(crate) use self::shedding::hardest;
pub use self::shedding::{Readings, Shedding, SignalReading, UpstreamReadings};
use self::store::Store;
pub(crate) use self::store::Ticket;
pub use self::turning::Turned;
use self::walk::{Ambiguous, Asks, Walk};
pub use self::who::Who;
use crate::attributes::{Attributes, Headers};
use crate::decision::{Admitted, Cause, Decision, Mets, Refused, Settled};
use crate::policy::{Limit, Policy};

/// One reading of the driver's clocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Now {
    /// For everything but the calendar.
    pub moment: Moment,
    /// For quotas by the day and the month, and for records.
    pub wall: WallTime,
}

/// A policy with its live state.
///
/// ```
/// use tidegate_core::permit::Outcome;
/// use tidegate_policy::{Attributes, Decision, Gate, Now, Source, read};
///
/// let text = br#"
/// upstream = "http://127.0.0.1:3000"
///
/// [rule.per_address]
/// key   = "client-ip"
/// quota = "1/min"
/// "#;
/// let (policy, _) = read(Source::named("tidegate.toml", text), None).expect("it is well written");
/// let (now, seed) = (Now::default(), 0x5eed); // a driver reads its clocks and draws the seed
/// let gate = Gate::new(policy, seed, now)?;
///
/// let client = Some([192, 0, 2, 1].into());
/// let request = Attributes { method: "GET", path: "/", host: "", headers: &(), client, criticality: None };
/// let Decision::Admit(admitted) = gate.decide(now, &request) else { panic!("it is the first") };
/// admitted.complete(now, Outcome::Ok);
/// let Decision::Refuse(refused) = gate.decide(now, &request) else { panic!("it is the second") };
/// assert_eq!(refused.by().name(), "per_address");
/// # Ok::<(), tidegate_core::Invalid>(())
/// ```
#[derive(Debug)]
pub struct Gate {
    seed: u64,
    current: Cell,
    /// Held by whoever changes something, so that changes come one after another.
    changing: Mutex<Overlay>,
    /// The limits of upstreams, as they were told last.
    told: Mutex<ToldLimits>,
    books: Arc<Books>,
}

/// A store as those see it who give back.
pub(crate) enum Counted<'a> {
    Rate(&'a dyn Store),
    Places(&'a InFlightTable),
}

impl Plan {
    /// Who sent a request, as far as it may be shown.
    pub(crate) fn caller_shown(&self, attributes: &Attributes<'_>) -> Option<String> {
        keys::caller(&self.policy, attributes).ok().map(|part| part.to_string())
    }

    #[inline]
    pub(crate) fn counted(&self, store: u32) -> Option<Counted<'_>> {
        self.stores.get(store as usize).and_then(|kept| match &kept.counters {
            Counters::Rate(store) => Some(Counted::Rate(&**store)),
            Counters::Places(table) => Some(Counted::Places(table)),
            Counters::Shed(_) => None,
        })
    }
}

impl Gate {
    /// A gate for `policy`, hashing with a seed that strangers do not know.
    ///
    /// # Errors
    /// When the policy exceeds a bound: 16 rules and shadow values a route, 7 plans a rule, 8 sources a key, 16384
    /// callers' own limits.
    pub fn new(policy: Policy, seed: u64, now: Now) -> Result<Self, Invalid> {
        Self::with_fingerprints(policy, seed, seed, now)
    }

    /// The same with a seed of its own for fingerprints, which may be the one of other gates and earlier ones; numbers of
    /// decisions must not.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn with_fingerprints(
        policy: Policy,
        seed: u64,
        fingerprints: u64,
        now: Now,
    ) -> Result<Self, Invalid> {
        let books = Arc::new(Books::new(seed)?);
        let seed = fingerprints;
        let keys = Arc::new(Keys::new(seed));
        let (plan, limits) = Builder::new(seed, keys, &[], now).build(policy, &books)?;
        let current = current(1, plan, limits);
        let (changing, told) = (Mutex::default(), Mutex::default());
        Ok(Self { seed, current: Cell::new(&current), changing, told, books })
    }

    /// Decides about a request.
    pub fn decide(&self, now: Now, attributes: &Attributes<'_>) -> Decision {
        let held = self.current.read();
        let walk = Walk::new(&held, attributes, now.moment);
        if held.has_blocks
            && let Some(refused) = self.refuse_blocked(&walk, &held.plan, now)
        {
            return refused;
        }
        let mut asks = Asks::new();
        if let Err(ambiguous) = walk.fill(&mut asks) {
            return self.refuse_ambiguous(&walk, &held.plan, now, ambiguous);
        }
        charge::touch(&asks);
        match charge::foresee(&walk, &mut asks, now) {
            None => self.admit(&walk, &held.plan, now, &asks),
            Some(answer) => self.refuse_asked(&walk, &held.plan, now, &asks, answer),
        }
    }

    /// Charges all rules, and admits; or refuses after all, if another thread was faster.
    #[inline]
    fn admit(&self, walk: &Walk<'_>, plan: &HeldPlan, now: Now, asks: &Asks<'_>) -> Decision {
        let mut mets = Mets::new();
        let wait = match charge::charge(walk, asks, now, &mut mets) {
            Joint::Admit(wait) => wait,
            Joint::Refuse(rule, refusal) => return self.refuse_asked(walk, plan, now, asks, (rule, refusal)),
        };
        let refusals = charge::charge_shadows(walk, asks, now, &mut mets);
        for ask in asks.enforced() {
            walk.ruled(ask.rule).counts.admitted.add();
        }
        let shadow = if refusals == 0 { None } else { shadow_refused(walk, refusals) };
        let is_shadow_refused = shadow.is_some();
        let entry = Entry { refusal: None, rule: shadow, position: None, is_shadow_refused, wait };
        let (id, spot) = self.books.enter(walk, now, entry);
        Decision::Admit(Admitted {
            plan: Arc::clone(plan),
            id,
            spot,
            note: None,
            route: walk.route.map(|(index, _)| index),
            criticality: walk.criticality,
            cost: walk.cost,
            wait,
            began: now,
            caller: walk.caller_key,
            mets,
            shadow_refusals: refusals,
            settled: Settled::default(),
            is_over: false,
        })
    }

    #[inline(never)]
    fn refuse_asked(
        &self,
        walk: &Walk<'_>,
        plan: &HeldPlan,
        now: Now,
        asks: &Asks<'_>,
        (rule, refusal): (u16, Refusal),
    ) -> Decision {
        let cause = match walk.ruled(rule).rule.limit {
            Limit::Rate(_) => Cause::Quota,
            Limit::Concurrency(_) => Cause::Concurrency,
            Limit::Reserve(_) => Cause::Reserve,
            Limit::Shed(_) => Cause::Shed,
        };
        let mut decision = self.refuse(walk, plan, now, (rule, refusal), cause);
        // Into the decision itself: a list that is handed on is copied each time.
        if let Decision::Refuse(refused) = &mut decision {
            charge::asked(asks, &mut refused.mets);
        }
        decision
    }

    #[cold]
    fn refuse_ambiguous(
        &self,
        walk: &Walk<'_>,
        plan: &HeldPlan,
        now: Now,
        ambiguous: Ambiguous<'_>,
    ) -> Decision {
        let counts = &walk.ruled(ambiguous.rule).counts;
        counts.ambiguous[walk.criticality.index()].fetch_add(1, Ordering::Relaxed);
        let refusal = Refusal { reason: Reason::AmbiguousKey, retry: Retry::Never };
        let cause = Cause::BadKey { header: ambiguous.header.into() };
        self.refuse(walk, plan, now, (ambiguous.rule, refusal), cause)
    }

    #[inline]
    fn refuse(
        &self,
        walk: &Walk<'_>,
        plan: &HeldPlan,
        now: Now,
        (rule, refusal): (u16, Refusal),
        cause: Cause,
    ) -> Decision {
        let ruled = walk.ruled(rule);
        ruled.counts.refused[walk.criticality.index()].add();
        let entry = Entry {
            refusal: Some(refusal),
            rule: Some(&ruled.rule.name),
            position: Some(rule),
            is_shadow_refused: false,
            wait: Duration::ZERO,
        };
        let (id, _) = self.books.enter(walk, now, entry);
        Decision::Refuse(Refused {
            id,
            refusal,
            cause,
            criticality: walk.criticality,
            cost: walk.cost,
            plan: Arc::clone(plan),
            route: walk.route.map_or(0, |(index, _)| index),
            position: rule,
            upstream: None,
            at: now,
            caller: walk.caller_key,
            mets: Mets::new(),
        })
    }

    /// The policy it decides with.
    #[must_use]
    pub fn policy(&self) -> Arc<Policy> {
        Arc::clone(&self.current.read().plan.policy)
    }

    /// Whether a header field that the policy matches has several lines.
    #[must_use]
    pub fn matches_repeated(&self, headers: &dyn Headers) -> bool {
        let held = self.current.read();
        held.plan.matches_headers && held.plan.policy.matches_repeated(headers)
    }

    /// The policy's number: one, and one more with every policy taken.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.current.read().version
    }
}

/// Counts the shadows that would have refused; returns the name of the first.
#[cold]
fn shadow_refused<'a>(walk: &Walk<'a>, refusals: u16) -> Option<&'a str> {
    let checks = walk.checks().iter().enumerate().filter(|(check, _)| refusals >> check & 1 == 1);
    let mut first = None;
    for (_, check) in checks {
        let ruled = walk.ruled(check.rule);
        ruled.counts.shadow_refused.add();
        first.get_or_insert(ruled.rule.name.as_str());
    }
    first
}

fn current(version: u64, plan: Plan, limits: Limits) -> Current {
    let modes = plan.policy.rules.iter().map(|rule| Switch { written: rule.mode, switched: None }).collect();
    let overrides = Arc::new(HashMap::default());
    let (blocks, has_blocks) = (Arc::default(), false);
    let (plan, limits) = (Arc::new(plan), Arc::new(limits));
    Current { version, plan, limits, modes, overrides, blocks, has_blocks }
}
