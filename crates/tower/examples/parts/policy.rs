//! The policy of the examples: 10 requests a second for each `x-api-key`, 20 of them at once.

use std::collections::BTreeMap;
use std::sync::Arc;

use tidegate_core::keyed::MaxKeys;
use tidegate_core::rate::TokenBucket;
use tidegate_core::{Cost, Criticality, Invalid, Quota};
use tidegate_policy::policy::{
    Addresses, KeySource, KeySpec, Limit, Line, Matcher, MethodCosts, Mode, Policy, Rate, Route, Rule, Shape,
};
use tidegate_policy::{Gate, Now};
use tidegate_tower::{Clock, SystemClock};

/// A gate that decides by it.
pub(crate) fn gate() -> Result<Arc<Gate>, Invalid> {
    gate_at(SystemClock::new().now())
}

pub(crate) fn gate_at(now: Now) -> Result<Arc<Gate>, Invalid> {
    let quota = Quota::per_second(Cost::of(10))?.with_burst(Cost::of(20))?;
    let shape = Shape::TokenBucket(TokenBucket::new(quota));
    let rule = Rule {
        name: "per_key".to_owned(),
        line: Line(1),
        mode: Mode::Enforce,
        key: KeySpec(vec![KeySource::Header("x-api-key".to_owned())]),
        limit: Limit::Rate(Box::new(Rate { written: "10/s".to_owned(), quota, shape })),
        plans: BTreeMap::new(),
        per_criticality: BTreeMap::new(),
        shadow: None,
        max_keys: MaxKeys::new(10_000)?,
        cost: None,
    };
    let route = Route {
        name: "default".to_owned(),
        line: Line(1),
        matcher: Matcher::default(),
        upstream: None,
        rules: vec![0],
        cost: MethodCosts::ONE,
        is_exempt: false,
    };
    let policy = Policy {
        rules: vec![Arc::new(rule)],
        routes: vec![route],
        caller: KeySpec(vec![KeySource::Header("x-api-key".to_owned())]),
        callers: BTreeMap::new(),
        criticality: Vec::new(),
        criticality_from: Vec::new(),
        default_criticality: Criticality::Critical,
        addresses: Addresses::default(),
    };
    Ok(Arc::new(Gate::new(policy, 7, now)?))
}
