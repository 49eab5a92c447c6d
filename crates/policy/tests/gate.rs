//! What the gate decides, rule by rule.

#[path = "support/policies.rs"]
mod policies;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use policies::*;
use tidegate_core::permit::Outcome;
use tidegate_core::{Cost, Criticality, Reason, Retry};
use tidegate_policy::policy::{
    Caller, HeaderMatch, KeySource, Limit, Matcher, MethodCosts, Mode, Rule, Settle,
};
use tidegate_policy::{Attributes, Cause, Decision, Gate, Policy};

const CALLER: &[KeySource] = &[KeySource::Caller];

fn fields(fields: &[(&str, &str)]) -> Vec<(String, String)> {
    fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// How many of `most` requests pass.
fn passes(gate: &Gate, attributes: &Attributes<'_>, most: usize) -> usize {
    (0..most).filter(|_| gate.decide(at(0), attributes).is_admit()).count()
}

fn names_of<'a>(rules: impl Iterator<Item = &'a Rule>) -> Vec<&'a str> {
    rules.map(|rule| rule.name.as_str()).collect()
}

#[test]
fn a_quota_by_caller_and_a_limit_in_flight_are_charged_together() {
    let gate = gate(policy(vec![
        rule("per_key", CALLER, bucket_of(4, 3)),
        rule("in_flight", CALLER, Limit::Concurrency(2)),
    ]));
    let first = ask(&gate, at(0), "ann").admitted().unwrap();
    let second = ask(&gate, at(0), "ann").admitted().unwrap();
    let refused = ask(&gate, at(0), "ann").refused().unwrap();
    assert_eq!((refused.by().name(), &refused.cause), ("in_flight", &Cause::Concurrency));
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
    let per_key = standings.iter().next().unwrap();
    assert_eq!(per_key.retry, Some(Retry::After(Duration::from_millis(250))));
    assert_eq!((per_key.limit, per_key.window), (Cost::of(3), Duration::from_millis(750)));
}

#[test]
fn the_rule_with_the_longest_way_back_answers_and_none_is_charged() {
    let gate = gate(policy(vec![
        rule("slow", CALLER, bucket_of(1, 2)),
        rule("free", CALLER, bucket(100)),
        rule("fast", CALLER, bucket_of(10, 2)),
    ]));
    assert_eq!(passes(&gate, &get("/", &Field(Some("ann"))), 5), 2);
    let refused = ask(&gate, at(0), "ann").refused().unwrap();
    assert_eq!(refused.by().name(), "slow");
    assert_eq!(refused.refusal.retry, Retry::After(Duration::from_secs(1)));
    assert_eq!(gate.counter("free", "ann", at(0)).unwrap().used, Cost::of(2));
    let violated: Vec<_> = refused.standings(at(0)).iter().map(|s| s.is_violated).collect();
    assert_eq!(violated, [true, false, true]);
}

#[test]
fn the_first_route_that_matches_is_taken_and_where_none_does_nothing_refuses() {
    let mut policy = policy(vec![rule("a", &[], hourly(1)), rule("b", &[], hourly(2))]);
    policy.routes = vec![route("one", "/v1/one", &[0]), route("v1", "/v1/**", &[1])];
    let mut health = route("health", "/health", &[0, 1]);
    health.is_exempt = true;
    policy.routes.push(health);
    let gate = gate(policy);
    assert_eq!(passes(&gate, &get("/v1/one", &()), 9), 1);
    assert_eq!(passes(&gate, &get("/v1/two", &()), 9), 2);
    assert_eq!(passes(&gate, &get("/health", &()), 9), 9);
    assert_eq!(passes(&gate, &get("/elsewhere", &()), 9), 9);
    let decided = |path| gate.decide(at(0), &get(path, &())).admitted().unwrap();
    assert!(decided("/elsewhere").route().is_none());
    assert_eq!(decided("/health").route().unwrap().name, "health");
    assert!(decided("/health").standings(at(0)).is_empty());
}

#[test]
fn requests_without_a_key_share_a_counter_apart_from_every_keyed_caller() {
    let gate = gate(policy(vec![rule("per_key", &[api_key()], hourly(2))]));
    let (none, empty, ann) = (Field(None), Field(Some("")), Field(Some("ann")));
    assert_eq!(passes(&gate, &get("/", &none), 9), 2);
    let mut other = get("/", &none);
    other.client = Some("198.51.100.9".parse().unwrap());
    assert_eq!(passes(&gate, &other, 9), 0);
    assert_eq!(passes(&gate, &get("/", &empty), 9), 0, "an empty name is none");
    assert_eq!(passes(&gate, &get("/", &ann), 9), 2);
}

#[test]
fn a_key_in_several_lines_is_refused_for_good_and_only_where_it_is_enforced() {
    let twice = fields(&[("X-Api-Key", "a"), ("x-api-key", "b")]);
    let enforced = gate(policy(vec![rule("per_key", CALLER, hourly(2))]));
    let refused = enforced.decide(at(0), &get("/", &twice)).refused().unwrap();
    assert_eq!(refused.cause, Cause::BadKey { header: "x-api-key".into() });
    assert_eq!(refused.refusal.reason, Reason::AmbiguousKey);
    assert_eq!(refused.refusal.retry, Retry::Never);
    let shadow = gate(policy(vec![shadowed(rule("per_key", CALLER, hourly(2)))]));
    assert!(shadow.decide(at(0), &get("/", &twice)).is_admit());
    let global = gate(policy(vec![rule("all", &[KeySource::Global], hourly(2))]));
    assert!(global.decide(at(0), &get("/", &twice)).is_admit());
}

#[test]
fn composite_keys_keep_their_borders() {
    let both = [KeySource::Header("a".to_owned()), KeySource::Header("b".to_owned())];
    let gate = gate(policy(vec![rule("pair", &both, hourly(1))]));
    let pairs = [[("a", "ab"), ("b", "c")], [("a", "a"), ("b", "bc")], [("a", "abc"), ("b", "a")]];
    for pair in pairs {
        assert_eq!(passes(&gate, &get("/", &fields(&pair)), 3), 1, "{pair:?}");
    }
    assert_eq!(passes(&gate, &get("/", &fields(&[("a", "x")])), 3), 1);
    assert_eq!(passes(&gate, &get("/", &fields(&[("b", "y")])), 3), 0);
    assert_eq!(gate.counter("pair", "ab|c", at(0)).unwrap().used, Cost::ONE);
    assert_eq!(gate.counter("pair", "-", at(0)).unwrap().used, Cost::ONE);
    assert_eq!(gate.counter("pair", "ab", at(0)), None);
}

#[test]
fn an_ipv6_network_is_one_caller() {
    let gate = gate(policy(vec![rule("by_ip", &[KeySource::ClientIp], hourly(2))]));
    let from = |address: &str| {
        let mut attributes = get("/", &());
        attributes.client = Some(address.parse::<IpAddr>().unwrap());
        gate.decide(at(0), &attributes).is_admit()
    };
    assert!(from("2001:db8::1") && from("2001:db8::ffff:2"));
    assert!(!from("2001:db8::3"));
    assert!(from("2001:db8:0:1::3"));
    assert!(from("192.0.2.1") && from("::ffff:192.0.2.1") && !from("192.0.2.1"));
}

fn tiers() -> Policy {
    let mut tiered = rule("rate", CALLER, hourly(2));
    tiered.plans.insert("gold".to_owned(), hourly(5));
    tiered.per_criticality.insert(Criticality::Sheddable, hourly(1));
    let mut policy = policy(vec![tiered, rule("slots", CALLER, Limit::Concurrency(3))]);
    let caller = |plan: Option<&str>| Caller { plan: plan.map(str::to_owned), ..Caller::default() };
    policy.callers.insert("ann".to_owned(), caller(Some("gold")));
    policy.callers.insert("192.0.2.1".to_owned(), caller(Some("gold")));
    let mut own = caller(Some("gold"));
    own.overrides.insert("rate".to_owned(), hourly(7));
    own.overrides.insert("slots".to_owned(), Limit::Concurrency(8));
    policy.callers.insert("big".to_owned(), own);
    policy
}

#[test]
fn plans_overrides_and_criticalities_choose_the_limit() {
    let gate = gate(tiers());
    let count = |key| passes(&gate, &get("/", &Field(key)), 20);
    assert_eq!(count(Some("nobody")), 2);
    assert_eq!(count(Some("ann")), 5);
    assert_eq!(count(Some("big")), 7);
    assert_eq!(count(None), 5); // known by its address
    assert_eq!(count(Some("192.0.2.1")), 2); // which nobody can claim in a header field
    let mut sheddable = get("/", &Field(Some("ann")));
    sheddable.criticality = Some(Criticality::Sheddable);
    assert_eq!(passes(&gate, &sheddable, 20), 1);
    let held: Vec<_> = (0..20).map(|_| ask(&gate, at(20_000_000), "big")).collect();
    assert_eq!(held.iter().filter(|decision| decision.is_admit()).count(), 7);
}

#[test]
fn an_assignment_wins_over_what_a_peer_says_and_that_over_the_default() {
    let mut policy = policy(vec![]);
    let test = HeaderMatch { name: "x-api-key".to_owned(), value: "test".to_owned() };
    let matcher = Matcher { headers: vec![test], ..Matcher::default() };
    policy.criticality.push((matcher, Criticality::Sheddable));
    let gate = gate(policy);
    let given = |key, said| {
        let headers = Field(Some(key));
        let attributes = Attributes { criticality: said, ..get("/", &headers) };
        gate.decide(at(0), &attributes).admitted().unwrap().criticality()
    };
    assert_eq!(given("test", Some(Criticality::CriticalPlus)), Criticality::Sheddable);
    assert_eq!(given("x", Some(Criticality::CriticalPlus)), Criticality::CriticalPlus);
    assert_eq!(given("x", None), Criticality::Critical);
}

#[test]
fn the_route_says_the_cost_by_method_unless_the_rule_does() {
    let settle = Settle::ResponseHeader("x-cost".to_owned());
    let rules =
        vec![rule("requests", CALLER, hourly(20)), settled(rule("work", CALLER, hourly(20)), 3, settle)];
    let mut policy = policy(rules);
    let by_method = vec![("POST".to_owned(), Cost::of(5))];
    policy.routes[0].cost = MethodCosts { by_method, default: Cost::of(2) };
    let gate = gate(policy);
    let headers = Field(Some("ann"));
    for (method, requests, work) in [("POST", 5, 3), ("GET", 7, 6)] {
        let attributes = Attributes { method, ..get("/", &headers) };
        gate.decide(at(0), &attributes).admitted().unwrap().complete(at(0), Outcome::Ok);
        let used = |rule| gate.counter(rule, "ann", at(0)).unwrap().used;
        assert_eq!((used("requests"), used("work")), (Cost::of(requests), Cost::of(work)));
    }
}

#[test]
fn a_true_cost_is_settled_once_and_only_where_it_belongs() {
    let header = Settle::ResponseHeader("x-cpu".to_owned());
    let gate = gate(policy(vec![
        settled(rule("cpu", CALLER, hourly(100)), 10, header.clone()),
        settled(rule("bytes", CALLER, hourly(100)), 10, Settle::ResponseBytes),
        shadowed(settled(rule("next", CALLER, hourly(100)), 10, header.clone())),
    ]));
    let used = |rule| gate.counter(rule, "ann", at(0)).unwrap().used.whole();
    let mut admitted = ask(&gate, at(0), "ann").admitted().unwrap();
    assert_eq!(admitted.settles().collect::<Vec<_>>(), [&header, &Settle::ResponseBytes]);
    admitted.settle(at(0), &header, Cost::of(3));
    admitted.settle(at(0), &header, Cost::of(50));
    assert_eq!((used("cpu"), used("bytes"), used("next")), (3, 10, 3));
    admitted.refund(at(0));
    assert_eq!((used("cpu"), used("bytes"), used("next")), (3, 0, 3));
}

#[test]
fn a_refund_gives_everything_back_and_a_drop_only_the_places() {
    let gate =
        gate(policy(vec![rule("rate", CALLER, hourly(3)), rule("slots", CALLER, Limit::Concurrency(1))]));
    let used = |rule| gate.counter(rule, "ann", at(0)).unwrap().used.whole();
    ask(&gate, at(0), "ann").admitted().unwrap().refund(at(0));
    assert_eq!((used("rate"), used("slots")), (0, 0));
    let admitted = ask(&gate, at(0), "ann").admitted().unwrap();
    assert_eq!((used("rate"), used("slots")), (1, 1));
    drop(admitted);
    assert_eq!((used("rate"), used("slots")), (1, 0));
    assert_eq!(gate.statistics(at(0)).ended, [0, 0, 0, 1]);
}

#[test]
fn a_rule_that_shapes_says_how_long_to_wait() {
    let gate = gate(policy(vec![rule("paced", &[], leaky(10, 5)), rule("other", &[], bucket(100))]));
    let waits: Vec<_> = (0..4).map(|_| ask(&gate, at(0), "ann").admitted().unwrap().wait()).collect();
    assert_eq!(waits, [0, 100, 200, 300].map(Duration::from_millis));
}

#[test]
fn every_family_of_algorithms_counts() {
    let minute = Duration::from_secs(60);
    for limit in [fixed(3, minute), sliding(3, minute), bucket(3), log(3, minute), daily(3), warm(3)] {
        let gate = gate(policy(vec![rule("rate", CALLER, limit.clone()), rule("one", &[], limit)]));
        let held: Vec<_> = (0..9).filter_map(|_| ask(&gate, at(1), "ann").admitted()).collect();
        assert!((1..=3).contains(&held.len()), "{} {:?}", held.len(), gate.policy().rules[0].limit);
        assert_eq!(held[0].standings(at(1)).iter().count(), 2);
        held.into_iter().for_each(|admitted| admitted.refund(at(1)));
        assert!(ask(&gate, at(1), "ann").is_admit());
    }
}

#[test]
fn shadows_count_and_change_nothing() {
    let mut valued = rule("rate", CALLER, hourly(5));
    valued.shadow = Some(hourly(3));
    let mut off = rule("off", CALLER, hourly(1));
    off.mode = Mode::Disabled;
    let gate = gate(policy(vec![valued, shadowed(rule("next", CALLER, hourly(1))), off]));
    let mut refused = Vec::new();
    for _ in 0..6 {
        match ask(&gate, at(0), "ann") {
            Decision::Admit(admitted) => {
                refused.push(names_of(admitted.shadow_refusals()).join(" "));
                assert_eq!(admitted.standings(at(0)).iter().count(), 1);
            }
            Decision::Refuse(no) => refused.push(format!("no: {}", no.by().name())),
        }
    }
    assert_eq!(refused, ["", "next", "next", "rate next", "rate next", "no: rate"]);
    let counted: Vec<_> =
        gate.statistics(at(0)).rules.iter().map(|r| (r.admitted, r.refused, r.shadow_refused)).collect();
    assert_eq!(counted, [(5, 1, 2), (0, 0, 4), (0, 0, 0)]);
}

#[test]
fn a_policy_beyond_a_bound_is_refused_with_what_is_allowed() {
    let problem = |policy| Gate::new(policy, 1, at(0)).unwrap_err().to_string();
    let many = |count: usize| policy((0..count).map(|n| rule(&format!("r{n}"), &[], hourly(1))).collect());
    assert!(Gate::new(many(16), 1, at(0)).is_ok());
    assert_eq!(
        problem(many(17)),
        "rules and shadow values is 17 on route `default`, but must be at most 16 a route"
    );
    let mut planned = rule("rate", CALLER, hourly(1));
    planned.plans = (0..8).map(|n| (format!("p{n}"), hourly(n + 1))).collect();
    assert_eq!(problem(policy(vec![planned])), "plans is 8 of rule `rate`, but must be at most 7 a rule");
    let mut mixed = rule("rate", CALLER, hourly(1));
    mixed.plans.insert("odd".to_owned(), Limit::Concurrency(3));
    assert_eq!(
        problem(policy(vec![mixed])),
        "a limit is of another kind than rule `rate` itself, but must be a quota where the rule has one, else a limit"
    );
}

#[test]
fn only_a_rule_that_tells_callers_apart_can_have_an_override() {
    let by = |key: KeySource| vec![rule("rate", &[key], hourly(1))];
    for (key, is_allowed) in [
        (KeySource::Caller, true),
        (api_key(), true),
        (KeySource::ClientIp, true),
        (KeySource::Global, false),
        (KeySource::Route, false),
    ] {
        let gate = gate(policy(by(key)));
        let set = gate.set_override("ann", "rate", hourly(2), at(9).moment, at(0));
        assert_eq!(set.is_ok(), is_allowed, "{set:?}");
    }
}

#[test]
fn a_full_table_is_no_open_door() {
    let mut small = rule("rate", CALLER, hourly(1));
    small.max_keys = tidegate_core::keyed::MaxKeys::new(10).unwrap();
    let gate = gate(policy(vec![small]));
    let callers: Vec<_> = (0..500).map(|n| fields(&[("x-api-key", &n.to_string())])).collect();
    let passed = callers.iter().filter(|headers| gate.decide(at(0), &get("/", *headers)).is_admit()).count();
    assert!((10..60).contains(&passed), "{passed}");
    let statistics = gate.statistics(at(0));
    assert!(statistics.rules[0].overflowed > 400 && statistics.rules[0].keys >= 10);
}

#[test]
fn a_gate_is_shared_by_threads() {
    fn is_shared<T: Send + Sync + 'static>(_: &T) {}
    let gate = Arc::new(gate(policy(vec![rule("rate", CALLER, hourly(1))])));
    is_shared(&gate);
    is_shared(&ask(&gate, at(0), "ann"));
}
