//! Instructions for a thousand decisions of a gate, from question to end, each kind with a hard limit.
//!
//! A limit is the measured count and a tenth, in the release of the compiler that the workspace asks
//! for. Raising one is a decision: say in the commit what the instructions buy.

#![allow(missing_docs, unused_qualifications, reason = "the macros of the bench write such items")]

use std::hint::black_box;
use std::time::Duration;

use gungraun::prelude::*;
use gungraun::{Callgrind, EventKind};
use tidegate_core::permit::Outcome;
use tidegate_core::{Moment, Reason, Refusal, Retry, WallTime};
use tidegate_policy::gate::Readings;
use tidegate_policy::policy::SignalName;
use tidegate_policy::{Admitted, Attributes, Decision, Field, Gate, Headers, Now, Source, Turned, read};

const REQUESTS: u64 = 1_000;
/// A quota that admits them, and one that admits each caller once.
const MANY: &str = "1000000/s";
const FEW: &str = "1/day";

/// A quota of the caller, which is to be said.
fn one_rule(quota: &str) -> String {
    format!(
        r#"
        caller = {{ from = ["header:x-api-key"], max_keys = 4000 }}
        rule.first = {{ key = "caller", quota = "{quota}" }}
        "#
    )
}

/// The same, and a limit of what is in flight.
fn two_rules(quota: &str) -> String {
    one_rule(quota) + r#"rule.in_flight  = { key = "caller", limit = 20 }"#
}

/// Two quotas of the caller, of which the first is to be said; one of everybody, a limit of what is in flight, and
/// a rule on trial.
fn five_rules(quota: &str) -> String {
    format!(
        r#"
        caller = {{ from = ["header:x-api-key"], max_keys = 4000 }}
        rule.first      = {{ key = "caller", quota = "{quota}" }}
        rule.per_minute = {{ key = "caller", quota = "60000000/min" }}
        rule.everybody  = {{ key = "global", quota = "100000000/s" }}
        rule.in_flight  = {{ key = "caller", limit = 20 }}
        rule.next       = {{ key = "caller", quota = "500000/s", mode = "shadow" }}
        "#
    )
}

/// A quota of the caller, and where requests go.
fn with_upstream(quota: &str) -> String {
    one_rule(quota) + r#"upstream = "http://127.0.0.1:3000""#
}

/// A quota of the caller, places kept for what matters, and shedding by the processor; all requests can be shed.
fn protected(quota: &str) -> String {
    with_upstream(quota)
        + r#"
        criticality = { default = "sheddable" }
        rule.fleet  = { kind = "reserve", capacity = "upstream:default", reserve = { critical = "20%" } }
        rule.worker = { kind = "shed", target = { cpu = "85%" }, order = ["sheddable"], ramp = "10s" }
        "#
}

/// Fails the run above so many instructions.
fn at_most(instructions: u64) -> LibraryBenchmarkConfig {
    let callgrind = Callgrind::default().hard_limits([(EventKind::Ir, instructions)]).clone();
    LibraryBenchmarkConfig::default().tool(callgrind).clone()
}

/// The time of the request with this number: a microsecond after the one before.
fn now(number: u64) -> Now {
    let nanos = 1_000_000_000 + number * 1_000;
    Now { moment: Moment::from_nanos(nanos), wall: WallTime::from_unix_nanos(nanos) }
}

struct ApiKey([u8; 8]);

impl ApiKey {
    fn new(caller: u64) -> Self {
        let mut text = *b"key_0000";
        for (place, digit) in text.iter_mut().rev().zip(0..4) {
            *place = b'0' + u8::try_from(caller / 10_u64.pow(digit) % 10).unwrap_or(0);
        }
        Self(text)
    }
}

impl Headers for ApiKey {
    fn find(&self, name: &str) -> Option<Field<'_>> {
        (name == "x-api-key").then_some(Field { first: &self.0, is_repeated: false })
    }
}

/// Whether the caller's request passes; what follows then.
fn ask(gate: &Gate, caller: u64, end: impl FnOnce(Admitted)) -> bool {
    let headers = ApiKey::new(caller);
    let attributes = Attributes {
        method: "GET",
        path: "/v1/things/7",
        host: "example.org",
        headers: &headers,
        client: None,
        criticality: None,
    };
    match gate.decide(now(caller), black_box(&attributes)) {
        Decision::Admit(admitted) => {
            end(admitted);
            true
        }
        Decision::Refuse(_) => false,
    }
}

/// A gate that has seen a thousand callers once.
fn gate(policy: fn(&str) -> String, quota: &str) -> Gate {
    let (policy, _) = read(Source::named("gate.toml", policy(quota).as_bytes()), None).expect("a policy");
    let gate = Gate::new(policy, 0x5EED, now(0)).expect("a small one");
    assert_eq!((1..=REQUESTS).filter(|caller| ask(&gate, *caller, complete(*caller))).count(), 1_000);
    gate
}

fn complete(caller: u64) -> impl FnOnce(Admitted) {
    move |admitted| admitted.complete(now(caller), Outcome::Ok)
}

/// The same when the processor has been busy for so long that nobody passes.
fn shedding(policy: fn(&str) -> String, quota: &str) -> Gate {
    let gate = gate(policy, quota);
    let readings = Readings { signals: vec![(SignalName::Cpu, 1.0)], ..Readings::default() };
    (0..60).for_each(|half| gate.steer(now(500_000 * half), &readings));
    gate
}

#[library_benchmark]
#[bench::one_admit(args = (one_rule, MANY), setup = gate, config = at_most(1_465_000))]
#[bench::one_refuse(args = (one_rule, FEW), setup = gate, config = at_most(2_307_000))]
#[bench::two_admit(args = (two_rules, MANY), setup = gate, config = at_most(1_779_000))]
#[bench::two_refuse(args = (two_rules, FEW), setup = gate, config = at_most(2_547_000))]
#[bench::five_admit(args = (five_rules, MANY), setup = gate, config = at_most(2_798_000))]
#[bench::five_refuse(args = (five_rules, FEW), setup = gate, config = at_most(3_189_000))]
#[bench::protected_admit(args = (protected, MANY), setup = gate, config = at_most(2_097_000))]
#[bench::protected_shed(args = (protected, MANY), setup = shedding, config = at_most(2_776_000))]
fn decisions(gate: Gate) -> (Gate, u64) {
    let mut admitted = 0;
    for caller in 1..=REQUESTS {
        admitted += u64::from(ask(black_box(&gate), caller, complete(caller)));
    }
    assert!(admitted == REQUESTS || admitted == 0);
    (gate, black_box(admitted))
}

// Admitted by the rules, and turned away by the upstream.
#[library_benchmark]
#[bench::one(args = (with_upstream, MANY), setup = gate, config = at_most(2_324_000))]
#[bench::protected(args = (protected, MANY), setup = gate, config = at_most(2_997_000))]
fn turned_away(gate: Gate) -> Gate {
    let refusal = Refusal { reason: Reason::QueueFull, retry: Retry::After(Duration::ZERO) };
    for caller in 1..=REQUESTS {
        let turn = |admitted| {
            drop(black_box(gate.turn_away(now(caller), admitted, Turned { upstream: "default", refusal })));
        };
        assert!(ask(black_box(&gate), caller, turn));
    }
    gate
}

library_benchmark_group!(name = gates, benchmarks = [decisions, turned_away]);

main!(library_benchmark_groups = gates);
