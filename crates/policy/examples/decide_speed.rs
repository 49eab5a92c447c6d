//! How long a decision takes: five rules on a route, a hundred thousand callers.
//!
//! `cargo run --release -p tidegate-policy --example decide_speed [CALLERS]`

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
    KeySource, KeySpec, KnownCallers, Limit, Line, Matcher, MethodCosts, Mode, Rate, Route, Rule, Server,
    Shape,
};
use tidegate_policy::{Attributes, Decision, Field, Gate, Headers, Now, Policy};

const DECISIONS: usize = 2_000_000;

struct ApiKey([u8; 24]);

impl ApiKey {
    /// A key as long as they are, made where a request would lie that was just read.
    fn new(caller: usize) -> Self {
        let mut text = *b"sk_live_0000000000000000";
        for (place, digit) in text[8..].iter_mut().rev().zip(0..) {
            *place = b'a' + u8::try_from(caller >> (digit * 4) & 15).unwrap_or(0);
        }
        Self(text)
    }
}

impl Headers for ApiKey {
    fn find(&self, name: &str) -> Option<Field<'_>> {
        (name == "x-api-key").then_some(Field { first: &self.0, is_repeated: false })
    }
}

fn bucket(amount: u32, window: Duration) -> Result<Limit, Invalid> {
    let quota = Quota::new(Cost::of(amount), window)?;
    let shape = Shape::TokenBucket(TokenBucket::new(quota));
    Ok(Limit::Rate(Box::new(Rate { written: String::new(), quota, shape })))
}

fn rule(name: &str, key: KeySource, limit: Limit, mode: Mode, callers: usize) -> Result<Arc<Rule>, Invalid> {
    Ok(Arc::new(Rule {
        name: name.to_owned(),
        line: Line(1),
        mode,
        key: KeySpec(vec![key]),
        limit,
        plans: BTreeMap::new(),
        per_criticality: BTreeMap::new(),
        shadow: None,
        max_keys: MaxKeys::new(2 * callers)?,
        cost: None,
    }))
}

fn policy(quota: u32, callers: usize) -> Result<Policy, Invalid> {
    let (second, minute) = (Duration::from_secs(1), Duration::from_secs(60));
    let caller = || KeySource::Caller;
    let rules = vec![
        rule("per_second", caller(), bucket(quota, second)?, Mode::Enforce, callers)?,
        rule("per_minute", caller(), bucket(quota * 60, minute)?, Mode::Enforce, callers)?,
        rule("everybody", KeySource::Global, bucket(100_000_000, second)?, Mode::Enforce, callers)?,
        rule("in_flight", caller(), Limit::Concurrency(20), Mode::Enforce, callers)?,
        rule("next", caller(), bucket(quota, second)?, Mode::Shadow, callers)?,
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
            upgrades: Vec::new(),
            degrade: None,
        }],
        rules,
        caller: KeySpec(vec![KeySource::Header("x-api-key".to_owned())]),
        known: KnownCallers::All,
        callers: BTreeMap::new(),
        criticality: Vec::new(),
        criticality_from: Vec::new(),
        default_criticality: Criticality::Critical,
        server: Server::default(),
        listeners: Vec::new(),
        upstreams: Vec::new(),
        signals: Vec::new(),
        access_log: None,
        log: tidegate_policy::policy::Log::default(),
        fingerprint_key: None,
    })
}

fn at(since: Duration) -> Now {
    let nanos = u64::try_from(since.as_nanos()).unwrap_or(u64::MAX);
    Now { moment: Moment::from_nanos(nanos), wall: WallTime::from_unix_nanos(nanos) }
}

/// Decisions by the watch; then they end without it.
const AT_ONCE: usize = 16;

/// Nanoseconds for each decision: the median of many groups of them, since a group in which another program had the
/// processor says nothing.
#[expect(clippy::disallowed_methods, reason = "an example is its own driver")]
fn run(gate: &Gate, start: Duration, (keys, offset): (usize, usize), decisions: usize) -> f64 {
    let mut taken = Vec::with_capacity(decisions / AT_ONCE);
    let mut held = Vec::with_capacity(AT_ONCE);
    let mut caller = offset;
    for group in 0..decisions / AT_ONCE {
        // A stride that visits all callers in no order that a processor could foresee.
        let callers: [ApiKey; AT_ONCE] = std::array::from_fn(|_| {
            caller = (caller + 61_803) % keys;
            ApiKey::new(caller)
        });
        let began = Instant::now();
        for (index, headers) in callers.iter().enumerate() {
            let now = at(start + Duration::from_micros((group * AT_ONCE + index) as u64));
            let attributes = Attributes {
                method: "GET",
                path: "/v1/things/7",
                host: "example.org",
                headers,
                client: None,
                criticality: None,
            };
            held.push(gate.decide(now, black_box(&attributes)));
        }
        taken.push(began.elapsed());
        let now = at(start + Duration::from_micros((group * AT_ONCE + AT_ONCE) as u64));
        for decision in held.drain(..) {
            match decision {
                Decision::Admit(admitted) => admitted.complete(now, Outcome::Ok),
                Decision::Refuse(refused) => drop(refused),
            }
        }
    }
    taken.sort_unstable();
    taken[taken.len() / 2].as_secs_f64() * 1e9 / AT_ONCE as f64
}

#[expect(clippy::print_stdout, reason = "what it is for")]
fn main() -> Result<(), Box<dyn Error>> {
    let callers = std::env::args().nth(1).map_or(Ok(100_000), |callers| callers.parse())?;
    println!("a decision is {} bytes", size_of::<Decision>());
    for (what, quota) in [("admitted", 1_000_000), ("mostly refused", 1)] {
        let gate = Gate::new(policy(quota, callers)?, 0x5eed, at(Duration::ZERO))?;
        // Time goes on from run to run, as it does.
        let starts = [1, 10, 100].map(Duration::from_secs);
        run(&gate, starts[0], (callers, 0), callers);
        let one = run(&gate, starts[1], (callers, 0), DECISIONS);
        println!("{what}: {one:.0} ns a decision, one thread");
        let two: f64 = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..2_usize)
                .map(|thread| {
                    scope.spawn({
                        let gate = &gate;
                        move || run(gate, starts[2], (callers, thread * callers / 2), DECISIONS)
                    })
                })
                .collect();
            threads.into_iter().filter_map(|thread| thread.join().ok()).sum()
        });
        println!("{what}: {:.0} ns a decision, two threads at once", two / 2.0);
    }
    Ok(())
}
