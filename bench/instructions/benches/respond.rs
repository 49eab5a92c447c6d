//! Instructions and allocations for a thousand answers, each kind with a hard limit.
//!
//! A limit is the measured count and a tenth, in the release of the compiler that the workspace asks
//! for. Raising one is a decision: say in the commit what the instructions buy. What the gate looks up to tell
//! where a caller stands is part of an answer; writing the form that a thread keeps is part of the first.

#![allow(missing_docs, unused_qualifications, reason = "the macros of the bench write such items")]

use std::hint::black_box;

use gungraun::prelude::*;
use gungraun::{Callgrind, Dhat, DhatMetric, EventKind};
use http::HeaderMap;
use tidegate_core::{Moment, WallTime};
use tidegate_policy::{Admitted, Attributes, Decision, Gate, Now, Refused, Source, read};
use tidegate_tower::respond::Speech;
use tidegate_tower::{Clock, Respond};

const ANSWERS: usize = 1_000;

const NOW: Now = Now { moment: Moment::from_nanos(1_000_000_000), wall: WallTime::from_unix_nanos(0) };

/// A quota of the caller.
const ONE_RULE: &str = r#"
rule.per_key = { key = "header:x-api-key", quota = "10/s", burst = 20 }
"#;

/// The same, another quota that is spent with it, and a limit of what is in flight.
const THREE_RULES: &str = r#"
rule.per_key    = { key = "header:x-api-key", quota = "10/s", burst = 20 }
rule.per_minute = { key = "header:x-api-key", quota = "20/min" }
rule.in_flight  = { key = "header:x-api-key", limit = 20 }
"#;

#[derive(Debug)]
struct Stopped;

impl Clock for Stopped {
    fn now(&self) -> Now {
        NOW
    }
}

/// Fails the run above so many instructions or allocations.
fn at_most(instructions: u64, allocations: u64) -> LibraryBenchmarkConfig {
    let callgrind = Callgrind::default().hard_limits([(EventKind::Ir, instructions)]).clone();
    let dhat = Dhat::default().hard_limits([(DhatMetric::TotalBlocks, allocations)]).clone();
    LibraryBenchmarkConfig::default().tool(callgrind).tool(dhat).clone()
}

/// Those that are admitted, the first that is refused, and how it is told.
struct Decided {
    admitted: Vec<Admitted>,
    refused: Refused,
    speech: Speech,
}

fn decided(policy: &str, speech: Speech) -> Decided {
    let (policy, _) = read(Source::named("respond.toml", policy.as_bytes()), None).expect("a policy");
    let gate = Gate::new(policy, 0x5EED, NOW).expect("a small one");
    let headers = vec![("x-api-key".to_owned(), "key_0001".to_owned())];
    let (method, path, host, headers) = ("GET", "/v1/things/7", "example.org", &headers);
    let attributes = Attributes { method, path, host, headers, client: None, criticality: None };
    let mut admitted = Vec::new();
    loop {
        match gate.decide(NOW, &attributes) {
            Decision::Admit(more) => admitted.push(more),
            Decision::Refuse(refused) => return Decided { admitted, refused, speech },
        }
    }
}

#[library_benchmark(setup = decided)]
#[bench::one_http(args = (ONE_RULE, Speech::Http), config = at_most(5_012_000, 4_020))]
#[bench::three_http(args = (THREE_RULES, Speech::Http), config = at_most(7_902_000, 4_020))]
#[bench::one_grpc(args = (ONE_RULE, Speech::Grpc), config = at_most(32_403_000, 34_020))]
fn refusals(decided: Decided) -> Decided {
    let respond = Respond::default();
    for _ in 0..ANSWERS {
        drop(black_box(respond.refused(NOW, black_box(&decided.refused), decided.speech)));
    }
    decided
}

#[library_benchmark(setup = decided)]
#[bench::one_rule(args = (ONE_RULE, Speech::Http), config = at_most(2_919_000, 2_020))]
#[bench::three_rules(args = (THREE_RULES, Speech::Http), config = at_most(4_469_000, 2_020))]
fn admissions(decided: Decided) -> Decided {
    let respond = Respond::default();
    let mut headers = HeaderMap::with_capacity(8);
    for _ in 0..ANSWERS {
        respond.admitted(&Stopped, black_box(&decided.admitted[0]), &mut headers);
        black_box(&mut headers).clear();
    }
    decided
}

library_benchmark_group!(name = answers, benchmarks = [refusals, admissions]);

main!(library_benchmark_groups = answers);
