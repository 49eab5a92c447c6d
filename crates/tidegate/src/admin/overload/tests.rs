use std::sync::Arc;
use std::time::Duration;

use tidegate_core::concurrency::{Change, Why};
use tidegate_policy::policy::{Rule, Shed};

use super::*;

fn upstream(name: &str, shed: [f64; 4], wanted_ratio: f64) -> UpstreamStatus {
    let concurrency = ConcurrencyStatus {
        algorithm: "vegas",
        limit: 64,
        in_flight: 64,
        waiting: [9, 2, 1, 0],
        queue_delay: Duration::from_millis(18),
        baseline: Some(Duration::from_millis(10)),
        changes: Vec::new(),
        last: Some(Change { from: 64, to: 64, why: Why::Queueing }),
        shed,
        wanted_ratio,
        utilization: None,
        advises_against_retries: false,
    };
    UpstreamStatus { name: name.to_owned(), concurrency, endpoints: Vec::new() }
}

fn overload(upstreams: Vec<UpstreamStatus>) -> Overload {
    let capacity = CapacityStatus { wanted_ratio: 1.0, upstreams: Vec::new() };
    Overload { upstreams, rules: Vec::new(), signals: Vec::new(), capacity, routes: Vec::new() }
}

/// A policy whose one rule sheds.
fn policy() -> Policy {
    let text = b"upstream = \"http://127.0.0.1:3000\"\n[rule.worker_usage]\nquota = \"1/s\"\n";
    let source = tidegate_policy::Source::named("tidegate.toml", text);
    let (mut policy, _) = tidegate_policy::read(source, None).unwrap();
    let targets = vec![
        (SignalName::Cpu, 0.85),
        (SignalName::QueueDelay, 0.005),
        (SignalName::Own("db_load".into()), 12.0),
    ];
    let shed = Shed { targets, order: vec![Criticality::Sheddable], ramp: Duration::from_secs(120) };
    policy.rules[0] = Arc::new(Rule { limit: Limit::Shed(shed), ..Rule::clone(&policy.rules[0]) });
    policy
}

#[test]
fn the_sentence_of_the_module_is_said() {
    let overload =
        overload(vec![upstream("billing", [0.0; 4], 0.4), upstream("orders", [1.0, 0.409, 0.0, 0.0], 1.8)]);
    assert_eq!(
        overload.sentence(&policy()).unwrap(),
        "Shedding: all of sheddable and 40 % of sheddable_plus for upstream orders, which holds its limit of 64 \
         (queueing); 1.8 times its capacity is wanted."
    );
}

#[test]
fn the_upstream_that_sheds_what_matters_most_is_named() {
    let mut first = upstream("orders", [1.0, 1.0, 0.002, 0.0], 1.01);
    first.concurrency.last = Some(Change { from: 80, to: 64, why: Why::Overloaded });
    let mut third = upstream("search", [0.3, 0.0, 0.0, 0.0], 1.0);
    let overload = overload(vec![first, upstream("billing", [1.0, 1.0, 0.0, 0.0], 9.0), third.clone()]);
    assert_eq!(
        overload.sentence(&policy()).unwrap(),
        "Shedding: all of sheddable, all of sheddable_plus and under 1 % of critical for upstream orders, which has \
         lowered its limit to 64 (overloaded), and for 2 others."
    );
    third.concurrency.last = Some(Change { from: 60, to: 64, why: Why::SlowStart });
    assert_eq!(of_limit(&third.concurrency), "which has raised its limit to 64 (slow start)");
    third.concurrency.last = None;
    assert_eq!(of_limit(&third.concurrency), "whose limit is 64");
}

#[test]
fn a_rule_is_named_with_the_signal_that_is_furthest_above_its_target() {
    let mut overload = overload(vec![upstream("orders", [0.0; 4], 1.0)]);
    assert_eq!(overload.sentence(&policy()), None);
    overload.rules = vec![
        SheddingStatus { rule: "other".to_owned(), shed: [0.0; 4] },
        SheddingStatus { rule: "worker_usage".to_owned(), shed: [0.25, 0.0, 0.0, 0.0] },
    ];
    let lets_back = "Shedding: 25 % of sheddable by rule worker_usage, which lets them back slowly.";
    assert_eq!(overload.sentence(&policy()).unwrap(), lets_back);
    let signal = |name: &str, value| SignalStatus { name: name.to_owned(), value };
    overload.signals = vec![signal("cpu", Some(0.84)), signal("queue_delay", None), signal("db_load", None)];
    assert_eq!(overload.sentence(&policy()).unwrap(), lets_back);
    for (name, value, said) in [
        ("cpu", 0.911, "since cpu is at 91 %, target 85 %"),
        ("queue_delay", 0.012_34, "since queue_delay is at 12.3 ms, target 5 ms"),
        ("db_load", 40.0, "since db_load is at 40, target 12"),
    ] {
        overload.signals.iter_mut().filter(|signal| signal.name == name).for_each(|signal| {
            signal.value = Some(value);
        });
        let sentence = overload.sentence(&policy()).unwrap();
        assert!(sentence.ends_with(&format!("{said}.")), "{sentence}");
    }
}

#[test]
fn the_greatest_share_of_each_level_counts() {
    let mut overload =
        overload(vec![upstream("a", [1.0, 0.5, 0.0, 0.0], 1.0), upstream("b", [0.2, 0.0, 0.0, 0.0], 1.0)]);
    overload.rules = vec![SheddingStatus { rule: "r".to_owned(), shed: [0.0, 0.0, 0.1, 0.0] }];
    let thousandths = overload.shed().map(|share| (share * 1_000.0).round().to_string());
    assert_eq!(thousandths, ["1000", "500", "100", "0"]);
}

#[test]
fn routes_that_an_operator_switched_are_told() {
    let mut overload = overload(Vec::new());
    let route = |route: &str, is_switched| DegradeStatus {
        route: route.to_owned(),
        is_switched,
        until: None,
        is_active: true,
    };
    overload.routes = vec![route("catalogue", false)];
    assert_eq!(overload.switched(), None);
    overload.routes.push(route("search", true));
    let one = "Degraded: route search gives its cheaper answer, as an operator wants.";
    assert_eq!(overload.switched().unwrap(), one);
    overload.routes.push(route("feed", true));
    let two = "Degraded: route search and 1 more give their cheaper answers, as an operator wants.";
    assert_eq!(overload.switched().unwrap(), two);
}
