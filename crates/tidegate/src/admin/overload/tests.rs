use std::time::Duration;

use tidegate_core::Ratio;
use tidegate_core::concurrency::{Change, Why};
use tidegate_core::shed::{Cohort, Edge};
use tidegate_policy::Source;
use tidegate_policy::policy::{Degrade, SignalName};

use super::*;

fn share(value: f64) -> Ratio {
    Ratio::new(value).unwrap()
}

fn upstream(name: &str, shed: [f64; 4], wanted_ratio: f64) -> UpstreamStatus {
    let concurrency = ConcurrencyStatus {
        limit: 64,
        in_flight: 64,
        waiting: [9, 2, 1, 0],
        queue_delay: Duration::from_millis(18),
        baseline: Some(Duration::from_millis(10)),
        changes: Vec::new(),
        last: Some(Change { from: 64, to: 64, why: Why::Queueing }),
        shed: shed.map(share),
        refused: Vec::new(),
        wanted_ratio,
        utilization: None,
        advises_against_retries: false,
    };
    UpstreamStatus { name: name.to_owned(), algorithm: "vegas", concurrency, endpoints: Vec::new() }
}

fn overload(upstreams: Vec<UpstreamStatus>) -> Overload {
    let capacity = CapacityStatus { wanted_ratio: 1.0, upstreams: Vec::new() };
    Overload { upstreams, rules: Vec::new(), signals: Vec::new(), capacity, switched: Vec::new() }
}

/// A rule that sheds everything of so many levels, and so many of the 128 cohorts of the next.
fn rule(levels: u16, cohorts: u16) -> Shedding {
    Shedding {
        rule: "worker_usage".to_owned(),
        mode: Mode::Enforce,
        edge: Edge::new(levels * u16::from(Cohort::COUNT) + cohorts).unwrap(),
        signals: vec![
            SignalReading { signal: SignalName::Cpu, value: None, target: 0.85 },
            SignalReading { signal: SignalName::QueueDelay, value: None, target: 0.005 },
            SignalReading { signal: SignalName::Own("db_load".into()), value: None, target: 12.0 },
        ],
    }
}

#[test]
fn the_sentence_of_the_module_is_said() {
    let overload =
        overload(vec![upstream("billing", [0.0; 4], 0.4), upstream("orders", [1.0, 0.409, 0.0, 0.0], 1.8)]);
    assert_eq!(
        overload.sentence().unwrap(),
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
        overload.sentence().unwrap(),
        "Shedding: all of sheddable, all of sheddable_plus and under 1 % of critical for upstream orders, which has \
         lowered its limit to 64 (overloaded), and for 2 others."
    );
    third.concurrency.last = Some(Change { from: 60, to: 64, why: Why::SlowStart });
    assert_eq!(of_limit(&third.concurrency), "which has raised its limit to 64 (slow start)");
    third.concurrency.last = None;
    assert_eq!(of_limit(&third.concurrency), "whose limit is 64");
}

#[test]
fn a_rule_is_named_with_the_signal_that_presses_hardest() {
    let mut overload = overload(vec![upstream("orders", [0.0; 4], 1.0)]);
    overload.rules = vec![Shedding { rule: "other".to_owned(), ..rule(0, 0) }];
    assert_eq!(overload.sentence(), None);
    overload.rules.push(rule(0, 32));
    let lets_back = "Shedding: 25 % of sheddable by rule worker_usage, which lets them back slowly.";
    assert_eq!(overload.sentence().unwrap(), lets_back);
    overload.rules[1].signals[0].value = Some(0.84);
    assert_eq!(overload.sentence().unwrap(), lets_back);
    for (signal, value, said) in [
        (0, 0.911, "since cpu is at 91 %, target 85 %"),
        (1, 0.008_34, "since queue_delay is at 8.3 ms, target 5 ms"),
        (2, 40.0, "since db_load is at 40, target 12"),
    ] {
        overload.rules[1].signals[signal].value = Some(value);
        let sentence = overload.sentence().unwrap();
        assert!(sentence.ends_with(&format!("{said}.")), "{sentence}");
    }
    overload.upstreams[0].concurrency.shed = [0.5, 0.0, 0.0, 0.0].map(share);
    assert_eq!(
        overload.sentence().unwrap(),
        "Shedding: 50 % of sheddable for upstream orders, which holds its limit of 64 (queueing); 25 % of sheddable by \
         rule worker_usage, since db_load is at 40, target 12."
    );
}

#[test]
fn the_greatest_share_of_each_level_counts() {
    let mut overload =
        overload(vec![upstream("a", [1.0, 0.5, 0.0, 0.0], 1.0), upstream("b", [0.2, 0.0, 0.0, 0.0], 1.0)]);
    overload.rules = vec![rule(2, 16)];
    let thousandths = overload.shed().map(|share| (share * 1_000.0).round().to_string());
    assert_eq!(thousandths, ["1000", "1000", "125", "0"]);
}

#[test]
fn routes_that_an_operator_switched_are_told() {
    let mut overload = overload(Vec::new());
    assert_eq!(overload.degraded(), None);
    let switched = |route: &str| SwitchedRoute { route: route.to_owned(), until: None };
    overload.switched.push(switched("search"));
    let one = "Degraded: route search gives its cheaper answer, as an operator wants.";
    assert_eq!(overload.degraded().unwrap(), one);
    overload.switched.push(switched("feed"));
    let two = "Degraded: route search and 1 more give their cheaper answers, as an operator wants.";
    assert_eq!(overload.degraded().unwrap(), two);
}

#[test]
fn a_cheaper_answer_is_given_to_all_or_to_those_who_are_shed() {
    let text = b"upstream = \"http://127.0.0.1:3000\"\n[rule.worker_usage]\nquota = \"1/s\"\n";
    let (mut policy, _) = tidegate_policy::read(Source::named("tidegate.toml", text), None).unwrap();
    let degrade = |when| Some(Degrade { when, status: 200, body: String::new(), headers: Vec::new() });
    let mut overload = overload(vec![upstream("default", [0.0; 4], 1.0), upstream("other", [1.0; 4], 1.0)]);
    overload.rules = vec![rule(0, 0)];
    let given = |overload: &Overload, policy: &Policy| overload.given_to(&policy.routes[0], policy);
    assert_eq!(given(&overload, &policy), GivenTo::Nobody, "it has none");
    policy.routes[0].degrade = degrade(DegradeWhen::Shedding);
    assert_eq!(given(&overload, &policy), GivenTo::Nobody, "only another upstream's requests are shed");
    overload.rules = vec![rule(0, 1)];
    assert_eq!(given(&overload, &policy), GivenTo::Shed, "by its rule");
    overload.rules.clear();
    overload.upstreams[0].concurrency.shed = [0.1, 0.0, 0.0, 0.0].map(share);
    assert_eq!(given(&overload, &policy), GivenTo::Shed, "by its upstream");
    policy.routes[0].degrade = degrade(DegradeWhen::Switched);
    assert_eq!(given(&overload, &policy), GivenTo::Nobody);
    overload.switched.push(SwitchedRoute { route: policy.routes[0].name.clone(), until: None });
    assert_eq!(given(&overload, &policy), GivenTo::All);
}
