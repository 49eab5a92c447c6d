use std::sync::Arc;

use tidegate_core::keyed::Key;
use tidegate_core::{Cost, Criticality, Reason, Refusal};

use super::{DecisionId, Mets, Standings, record};
use crate::attributes::Attributes;
use crate::gate::{HeldPlan, Now, OPERATOR};
use crate::policy::{Limit, Route, Rule};
use crate::record::{Decided, Record};

/// A request that may not pass now. It took nothing.
#[derive(Debug)]
pub struct Refused {
    /// The decision's number.
    pub id: DecisionId,
    /// Why, and when it may work. Of several rules that refuse, the one with the longest way back answers.
    pub refusal: Refusal,
    /// What kind of limiter refused.
    pub cause: Cause,
    /// How late it should be shed.
    pub criticality: Criticality,
    /// What its route says it costs.
    pub cost: Cost,
    pub(crate) plan: HeldPlan,
    pub(crate) route: u16,
    /// The rule that answers, unless an upstream does.
    pub(crate) position: u16,
    pub(crate) upstream: Option<Arc<str>>,
    pub(crate) at: Now,
    pub(crate) caller: Option<Key>,
    pub(crate) mets: Mets,
}

/// Who refused. Lent, since a count of references to a rule would be written by all threads that refuse for it.
#[derive(Clone, Copy, Debug)]
pub enum By<'a> {
    /// A rule.
    Rule(&'a Arc<Rule>),
    /// An upstream without room for it, by its name in metrics and records: `upstream:orders`.
    Upstream(&'a Arc<str>),
    /// An operator, whose order is for all that the caller sends.
    Operator,
}

impl<'a> By<'a> {
    /// What it is called in answers, records and metrics.
    #[must_use]
    pub fn name(self) -> &'a str {
        match self {
            Self::Rule(rule) => &rule.name,
            Self::Upstream(name) => name,
            Self::Operator => OPERATOR,
        }
    }

    /// The rule, if it is one.
    #[must_use]
    pub const fn rule(self) -> Option<&'a Arc<Rule>> {
        match self {
            Self::Rule(rule) => Some(rule),
            Self::Upstream(_) | Self::Operator => None,
        }
    }
}

/// What kind of no it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// A quota is spent.
    Quota,
    /// Too many are in flight.
    Concurrency,
    /// What is left is kept for requests that matter more.
    Reserve,
    /// Requests that matter as little are being shed.
    Shed,
    /// The rules let it pass, and the upstream had no room for it.
    Overload,
    /// An operator keeps its caller out.
    Blocked,
    /// The request is not well made: a header field that is a key has several lines.
    BadKey {
        /// The field's name.
        header: Arc<str>,
    },
}

impl Refused {
    /// Who answers.
    #[must_use]
    pub fn by(&self) -> By<'_> {
        match &self.upstream {
            Some(name) => By::Upstream(name),
            None => self
                .plan
                .rules
                .get(usize::from(self.position))
                .map_or(By::Operator, |ruled| By::Rule(&ruled.rule)),
        }
    }

    /// The route it took.
    #[must_use]
    pub fn route(&self) -> &Route {
        &self.plan.policy.routes[usize::from(self.route)]
    }

    /// The line it makes in the access log; the status is for its driver to add.
    #[must_use]
    pub fn record(&self, attributes: &Attributes<'_>) -> Record {
        Record {
            route: Some(self.route().name.clone()),
            criticality: self.criticality,
            cost: self.cost,
            decided: Decided::Refused,
            rule: Some(self.by().name().to_owned()),
            reason: Some(self.refusal.reason.as_str().to_owned()),
            retry: Some(self.refusal.retry),
            ..record(&self.plan, (self.id, self.at), attributes, (self.caller, &self.mets))
        }
    }

    /// What its caller may be told of the rules it met, the violated ones marked. Shadow rules are not among them, nor
    /// those that say what we can bear; of a request that an upstream turned away, nothing is told.
    #[must_use]
    pub fn standings(&self, now: Now) -> Standings<'_> {
        Standings::of(&self.plan, &self.mets, now, Some((self.position, self.refusal)))
    }
}

/// The reason of a refusal in the few words that metrics have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ReasonWord {
    /// A quota is spent, or a key cannot be read.
    Quota,
    /// Too many are in flight.
    Concurrency,
    /// What is left is kept for others.
    Reserve,
    /// Its level of criticality is being shed.
    Shed,
    /// It would have waited too long, or has.
    Queue,
    /// The breaker of what would be called is open.
    Breaker,
    /// We hold back, since what would be called refuses.
    Throttle,
    /// Nobody would wait for the answer.
    Deadline,
    /// An operator keeps its caller out.
    Blocked,
}

impl ReasonWord {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Quota,
        Self::Concurrency,
        Self::Reserve,
        Self::Shed,
        Self::Queue,
        Self::Breaker,
        Self::Throttle,
        Self::Deadline,
        Self::Blocked,
    ];

    /// As metrics write it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Quota => "quota",
            Self::Concurrency => "concurrency",
            Self::Reserve => "reserve",
            Self::Shed => "shed",
            Self::Queue => "queue",
            Self::Breaker => "breaker",
            Self::Throttle => "throttle",
            Self::Deadline => "deadline",
            Self::Blocked => "blocked",
        }
    }

    /// What a rule with this limit refuses for.
    #[must_use]
    pub const fn of_limit(limit: &Limit) -> Self {
        match limit {
            Limit::Rate(_) => Self::Quota,
            Limit::Concurrency(_) => Self::Concurrency,
            Limit::Reserve(_) => Self::Reserve,
            Limit::Shed(_) => Self::Shed,
        }
    }

    /// What an upstream refuses for with this reason.
    #[must_use]
    pub const fn of_reason(reason: Reason) -> Self {
        match reason {
            Reason::QuotaSpent | Reason::CostAboveBurst | Reason::OverflowSpent | Reason::AmbiguousKey => {
                Self::Quota
            }
            Reason::Blocked => Self::Blocked,
            Reason::LimitReached => Self::Concurrency,
            Reason::Reserved => Self::Reserve,
            Reason::Shed => Self::Shed,
            Reason::WaitTooLong | Reason::QueueFull | Reason::Displaced | Reason::StandingQueue => {
                Self::Queue
            }
            Reason::BreakerOpen => Self::Breaker,
            Reason::Throttled | Reason::RetryBudgetSpent | Reason::AttemptsSpent | Reason::NotRetryable => {
                Self::Throttle
            }
            Reason::DeadlinePassed => Self::Deadline,
        }
    }
}
