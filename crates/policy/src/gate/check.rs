//! What a route's requests are asked, as far as it is known before one comes.
//!
//! Of every rule a decision needs the kind of its key, its cost and its limit. They lie in three places, and for nearly
//! all requests they are the same. So they are put side by side when a policy is taken, and a decision walks along a
//! list instead of looking them up.

use tidegate_core::{Cost, Invalid};

use super::keys::Keying;
use super::plan::{Chosen, RuleLimits, Ruled};
use crate::policy::{MOST_RULES_A_ROUTE, Route};

/// The most checks one request can meet: rules, and shadow values beside them.
pub(crate) const MOST_CHECKS: usize = MOST_RULES_A_ROUTE;

/// One question a route's requests are asked.
#[derive(Clone, Debug)]
pub(crate) struct Check {
    pub(crate) rule: u16,
    /// Whether it is the rule's shadow value.
    pub(crate) is_shadow_value: bool,
    pub(crate) keyed: Keyed,
    /// What a request costs here, where that is not the route's cost.
    pub(crate) cost: Option<Cost>,
    /// The limit of callers with nothing of their own.
    pub(crate) usual: Chosen,
    /// Whether plans and criticalities have the usual limit.
    pub(crate) is_uniform: bool,
}

/// Where the key comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keyed {
    Everybody,
    Caller,
    /// Something that is hashed for this rule.
    Parts,
}

/// The checks of a route: its rules in order, each with its shadow value behind it.
///
/// # Errors
/// When there are too many, or a rule is none of the policy's.
pub(crate) fn checks(route: &Route, rules: &[Ruled], limits: &[RuleLimits]) -> Result<Vec<Check>, Invalid> {
    let mut checks = Vec::new();
    for index in &route.rules {
        let known = u16::try_from(*index).ok().zip(rules.get(*index).zip(limits.get(*index)));
        let Some((rule, (ruled, limits))) = known else {
            return Err(Invalid::new("rule of a route", index, "one of the policy's rules"));
        };
        let keyed = match ruled.keying {
            Keying::Global => Keyed::Everybody,
            Keying::Caller => Keyed::Caller,
            Keying::Parts(_) => Keyed::Parts,
        };
        let cost = ruled.rule.cost.as_ref().map(|cost| cost.estimate);
        let (usual, is_uniform) = (limits.default.clone(), limits.is_uniform());
        let check = Check { rule, is_shadow_value: false, keyed, cost, usual, is_uniform };
        let shadow = limits.shadow.clone();
        let shadow =
            shadow.map(|usual| Check { is_shadow_value: true, is_uniform: true, usual, ..check.clone() });
        checks.push(check);
        checks.extend(shadow);
    }
    if checks.len() > MOST_CHECKS {
        let found = format!("{} on route `{}`", checks.len(), route.name);
        return Err(Invalid::new("rules and shadow values", found, "at most 16 a route"));
    }
    Ok(checks)
}
