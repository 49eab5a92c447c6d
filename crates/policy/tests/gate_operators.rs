//! What operators do to a running gate, and what they are told.

#[path = "support/policies.rs"]
mod policies;

use std::time::Duration;

use policies::*;
use tidegate_core::heavy::Ranking;
use tidegate_core::permit::Outcome;
use tidegate_core::{Cost, Retry};
use tidegate_policy::gate::{Block, CallerName, OPERATOR};
use tidegate_policy::policy::{Caller, KeySource, Limit, Mode, PathPattern};
use tidegate_policy::{Gate, Policy, Record};

const CALLER: &[KeySource] = &[KeySource::Caller];

fn remaining(gate: &Gate, rule: &str, key: &str) -> u64 {
    gate.counter(rule, key, at(0)).map_or(u64::MAX, |usage| usage.remaining.whole())
}

fn take(gate: &Gate, key: &'static str, times: usize) -> usize {
    (0..times).filter(|_| ask(gate, at(0), key).is_admit()).count()
}

#[test]
fn a_new_policy_keeps_what_was_consumed_in_units() {
    let with = |limit| policy(vec![rule("rate", CALLER, limit)]);
    let gate = gate(with(hourly(10)));
    assert_eq!(take(&gate, "ann", 10), 10);
    assert_eq!(gate.swap(with(hourly(15)), at(0)), Ok(2));
    assert_eq!(take(&gate, "ann", 20), 5);
    assert_eq!(gate.swap(with(hourly(12)), at(0)), Ok(3));
    assert_eq!((take(&gate, "ann", 20), remaining(&gate, "rate", "ann")), (0, 0));
    assert_eq!(gate.swap(with(hourly(16)), at(0)), Ok(4));
    assert_eq!((take(&gate, "bob", 20), gate.version()), (16, 4));
}

#[test]
fn two_of_two_a_day_raised_to_seven_leave_five() {
    let with = |amount| policy(vec![rule("rate", CALLER, daily(amount))]);
    let gate = gate(with(2));
    assert_eq!(take(&gate, "ann", 5), 2);
    gate.swap(with(7), at(0)).unwrap();
    assert_eq!(take(&gate, "ann", 9), 5);
}

#[test]
fn identity_is_name_key_family_and_size() {
    let gate = gate(policy(vec![rule("rate", CALLER, hourly(10))]));
    take(&gate, "ann", 4);
    let swap = |rule| {
        gate.swap(policy(vec![rule]), at(0)).unwrap();
        remaining(&gate, "rate", "ann")
    };
    let mut shadow = rule("rate", CALLER, hourly(10));
    shadow.mode = Mode::Shadow;
    assert_eq!(swap(shadow), 6);
    assert_eq!(swap(rule("rate", CALLER, fixed(10, Duration::from_secs(3600)))), 10);
    let mut larger = rule("rate", CALLER, hourly(10));
    larger.max_keys = tidegate_core::keyed::MaxKeys::new(20_000).unwrap();
    assert_eq!(swap(larger), 10);
    assert_eq!(swap(rule("rate", &[api_key()], hourly(10))), 10);
}

#[test]
fn a_rule_may_change_a_hundred_times_while_a_request_streams() {
    let with = |amount| {
        let mut tiered = rule("rate", CALLER, hourly(amount));
        tiered.plans = (0..7).map(|n| (format!("p{n}"), hourly(amount * 10 + n))).collect();
        policy(vec![tiered, rule("slots", CALLER, Limit::Concurrency(amount))])
    };
    let gate = gate(with(1000));
    let streaming = ask(&gate, at(0), "ann").admitted().unwrap();
    for amount in 1001..1100 {
        gate.swap(with(amount), at(0)).unwrap();
        ask(&gate, at(0), "ann").admitted().unwrap().complete(at(0), Outcome::Ok);
    }
    assert_eq!(gate.counter("rate", "ann", at(0)).unwrap().used, Cost::of(100));
    assert_eq!(gate.counter("slots", "ann", at(0)).unwrap().used, Cost::ONE);
    streaming.refund(at(0)); // the limit it was charged under is long gone, so only its place comes back
    assert_eq!(gate.counter("rate", "ann", at(0)).unwrap().used, Cost::of(100));
    assert_eq!(gate.counter("slots", "ann", at(0)).unwrap().used, Cost::ZERO);
}

#[test]
fn places_given_under_an_old_policy_come_back_even_when_the_rule_is_gone() {
    let slots = || policy(vec![rule("slots", CALLER, Limit::Concurrency(1))]);
    let gate = gate(slots());
    let held = ask(&gate, at(0), "ann").admitted().unwrap();
    gate.swap(policy(vec![rule("rate", CALLER, hourly(9))]), at(0)).unwrap();
    assert!(ask(&gate, at(0), "ann").is_admit());
    assert_eq!(gate.counter("slots", "ann", at(0)), None);
    drop(held);
    gate.swap(slots(), at(0)).unwrap();
    let held = ask(&gate, at(0), "ann").admitted().unwrap();
    gate.swap(policy(vec![rule("slots", CALLER, Limit::Concurrency(2))]), at(0)).unwrap();
    let second = ask(&gate, at(0), "ann").admitted().unwrap();
    assert!(!ask(&gate, at(0), "ann").is_admit());
    drop((held, second));
    assert_eq!(remaining(&gate, "slots", "ann"), 2);
}

#[test]
fn a_policy_that_is_refused_changes_nothing() {
    let gate = gate(policy(vec![rule("rate", CALLER, hourly(3))]));
    take(&gate, "ann", 1);
    let bad: Policy = policy((0..17).map(|n| rule(&format!("r{n}"), &[], hourly(1))).collect());
    assert!(gate.swap(bad, at(0)).is_err());
    assert_eq!((gate.version(), gate.policy().rules.len(), remaining(&gate, "rate", "ann")), (1, 1, 2));
}

#[test]
fn a_mode_is_switched_for_a_time_or_for_good_and_survives_a_new_policy() {
    let with = || policy(vec![rule("rate", CALLER, hourly(1))]);
    let gate = gate(with());
    take(&gate, "ann", 1);
    let passes = |millis| ask(&gate, at(millis), "ann").is_admit();
    assert!(!passes(0));
    gate.set_mode("rate", Mode::Shadow, at(0), Some(at(600).moment)).unwrap();
    assert!(passes(0) && passes(599) && !passes(600));
    assert_eq!(gate.mode("rate", at(0)), Some((Mode::Shadow, Some(at(600).moment))));
    assert_eq!(gate.mode("rate", at(600)), Some((Mode::Enforce, None)));
    gate.set_mode("rate", Mode::Disabled, at(600), None).unwrap();
    gate.swap(with(), at(700)).unwrap();
    assert!(passes(800));
    gate.clear_mode("rate").unwrap();
    assert!(!passes(900));
    let problem = gate.set_mode("rat", Mode::Shadow, at(0), None).unwrap_err();
    assert_eq!(problem.to_string(), "rule is rat, but must be one of the policy's rules");
}

#[test]
fn an_override_has_a_counter_of_its_own_and_ends_by_itself() {
    let with = || policy(vec![rule("rate", CALLER, hourly(2)), rule("slots", CALLER, Limit::Concurrency(1))]);
    let gate = gate(with());
    assert_eq!(take(&gate, "ann", 9), 2);
    gate.set_override("ann", "rate", hourly(5), at(1000).moment, at(0)).unwrap();
    assert_eq!(take(&gate, "ann", 3), 3);
    gate.swap(with(), at(0)).unwrap();
    assert_eq!((take(&gate, "ann", 9), take(&gate, "bob", 9)), (2, 2));
    assert!(!ask(&gate, at(1000), "ann").is_admit());
    assert_eq!(gate.overrides(at(0)).len(), 1);
    assert_eq!(gate.overrides(at(1000)).len(), 0);
    assert_eq!(gate.clear_override("ann", "rate", at(0)), Ok(true));
    assert_eq!(gate.clear_override("ann", "rate", at(0)), Ok(false));
    assert_eq!(take(&gate, "ann", 9), 0);

    gate.set_override("cid", "slots", Limit::Concurrency(2), at(1000).moment, at(0)).unwrap();
    let held: Vec<_> = (0..3).map(|_| ask(&gate, at(0), "cid")).collect();
    assert_eq!(held.iter().filter(|decision| decision.is_admit()).count(), 2);
    assert!(gate.set_override("cid", "slots", hourly(2), at(9).moment, at(0)).is_err());
    assert_eq!(gate.version(), 2);
}

#[test]
fn a_changed_override_of_the_table_keeps_what_was_consumed() {
    let with = |amount| {
        let mut policy = policy(vec![rule("rate", CALLER, hourly(1))]);
        let mut ann = Caller::default();
        ann.overrides.insert("rate".to_owned(), hourly(amount));
        policy.callers.insert("ann".to_owned(), ann);
        policy
    };
    let gate = gate(with(4));
    assert_eq!(take(&gate, "ann", 9), 4);
    gate.swap(with(6), at(0)).unwrap();
    assert_eq!((take(&gate, "ann", 9), take(&gate, "bob", 9)), (2, 1));
}

#[test]
fn counters_can_be_looked_at_and_reset() {
    let gate = gate(policy(vec![rule("rate", CALLER, hourly(3)), rule("all", &[], hourly(9))]));
    take(&gate, "ann", 5);
    assert_eq!((remaining(&gate, "rate", "ann"), remaining(&gate, "all", "whatever")), (0, 6));
    assert!(gate.reset_counter("rate", "ann", at(0)));
    assert_eq!((remaining(&gate, "rate", "ann"), remaining(&gate, "all", "")), (3, 6));
    assert!(!gate.reset_counter("none", "ann", at(0)));
}

#[test]
fn the_last_decisions_are_found_by_their_number() {
    let gate = gate(policy(vec![rule("rate", CALLER, bucket_of(2, 1))]));
    let admitted = ask(&gate, at(1), "sk_live_0123456789").admitted().unwrap();
    let id = admitted.id();
    assert_eq!(gate.decision(id).unwrap().outcome, None);
    admitted.complete(at(6), Outcome::Failed);
    let record = gate.decision(id).unwrap();
    assert_eq!((record.outcome, record.duration), (Some(Outcome::Failed), Some(Duration::from_millis(5))));
    assert_eq!(record.caller.as_deref(), Some("sk_live_…"));
    let refused = ask(&gate, at(1), "sk_live_0123456789").refused().unwrap();
    let record = gate.decision(refused.id).unwrap();
    assert_eq!((record.rule.as_deref(), record.reason.as_deref()), (Some("rate"), Some("quota_spent")));
    assert_eq!(record.retry, Some(Retry::After(Duration::from_millis(500))));
    let fields = vec![("x-api-key".to_owned(), "sk_live_0123456789".to_owned())];
    let line = refused.record(&get("/", &fields));
    assert_eq!(line.fingerprints, [("rate".to_owned(), record.fingerprint.unwrap())]);
    // A line of the log says more than is kept of a decision.
    assert_eq!(Record { client: None, fingerprints: Vec::new(), ..line }, record);
    assert_eq!((gate.recent(true), gate.recent(false).len()), (vec![record], 2));
    assert_eq!(refused.id.to_string().parse(), Ok(refused.id));
    for _ in 0..5000 {
        drop(ask(&gate, at(1), "flood"));
    }
    assert_eq!((gate.recent(true).len(), gate.decision(refused.id).is_some()), (65, true));
    for millis in (1..=400).flat_map(|millis| [millis; 10]) {
        drop(ask(&gate, at(millis), "flood"));
    }
    assert_eq!((gate.recent(true).len(), gate.decision(refused.id)), (1024, None));
}

#[test]
fn the_heaviest_and_most_refused_callers_are_named() {
    let gate = gate(policy(vec![rule("rate", CALLER, hourly(100))]));
    for (key, times) in [("ann", 90), ("bob", 900), ("cid", 10)] {
        take(&gate, key, times);
    }
    let most = gate.callers(Ranking::Refusals, 5);
    let most: Vec<_> = most.iter().map(|heavy| (heavy.name.as_str(), heavy.weight)).collect();
    assert_eq!(most, [("bob", 800)]);
    let heaviest = &gate.callers(Ranking::Cost, 1)[0];
    assert!(["ann", "bob"].contains(&heaviest.name.as_str()));
    let statistics = gate.statistics(at(0));
    assert_eq!((statistics.admitted, statistics.refused), (200, 800));
    assert_eq!(statistics.rules[0].keys, 3);
    assert_eq!(statistics.rules[0].refused_by_criticality, [0, 0, 800, 0]);
    assert_eq!(gate.refusals()[0].refused, 800);
}

#[test]
fn refusals_are_told_by_rule_and_reason() {
    let gate = gate(policy(vec![rule("rate", CALLER, hourly(10)), rule("idle", CALLER, hourly(900))]));
    let counted = || -> Vec<_> {
        let all = gate.refusals_by_reason().into_iter();
        all.map(|count| (count.rule, count.reason, count.refused)).collect()
    };
    assert_eq!(counted(), []);
    take(&gate, "ann", 14);
    let caller = |name: &str| CallerName::Identity(name.to_owned());
    let in_rule = Block { caller: caller("bob"), rule: Some("rate".to_owned()), until: None };
    gate.block(in_rule, at(0)).unwrap();
    gate.block(Block { caller: caller("cid"), rule: None, until: None }, at(0)).unwrap();
    assert_eq!((take(&gate, "bob", 3), take(&gate, "cid", 2)), (0, 0));
    let rate = |reason, refused| ("rate".to_owned(), reason, refused);
    let all = [rate("quota", 4), rate("blocked", 3), (OPERATOR.to_owned(), "blocked", 2)];
    assert_eq!(counted(), all);
}

#[test]
fn an_explanation_charges_nothing_and_reads_like_an_answer() {
    let mut tiered = rule("per_key", CALLER, bucket_of(10, 20));
    tiered.plans.insert("gold".to_owned(), bucket_of(100, 4));
    let mut policy = policy(vec![
        tiered,
        rule("slots", CALLER, Limit::Concurrency(2)),
        shadowed(rule("next", &[KeySource::Path], bucket_of(1, 1))),
        rule("all", &[], bucket(1000)),
    ]);
    policy.callers.insert("acct_1".to_owned(), Caller { plan: Some("gold".to_owned()), ..Caller::default() });
    let gate = gate(policy);
    gate.set_mode("all", Mode::Disabled, at(0), Some(at(60_000).moment)).unwrap();
    let fields = vec![("x-api-key".to_owned(), "acct_1".to_owned())];
    let attributes = get("/v1/charges", &fields);
    let before = gate.explain(at(0), &attributes);
    assert_eq!(before.refused_by(), None);
    assert!(before.to_string().starts_with("GET /v1/charges would pass.\n"), "{before}");
    let held: Vec<_> = (0..2).map(|_| gate.decide(at(0), &attributes).admitted().unwrap()).collect();
    for admitted in (0..2).map(|_| gate.decide(at(0), &attributes)) {
        assert!(!admitted.is_admit());
    }
    let explanation = gate.explain(at(0), &attributes);
    assert_eq!(
        explanation.to_string(),
        "GET /v1/charges would be refused by rule `slots`: too many are in flight.\n\
         \n\
         Route: `default` (line 20), the first that matches.\n\
         Criticality: critical, the policy's default.\n\
         Caller: acct_1, on plan `gold`.\n\
         Cost: 1.\n\
         \n\
         1. `per_key` (line 7) lets it pass: 2 of 4 used by acct_1 (plan `gold`: 100/s), and the request costs 1.\n\
         2. `slots` (line 7) refuses it: 2 of 2 in flight by acct_1. It passes when one of them has ended, or with a \
         limit above 2.\n\
         3. `next` (line 7), in shadow, would refuse it, which changes nothing: 1 of 1 used by /v1/charges (1/s), and \
         the request costs 1. It passes in 1 s.\n\
         4. `all` (line 7) does nothing: it is disabled by an operator for a time.\n"
    );
    let json = explanation.to_json();
    assert_eq!(json["refused_by"], "slots");
    assert_eq!(json["rules"][0]["limit_of"], "plan:gold");
    assert_eq!(json["rules"][1]["reason"], "limit_reached");
    assert_eq!(gate.explain(at(0), &attributes), explanation);
    drop(held);
    assert_eq!(gate.counter("per_key", "acct_1", at(0)).unwrap().used, Cost::of(2));
}

#[test]
fn what_cannot_be_read_or_is_not_there_is_explained_too() {
    let gate = gate(policy(vec![rule("per_key", &[api_key()], bucket(5))]));
    let none = gate.explain(at(0), &get("/", &Field(None))).to_string();
    assert!(none.contains("0 of 5 used by all requests without header:x-api-key (5/s)"), "{none}");
    let twice = vec![("x-api-key".to_owned(), "a".to_owned()), ("x-api-key".to_owned(), "b".to_owned())];
    let bad = gate.explain(at(0), &get("/", &twice)).to_string();
    assert!(bad.contains("refused by rule `per_key`: header `x-api-key` is there more than once."), "{bad}");
}

#[test]
fn what_no_route_takes_is_said_to_get_404() {
    let mut policy = policy(vec![rule("per_key", CALLER, bucket(5))]);
    policy.routes[0].matcher.path = Some(PathPattern::new("/v1/**").unwrap());
    let gate = gate(policy);
    let explanation = gate.explain(at(0), &get("/v2", &Field(None)));
    assert_eq!(
        explanation.to_string(),
        "GET /v2 is taken by no route: the gateway answers 404.\n\
         \n\
         Route: none matches, so no rule applies and it is sent nowhere.\n\
         Criticality: critical, the policy's default.\n\
         Cost: 1.\n"
    );
    assert_eq!(explanation.to_json()["decision"], "no_route");
    assert_eq!(gate.explain(at(0), &get("/v1", &Field(None))).to_json()["decision"], "admitted");
}
