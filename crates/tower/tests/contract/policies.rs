//! Policies with one route and the rules a test is about.

use std::sync::Arc;

use tidegate_core::keyed::MaxKeys;
use tidegate_core::rate::{LeakyBucket, TokenBucket};
use tidegate_core::{Cost, Criticality, Quota};
use tidegate_policy::policy::{
    Addresses, CriticalitySource, KeySource, KeySpec, Limit, Line, Matcher, MethodCosts, Mode, Policy, Rate,
    Route, Rule, RuleCost, Settle, Shape,
};

pub fn policy(rules: impl IntoIterator<Item = Rule>) -> Policy {
    let rules: Vec<_> = rules.into_iter().map(Arc::new).collect();
    let route = Route {
        name: "default".to_owned(),
        line: Line(1),
        matcher: Matcher::default(),
        upstream: None,
        rules: (0..rules.len()).collect(),
        cost: MethodCosts::ONE,
        is_exempt: false,
    };
    Policy {
        rules,
        routes: vec![route],
        caller: KeySpec(vec![KeySource::Header("x-api-key".to_owned())]),
        callers: std::collections::BTreeMap::new(),
        criticality: Vec::new(),
        criticality_from: vec![CriticalitySource::Header("x-criticality".to_owned())],
        default_criticality: Criticality::Critical,
        addresses: Addresses::default(),
    }
}

/// `per_key`: 10 a second, burst 20, by the header field `x-api-key`.
pub fn per_key() -> Rule {
    let quota = Quota::per_second(Cost::of(10)).unwrap().with_burst(Cost::of(20)).unwrap();
    rate("per_key", quota, Shape::TokenBucket(TokenBucket::new(quota)))
}

/// `shaped`: 1 a second by key; three may wait.
pub fn shaped() -> Rule {
    let quota = Quota::per_second(Cost::ONE).unwrap();
    rate("shaped", quota, Shape::LeakyBucket(LeakyBucket::new(quota, Cost::of(3)).unwrap()))
}

/// `settled`: 1000 a second, everybody together, of which a request is taken to cost 10.
pub fn settled(settle: Settle) -> Rule {
    let quota = Quota::per_second(Cost::of(1_000)).unwrap();
    let rule = rate("settled", quota, Shape::TokenBucket(TokenBucket::new(quota)));
    let cost = Some(RuleCost { estimate: Cost::of(10), settle: Some(settle) });
    Rule { cost, key: KeySpec(vec![KeySource::Global]), ..rule }
}

/// `concurrent`: so many in flight, everybody together.
pub fn concurrent(limit: u32) -> Rule {
    Rule { key: KeySpec(vec![KeySource::Global]), ..rule("concurrent", Limit::Concurrency(limit)) }
}

fn rate(name: &str, quota: Quota, shape: Shape) -> Rule {
    rule(name, Limit::Rate(Box::new(Rate { written: String::new(), quota, shape })))
}

fn rule(name: &str, limit: Limit) -> Rule {
    Rule {
        name: name.to_owned(),
        line: Line(1),
        mode: Mode::Enforce,
        key: KeySpec(vec![KeySource::Header("x-api-key".to_owned())]),
        limit,
        plans: std::collections::BTreeMap::new(),
        per_criticality: std::collections::BTreeMap::new(),
        shadow: None,
        max_keys: MaxKeys::new(1_000).unwrap(),
        cost: None,
    }
}
