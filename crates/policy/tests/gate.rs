//! What the gate decides, rule by rule.

#[path = "support/policies.rs"]
mod policies;

use std::time::Duration;

use policies::*;
use tidegate_core::permit::Outcome;
use tidegate_core::{Cost, Reason, Retry};
use tidegate_policy::policy::KeySource;
use tidegate_policy::{Cause, Decision};

const CALLER: &[KeySource] = &[KeySource::Caller];

#[test]
fn a_quota_by_caller_and_a_limit_in_flight_are_charged_together() {
    let gate = gate(policy(vec![
        rule("per_key", CALLER, bucket_of(4, 3)),
        rule("in_flight", CALLER, tidegate_policy::policy::Limit::Concurrency(2)),
    ]));
    let first = ask(&gate, at(0), "ann").admitted().unwrap();
    let second = ask(&gate, at(0), "ann").admitted().unwrap();
    let refused = ask(&gate, at(0), "ann").refused().unwrap();
    assert_eq!((refused.rule.name.as_str(), &refused.cause), ("in_flight", &Cause::Concurrency));
    assert_eq!(refused.refusal.reason, Reason::LimitReached);
    first.complete(at(0), Outcome::Ok);
    let third = ask(&gate, at(0), "ann").admitted().unwrap();
    let remaining: Vec<_> = third.standings(at(0)).iter().map(|s| s.remaining.whole()).collect();
    assert_eq!(remaining, [0, 0]);
    drop((second, third));
    let Decision::Refuse(refused) = ask(&gate, at(0), "ann") else { panic!("3 of 3 are used") };
    assert_eq!(refused.refusal.retry, Retry::After(Duration::from_millis(250)));
    assert!(ask(&gate, at(0), "bob").is_admit());
    let standings = refused.standings(at(0));
    let told: Vec<_> = standings.iter().map(|s| (s.rule.name.as_str(), s.is_violated, s.used)).collect();
    assert_eq!(told, [("per_key", true, Cost::of(3)), ("in_flight", false, Cost::ZERO)]);
}
