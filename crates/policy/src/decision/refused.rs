use std::sync::Arc;

use tidegate_core::keyed::Key;
use tidegate_core::{Cost, Criticality, Refusal};

use super::{DecisionId, Mets, Standings, record};
use crate::attributes::Attributes;
use crate::gate::{HeldPlan, Now};
use crate::policy::{Route, Rule};
use crate::record::Record;

/// A request that may not pass now. It took nothing.
#[derive(Debug)]
pub struct Refused {
    /// The decision's number.
    pub id: DecisionId,
    /// Why, and when it may work. Of several rules that refuse, the one with the longest way back answers.
    pub refusal: Refusal,
    /// What kind of rule refused.
    pub cause: Cause,
    /// The rule that answers.
    pub rule: Arc<Rule>,
    /// How late it should be shed.
    pub criticality: Criticality,
    /// What its route says it costs.
    pub cost: Cost,
    pub(crate) plan: HeldPlan,
    pub(crate) route: u16,
    pub(crate) position: u16,
    pub(crate) at: Now,
    pub(crate) caller: Option<Key>,
    pub(crate) mets: Mets,
}

/// What kind of no it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// A quota is spent.
    Quota,
    /// Too many are in flight.
    Concurrency,
    /// The request is not well made: a header field that is a key has several lines.
    BadKey {
        /// The field's name.
        header: Arc<str>,
    },
}

impl Refused {
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
            is_admitted: false,
            rule: Some(self.rule.name.clone()),
            reason: Some(self.refusal.reason.as_str().to_owned()),
            retry: Some(self.refusal.retry),
            ..record(&self.plan, (self.id, self.at), attributes, self.caller)
        }
    }

    /// What its caller may be told of the rules it met, the violated ones marked. Shadow rules are not among them.
    #[must_use]
    pub fn standings(&self, now: Now) -> Standings<'_> {
        Standings::of(&self.plan, &self.mets, now, Some((self.position, self.refusal)))
    }
}
