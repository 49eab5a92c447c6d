//! How long a decision takes: five rules on a route, a hundred thousand callers.
//!
//! `cargo run --release -p tidegate-policy --example decide_speed`

use std::collections::BTreeMap;
use std::error::Error;
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tidegate_core::keyed::MaxKeys;
use tidegate_core::permit::Outcome;
use tidegate_core::rate::TokenBucket;
use tidegate_core::{Cost, Criticality, Invalid, Moment, Quota, WallTime};
use tidegate_policy::policy::{
    Addresses, KeySource, KeySpec, Limit, Line, Matcher, MethodCosts, Mode, Rate, Route, Rule, Shape,
};
use tidegate_policy::{Attributes, Decision, Gate, Headers, Now, Policy};

const KEYS: usize = 1_000;
const DECISIONS: usize = 2_000_000;

struct ApiKey<'a>(&'a str);

impl Headers for ApiKey<'_> {
    fn first(&self, name: &str) -> Option<&[u8]> {
        (name == "x-api-key").then_some(self.0.as_bytes())
    }

    fn is_repeated(&self, _name: &str) -> bool {
        false
    }
}

fn bucket(amount: u32, window: Duration) -> Result<Limit, Invalid> {
    let quota = Quota::new(Cost::of(amount), window)?;
    let shape = Shape::TokenBucket(TokenBucket::new(quota));
    Ok(Limit::Rate(Box::new(Rate { written: String::new(), quota, shape })))
}

fn rule(name: &str, key: KeySource, limit: Limit, mode: Mode) -> Result<Arc<Rule>, Invalid> {
    Ok(Arc::new(Rule {
        name: name.to_owned(),
        line: Line(1),
        mode,
        key: KeySpec(vec![key]),
        limit,
        plans: BTreeMap::new(),
        per_criticality: BTreeMap::new(),
        shadow: None,
        max_keys: MaxKeys::new(2 * KEYS)?,
        cost: None,
    }))
}

fn policy(quota: u32) -> Result<Policy, Invalid> {
    let (second, minute) = (Duration::from_secs(1), Duration::from_secs(60));
    let caller = || KeySource::Caller;
    let rules = vec![
        rule("per_second", caller(), bucket(quota, second)?, Mode::Enforce)?,
        rule("per_minute", caller(), bucket(quota * 60, minute)?, Mode::Enforce)?,
        rule("everybody", KeySource::Global, bucket(100_000_000, second)?, Mode::Enforce)?,
        rule("in_flight", caller(), Limit::Concurrency(20), Mode::Enforce)?,
        rule("next", caller(), bucket(quota, second)?, Mode::Shadow)?,
    ];
    Ok(Policy {
        routes: vec![Route {
            name: "default".to_owned(),
            line: Line(1),
            matcher: Matcher::default(),
            upstream: None,
            rules: (0..rules.len()).collect(),
            cost: MethodCosts::ONE,
            is_exempt: false,
        }],
        rules,
        caller: KeySpec(vec![KeySource::Header("x-api-key".to_owned())]),
        callers: BTreeMap::new(),
        criticality: Vec::new(),
        criticality_from: Vec::new(),
        default_criticality: Criticality::Critical,
        addresses: Addresses::default(),
    })
}

/// Nanoseconds for each decision, its end included.
fn run(gate: &Gate, names: &[String], offset: usize, decisions: usize) -> f64 {
    let began = Instant::now();
    let mut caller = offset;
    for index in 0..decisions {
        // A stride that visits all callers in no order that a processor could foresee.
        caller = (caller + 61_803) % names.len();
        let nanos = 1_000_000_000 + index as u64 * 1_000;
        let now = Now { moment: Moment::from_nanos(nanos), wall: WallTime::from_unix_nanos(nanos) };
        let headers = ApiKey(&names[caller]);
        let attributes = Attributes {
            method: "GET",
            path: "/v1/things/7",
            host: "example.org",
            headers: &headers,
            client: None,
            criticality: None,
        };
        match black_box(gate.decide(now, &attributes)) {
            Decision::Admit(admitted) => admitted.complete(now, Outcome::Ok),
            Decision::Refuse(refused) => drop(refused),
        }
    }
    began.elapsed().as_secs_f64() * 1e9 / decisions as f64
}

#[expect(clippy::print_stdout, reason = "what it is for")]
fn main() -> Result<(), Box<dyn Error>> {
    let names: Vec<String> = (0..KEYS).map(|key| format!("sk_live_{key:016x}")).collect();
    let start = Now { moment: Moment::from_nanos(1), wall: WallTime::from_unix_nanos(1) };
    for (what, quota) in [("admitted", 1_000_000), ("mostly refused", 1)] {
        let gate = Gate::new(policy(quota)?, 0x5eed, start)?;
        run(&gate, &names, 0, KEYS);
        let one = run(&gate, &names, 0, DECISIONS);
        println!("{what}: {one:.0} ns a decision, one thread");
        let two: f64 = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..2_usize)
                .map(|thread| {
                    scope.spawn({
                        let (gate, names) = (&gate, &names);
                        move || run(gate, names, thread * 500, DECISIONS)
                    })
                })
                .collect();
            threads.into_iter().filter_map(|thread| thread.join().ok()).sum()
        });
        println!("{what}: {:.0} ns a decision, two threads at once", two / 2.0);
    }
    Ok(())
}
