//! Rules that protect the service itself: reserves and shedding.

#![expect(clippy::unwrap_used, reason = "a test that cannot be set up must fail")]

#[path = "support/policies.rs"]
mod policies;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use policies::*;
use proptest::prelude::*;
use tidegate_core::permit::Outcome;
use tidegate_core::shed::Edge;
use tidegate_core::{Cost, Criticality, Moment, Ratio, Reason, Refusal, Retry};
use tidegate_policy::gate::{Readings, UpstreamReadings};
use tidegate_policy::policy::{
    Capacity, Endpoint, KeySource, KeySpec, Limit, Mode, Reserve, Rule, Shed, SignalName, Upstream,
};
use tidegate_policy::{Attributes, Cause, Decision, Gate, Now, Policy, Turned};

const CALLER: &[KeySource] = &[KeySource::Caller];

const NAMES: [&str; 64] = [
    "ann", "bob", "cid", "dan", "eve", "fay", "gus", "hal", "ida", "joe", "kim", "leo", "mia", "ned", "ola",
    "pam", "quy", "rob", "sue", "tim", "una", "vic", "wim", "xia", "yan", "zoe", "ann2", "bob2", "cid2",
    "dan2", "eve2", "fay2", "gus2", "hal2", "ida2", "joe2", "kim2", "leo2", "mia2", "ned2", "ola2", "pam2",
    "quy2", "rob2", "sue2", "tim2", "una2", "vic2", "wim2", "xia2", "yan2", "zoe2", "a", "b", "c", "d", "e",
    "f", "g", "h", "i", "j", "k", "l",
];

fn reserve(capacity: Capacity) -> Rule {
    let kept = Ratio::new(0.2).unwrap();
    rule("reserve", &[], Limit::Reserve(Reserve { capacity, level: Criticality::Critical, kept }))
}

/// Sheds everything but what is critical_plus, a level in ten seconds.
fn shed() -> Rule {
    let limit = Limit::Shed(Shed {
        targets: vec![(SignalName::Cpu, 0.85), (SignalName::Own("db".into()), 40.0)],
        order: Criticality::ALL[..3].to_vec(),
        ramp: Duration::from_secs(10),
    });
    rule("shed", &[], limit)
}

/// With an upstream that has at most 50 in flight.
fn with_upstream(rules: Vec<Rule>) -> Policy {
    let mut upstream = Upstream::new("orders", vec![Endpoint::new(false, "127.0.0.1", None)]);
    upstream.concurrency.max = 50;
    Policy { upstreams: vec![Arc::new(upstream)], ..policy(rules) }
}

fn ask_as(gate: &Gate, now: Now, key: &'static str, criticality: Criticality) -> Decision {
    gate.decide(now, &Attributes { criticality: Some(criticality), ..get("/", &Field(Some(key))) })
}

/// How many of `most` requests are admitted and held.
fn held(gate: &Gate, criticality: Criticality, most: usize) -> Vec<tidegate_policy::Admitted> {
    (0..most).filter_map(|_| ask_as(gate, at(0), "ann", criticality).admitted()).collect()
}

fn in_flight(gate: &Gate) -> u64 {
    gate.counter("reserve", "", at(0)).unwrap().used.whole()
}

fn cpu(value: f64) -> Readings {
    Readings { signals: vec![(SignalName::Cpu, value)], ..Readings::default() }
}

/// Steers twice a second.
fn steer(gate: &Gate, seconds: std::ops::Range<u64>, readings: &Readings) {
    for half in 2 * seconds.start..2 * seconds.end {
        gate.steer(at(500 * half), readings);
    }
}

fn edge(gate: &Gate) -> u16 {
    gate.shedding(at(0))[0].edge.ranks()
}

#[test]
fn the_last_places_are_kept_for_what_is_critical() {
    let gate = gate(policy(vec![rule("rate", CALLER, hourly(1_000)), reserve(Capacity::Places(10))]));
    let low = held(&gate, Criticality::SheddablePlus, 20);
    assert_eq!(low.len(), 8);
    let refused = ask_as(&gate, at(0), "ann", Criticality::Sheddable).refused().unwrap();
    assert_eq!((refused.by().name(), &refused.cause), ("reserve", &Cause::Reserve));
    assert_eq!(refused.refusal.reason, Reason::Reserved);
    let high = held(&gate, Criticality::Critical, 20);
    assert_eq!(high.len(), 20, "what matters is counted and not refused");
    assert_eq!(
        gate.counter("rate", "ann", at(0)).unwrap().used,
        Cost::of(28),
        "who is refused is charged nothing"
    );
    drop(low);
    assert_eq!(in_flight(&gate), 20);
    assert!(ask_as(&gate, at(0), "ann", Criticality::Sheddable).refused().is_some(), "they took the places");
    let told: Vec<_> = high[0].standings(at(0)).iter().map(|standing| standing.rule.name.clone()).collect();
    assert_eq!(told, ["rate"], "what we can bear is not told");
    drop(high);
    assert_eq!(in_flight(&gate), 0);
}

#[test]
fn a_place_comes_back_however_the_request_ends() {
    let gate = gate(with_upstream(vec![reserve(Capacity::Places(10))]));
    let refusal = Refusal { reason: Reason::QueueFull, retry: Retry::Never };
    let ends: [&dyn Fn(tidegate_policy::Admitted); 4] = [
        &|admitted| admitted.complete(at(0), Outcome::Ok),
        &|admitted| admitted.refund(at(0)),
        &|admitted| drop(admitted),
        &|admitted| drop(gate.turn_away(at(0), admitted, Turned { upstream: "orders", refusal })),
    ];
    for end in ends {
        let admitted = held(&gate, Criticality::Critical, 20);
        assert_eq!((admitted.len(), in_flight(&gate)), (20, 20));
        admitted.into_iter().for_each(end);
        assert_eq!(in_flight(&gate), 0);
    }
}

#[test]
fn a_reserve_follows_the_limit_of_its_upstream() {
    let rules = || vec![reserve(Capacity::Upstream("orders".into()))];
    let gate = gate(with_upstream(rules()));
    assert_eq!(held(&gate, Criticality::Sheddable, 100).len(), 40, "before it is told, its largest");
    let told = |limit| {
        let orders = UpstreamReadings { upstream: "orders".into(), limit, signals: Vec::new() };
        Readings { upstreams: vec![orders], ..Readings::default() }
    };
    gate.steer(at(500), &told(20));
    assert_eq!(held(&gate, Criticality::Sheddable, 100).len(), 16);
    assert_eq!(held(&gate, Criticality::Critical, 100).len(), 100);
    gate.swap(with_upstream(rules()), at(600)).unwrap();
    assert_eq!(held(&gate, Criticality::Sheddable, 100).len(), 16, "a new policy knows what was told");
    gate.steer(at(1_000), &Readings::default());
    assert_eq!(held(&gate, Criticality::Sheddable, 100).len(), 16, "what is not told stays");
}

#[test]
fn a_swap_keeps_what_is_in_flight() {
    let gate = gate(policy(vec![reserve(Capacity::Places(10))]));
    let before = held(&gate, Criticality::Critical, 6);
    gate.swap(policy(vec![rule("other", CALLER, hourly(100)), reserve(Capacity::Places(20))]), at(0))
        .unwrap();
    assert_eq!(in_flight(&gate), 6);
    let low = held(&gate, Criticality::Sheddable, 100);
    assert_eq!(low.len(), 10, "16 are open, and 6 of them taken");
    drop(before);
    assert_eq!(in_flight(&gate), 10);
}

#[test]
fn a_reserve_in_shadow_counts_and_a_disabled_one_does_nothing() {
    let gate = gate(policy(vec![shadowed(reserve(Capacity::Places(10)))]));
    let low = held(&gate, Criticality::Sheddable, 20);
    assert_eq!((low.len(), gate.statistics(at(0)).rules[0].shadow_refused), (20, 12));
    gate.set_mode("reserve", Mode::Enforce, at(0), None).unwrap();
    assert_eq!(held(&gate, Criticality::Sheddable, 1).len(), 0);
    gate.set_mode("reserve", Mode::Disabled, at(0), None).unwrap();
    assert_eq!(held(&gate, Criticality::Sheddable, 5).len(), 5);
    gate.clear_mode("reserve").unwrap();
    drop(low);
    assert_eq!(in_flight(&gate), 0);
}

#[test]
fn threads_take_all_or_nothing_and_never_more_than_is_open() {
    let gate = gate(with_upstream(vec![
        rule("rate", CALLER, hourly(100_000)),
        reserve(Capacity::Places(10)),
        rule("slots", CALLER, Limit::Concurrency(4)),
        rule("all", &[], hourly(100_000)),
    ]));
    let (charged, most) = (AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for thread in 0..4_usize {
            let (gate, charged, most) = (&gate, &charged, &most);
            scope.spawn(move || {
                let mut holding = Vec::new();
                for number in 0..3_000 {
                    let dice = (number * 2_654_435_761 + thread * 40_503) >> 3;
                    let (key, level) = (NAMES[dice % 4], Criticality::ALL[dice / 7 % 2]);
                    if let Decision::Admit(yes) = ask_as(gate, at(0), key, level) {
                        charged.fetch_add(1, Ordering::Relaxed);
                        most.fetch_max(in_flight(gate), Ordering::Relaxed);
                        holding.push(yes);
                    }
                    if holding.len() > 2 || dice % 3 == 0 {
                        let Some(yes) = holding.pop() else { continue };
                        if dice % 2 == 0 {
                            let refusal = Refusal { reason: Reason::Shed, retry: Retry::Never };
                            drop(gate.turn_away(at(0), yes, Turned { upstream: "orders", refusal }));
                            charged.fetch_sub(1, Ordering::Relaxed);
                        } else {
                            yes.complete(at(0), Outcome::Ok);
                        }
                    }
                }
            });
        }
    });
    assert_eq!(in_flight(&gate), 0);
    assert!((1..=8).contains(&most.into_inner()));
    let used = |rule, key: &str| gate.counter(rule, key, at(0)).unwrap().used.whole();
    let by_key: u64 = NAMES[..4].iter().map(|key| used("rate", key)).sum();
    let charged = charged.into_inner();
    assert_eq!((by_key, used("all", "")), (charged, charged));
    assert_eq!(NAMES[..4].iter().map(|key| used("slots", key)).sum::<u64>(), 0);
}

#[test]
fn a_shed_rule_refuses_slowly_in_order_and_restores_by_itself() {
    let gate = gate(policy(vec![shed()]));
    let passes = |level| NAMES.iter().filter(|key| ask_as(&gate, at(0), key, level).is_admit()).count();
    assert_eq!(Criticality::ALL.map(passes), [64; 4]);
    steer(&gate, 0..2, &cpu(1.0));
    assert_eq!(edge(&gate), 0, "the head start");
    steer(&gate, 2..8, &cpu(1.0));
    let some = Criticality::ALL.map(passes);
    assert!((1..64).contains(&some[0]) && some[1..] == [64; 3], "{some:?}");
    let refused =
        NAMES.iter().find_map(|key| ask_as(&gate, at(0), key, Criticality::Sheddable).refused()).unwrap();
    assert_eq!((refused.by().name(), &refused.cause), ("shed", &Cause::Shed));
    assert_eq!(
        refused.refusal,
        Refusal { reason: Reason::Shed, retry: Retry::After(Duration::from_secs(2)) }
    );
    let shedding = &gate.shedding(at(0))[0];
    assert!(
        shedding.is_shedding() && shedding.ratios()[0] > Ratio::ZERO && shedding.ratios()[1] == Ratio::ZERO
    );
    assert_eq!(shedding.hardest().unwrap().signal, SignalName::Cpu);
    steer(&gate, 8..60, &cpu(1.0));
    assert_eq!(Criticality::ALL.map(passes), [0, 0, 0, 64], "what may not be shed passes");
    steer(&gate, 60..120, &cpu(0.0));
    assert_eq!(Criticality::ALL.map(passes), [64; 4]);
    assert!(!gate.shedding(at(0))[0].is_shedding());
}

#[test]
fn any_signal_above_its_target_counts() {
    let gate = gate(policy(vec![shed()]));
    let signals = vec![(SignalName::Cpu, 0.2), (SignalName::Own("db".into()), 80.0)];
    steer(&gate, 0..30, &Readings { signals, ..Readings::default() });
    assert!(edge(&gate) > 128);
    let shedding = &gate.shedding(at(0))[0];
    assert_eq!(shedding.hardest().unwrap().signal, SignalName::Own("db".into()));
}

#[test]
fn the_same_callers_pass_for_an_hour() {
    let gate = gate(policy(vec![shed()]));
    steer(&gate, 0..8, &cpu(1.0));
    let passing = |hours: u64, minutes: u64| {
        let wall = tidegate_core::WallTime::from_unix_seconds(hours * 3_600 + minutes * 60);
        let now = Now { moment: Moment::from_nanos(0), wall };
        let passes = |key: &&&'static str| ask_as(&gate, now, key, Criticality::Sheddable).is_admit();
        NAMES.iter().filter(passes).copied().collect::<BTreeSet<_>>()
    };
    assert!((1..64).contains(&passing(7, 0).len()));
    for minutes in [1, 30, 59] {
        assert_eq!(passing(7, minutes), passing(7, 0));
    }
    assert_ne!(passing(8, 0), passing(7, 0), "nobody is unlucky for long");
}

#[test]
fn shedding_in_shadow_counts_and_disabled_lets_everybody_pass_at_once() {
    let gate = gate(policy(vec![shadowed(shed())]));
    steer(&gate, 0..30, &cpu(1.0));
    let edge_before = edge(&gate);
    assert!(edge_before > 128);
    let yes = ask_as(&gate, at(0), "ann", Criticality::Sheddable).admitted().unwrap();
    assert_eq!(yes.shadow_refusals().map(|rule| rule.name.as_str()).collect::<Vec<_>>(), ["shed"]);
    assert!(!gate.shedding(at(0))[0].is_shedding(), "nobody is refused");
    gate.set_mode("shed", Mode::Enforce, at(0), None).unwrap();
    assert!(gate.shedding(at(0))[0].is_shedding());
    assert!(!ask_as(&gate, at(0), "ann", Criticality::Sheddable).is_admit());
    gate.set_mode("shed", Mode::Disabled, at(0), None).unwrap();
    assert_eq!((edge(&gate), gate.shedding(at(0))[0].edge), (0, Edge::OPEN));
    assert!(ask_as(&gate, at(0), "ann", Criticality::Sheddable).is_admit());
    steer(&gate, 30..60, &cpu(1.0));
    gate.clear_mode("shed").unwrap();
    gate.set_mode("shed", Mode::Enforce, at(0), None).unwrap();
    assert!(ask_as(&gate, at(0), "ann", Criticality::Sheddable).is_admit(), "it begins anew");
}

#[test]
fn a_swap_keeps_how_far_a_ramp_has_come() {
    let gate = gate(policy(vec![shed()]));
    steer(&gate, 0..15, &cpu(1.0));
    let before = edge(&gate);
    assert!(before > 0);
    gate.swap(policy(vec![rule("other", CALLER, hourly(100)), shed()]), at(15_000)).unwrap();
    assert_eq!(edge(&gate), before);
    steer(&gate, 15..16, &cpu(1.0));
    assert!(edge(&gate) > before, "and it goes on");
    let mut renamed = shed();
    renamed.name = "another".to_owned();
    gate.swap(policy(vec![renamed]), at(16_000)).unwrap();
    assert_eq!(edge(&gate), 0);
}

#[test]
fn exempt_routes_are_never_shed() {
    let mut policy = policy(vec![reserve(Capacity::Places(2)), shed()]);
    policy.routes.insert(0, route("health", "/healthz", &[]));
    policy.routes[0].is_exempt = true;
    let gate = gate(policy);
    steer(&gate, 0..120, &cpu(1.0));
    let _taken = held(&gate, Criticality::CriticalPlus, 10);
    for level in Criticality::ALL {
        let health = get("/healthz", &Field(Some("ann")));
        let attributes = Attributes { criticality: Some(level), ..health };
        assert!(gate.decide(at(0), &attributes).is_admit());
        let is_shed = level < Criticality::CriticalPlus;
        assert_eq!(ask_as(&gate, at(0), "ann", level).is_admit(), !is_shed, "{level}");
    }
}

#[test]
fn both_are_explained() {
    let gate = gate(policy(vec![reserve(Capacity::Places(10)), shed()]));
    let _low = held(&gate, Criticality::Sheddable, 20);
    steer(&gate, 0..60, &cpu(0.92));
    let ann = get("/", &Field(Some("ann")));
    let attributes = Attributes { criticality: Some(Criticality::Sheddable), ..ann };
    let explanation = gate.explain(at(0), &attributes);
    let text = explanation.to_string();
    assert!(
        text.contains("would be refused by rule `shed`: requests that matter as little are being shed."),
        "{text}"
    );
    assert!(
        text.contains(
            "1. `reserve` (line 7) refuses it: 8 of 10 in flight, 8 open to sheddable. It passes when one of them has \
             ended, or as critical.\n"
        ),
        "{text}"
    );
    let said = "2. `shed` (line 7) refuses it: sheddable: all callers are refused since cpu is at 92 %, target 85 %; \
                this caller is in cohort";
    assert!(text.contains(said), "{text}");
    let json = explanation.to_json();
    assert_eq!((&json["refused_by"], &json["rules"][0]["kind"]), (&"shed".into(), &"reserve".into()));
    assert_eq!((&json["rules"][0]["open"], &json["rules"][0]["limit"]), (&8.into(), &10.into()));
    assert_eq!(
        (&json["rules"][1]["refused_ratio"], &json["rules"][1]["cohorts"]),
        (&1.0.into(), &128.into())
    );
    assert_eq!(json["rules"][1]["signals"][0]["target"], 0.85);
    assert_eq!(json["rules"][0]["remaining"], 0, "of what is open to it");
}

#[test]
fn who_names_nobody_is_known_by_the_address_whatever_the_path() {
    let gate = shedding_named_callers();
    let who = |path, client: [u8; 4]| {
        gate.who(at(0), &Attributes { client: Some(client.into()), ..get(path, &Field(None)) })
    };
    let (here, there) = ([192, 0, 2, 1], [192, 0, 2, 2]);
    assert_eq!(who("/a", here), who("/b", here));
    assert_ne!(who("/a", here).key, who("/a", there).key);
    let cohorts: BTreeSet<_> = (0..64).map(|last| who("/a", [192, 0, 2, last]).cohort).collect();
    assert!(cohorts.len() > 32, "callers of one path are not refused all at once: {cohorts:?}");
    let named = |path| gate.who(at(0), &get(path, &Field(Some("ann"))));
    assert_eq!(named("/a"), named("/b"));
}

#[test]
fn a_shed_rule_and_an_upstream_take_the_same_callers_for_the_same() {
    let gate = shedding_named_callers();
    steer(&gate, 0..8, &cpu(1.0));
    let refused: Vec<u8> = (0..=255).filter(|last| !passes_from(&gate, *last)).collect();
    assert!((32..224).contains(&refused.len()), "a part of the level: {refused:?}");
    let cohort = |last: u8| {
        let client = Some([192, 0, 2, last].into());
        gate.who(at(0), &Attributes { client, ..get("/", &Field(None)) }).cohort
    };
    let highest = refused.iter().map(|last| cohort(*last)).max();
    let lowest = (0..=255).filter(|last| passes_from(&gate, *last)).map(cohort).min();
    assert!(highest < lowest, "{highest:?} {lowest:?}");
}

/// Callers are recognised by what they say, and by nothing else.
fn shedding_named_callers() -> Gate {
    gate(Policy { caller: KeySpec(vec![api_key()]), ..policy(vec![shed()]) })
}

fn passes_from(gate: &Gate, last: u8) -> bool {
    let nobody = get("/", &Field(None));
    let (client, criticality) = (Some([192, 0, 2, last].into()), Some(Criticality::Sheddable));
    gate.decide(at(0), &Attributes { client, criticality, ..nobody }).is_admit()
}

#[test]
fn limits_that_make_no_sense_are_refused() {
    let refused = |rule: Rule| Gate::new(policy(vec![rule]), 1, at(0)).unwrap_err().field;
    let mut with_shadow = shed();
    with_shadow.shadow = Some(shed().limit);
    assert_eq!(refused(with_shadow), "limits");
    let gate = gate(policy(vec![reserve(Capacity::Places(10)), shed()]));
    assert!(gate.set_override("ann", "reserve", Limit::Concurrency(1), at(9).moment, at(0)).is_err());
    assert_eq!(gate.counter("shed", "", at(0)), None);
    assert!(!gate.reset_counter("reserve", "", at(0)));
}

/// One stream of requests: caller, criticality, and whether one that is held ends.
type Stream = Vec<(usize, usize, bool)>;

fn decisions(gate: &Gate, stream: &Stream) -> Vec<String> {
    let (mut holding, mut seen) = (Vec::new(), Vec::new());
    for (number, (key, level, ends)) in (0..).zip(stream) {
        let now = at(500 * number);
        gate.steer(now, &cpu(if number % 200 < 150 { 1.0 } else { 0.3 }));
        match ask_as(gate, now, NAMES[*key], Criticality::ALL[*level]) {
            Decision::Admit(yes) => {
                let told: Vec<_> =
                    yes.standings(now).iter().map(|s| (s.used, s.remaining, s.reset)).collect();
                seen.push(format!("yes {told:?}"));
                holding.push(yes);
            }
            Decision::Refuse(no) => {
                let told: Vec<_> = no.standings(now).iter().map(|s| (s.used, s.retry)).collect();
                seen.push(format!("no {:?} {} {told:?}", no.refusal, no.by().name()));
            }
        }
        if *ends && !holding.is_empty() {
            drop(holding.remove(0));
        }
    }
    seen
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn shadows_change_nothing(
        stream in prop::collection::vec((0_usize..8, 0_usize..4, any::<bool>()), 1..120),
    ) {
        let enforced = || vec![rule("rate", CALLER, bucket_of(1, 3)), rule("slots", &[], Limit::Concurrency(30))];
        let plain = gate(policy(enforced()));
        let mut rules = enforced();
        rules.insert(0, shadowed(reserve(Capacity::Places(2))));
        rules.push(shadowed(shed()));
        let shadowing = gate(policy(rules));
        prop_assert_eq!(decisions(&plain, &stream), decisions(&shadowing, &stream));
    }

    #[test]
    fn of_a_level_nothing_is_refused_before_all_lower_ones_are(
        seconds in 0_u64..60, busy in 0.86_f64..1.0, calm in 0_u64..20,
    ) {
        let gate = gate(policy(vec![shed()]));
        steer(&gate, 0..seconds, &cpu(busy));
        steer(&gate, seconds..seconds + calm, &cpu(0.1));
        let passes = |level| NAMES.iter().filter(|key| ask_as(&gate, at(0), key, level).is_admit()).count();
        let passing = Criticality::ALL.map(passes);
        let first = passing.iter().position(|count| *count > 0).unwrap_or(4);
        prop_assert!(passing[first + 1..].iter().all(|count| *count == 64), "{:?}", passing);
    }
}
