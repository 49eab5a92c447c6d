//! Instructions for a thousand requests through each adaptive mechanism, each with a hard limit.
//!
//! A limit is the measured count and a tenth, in the release of the compiler that the workspace asks
//! for. Raising one is a decision: say in the commit what the instructions buy.

#![allow(missing_docs, unused_qualifications, reason = "the macros of the bench write such items")]

use std::hint::black_box;
use std::time::Duration;

use gungraun::prelude::*;
use gungraun::{Callgrind, EventKind};
use tidegate_core::breaker::{BreakerRule, SharedBreaker};
use tidegate_core::concurrency::{Adaptive, Bounds, Controller, Objective, Vegas, Windowing};
use tidegate_core::permit::Outcome;
use tidegate_core::retry::{BudgetRule, BudgetTerms, RetryBudget};
use tidegate_core::shed::{Cohort, Edge, Epoch, SharedEdge};
use tidegate_core::throttle::{Answer, Throttle, ThrottleRule};
use tidegate_core::{Criticality, Moment, Ratio, Roll};

const REQUESTS: u64 = 1_000;
const LEVEL: Criticality = Criticality::Critical;

/// Fails the run above so many instructions.
fn at_most(instructions: u64) -> LibraryBenchmarkConfig {
    let callgrind = Callgrind::default().hard_limits([(EventKind::Ir, instructions)]).clone();
    LibraryBenchmarkConfig::default().tool(callgrind).clone()
}

/// The moment of the request with this number: a microsecond after the one before.
fn moment(number: u64) -> Moment {
    Moment::from_nanos(1_000_000_000 + number * 1_000)
}

fn roll(value: f64) -> Roll {
    Roll::new(value).expect("from 0 to below 1")
}

/// What a thousand answers must be, so that no limit is met by answering something else.
fn check(admitted: u64, is_admitting: bool) {
    assert_eq!(admitted, if is_admitting { REQUESTS } else { 0 });
}

// The limit of what is in flight.

fn limiter(bounds: Bounds) -> Adaptive {
    let objective = Objective::half_of(Duration::from_secs(5)).expect("a time-out");
    Adaptive::new(Controller::new(Vegas, bounds, objective), Windowing::default(), moment(0))
}

fn free() -> Adaptive {
    limiter(Bounds::new(2..=400).expect("bounds in order"))
}

/// The same once its first window has closed, so that it knows what a request takes without load.
fn settled() -> Adaptive {
    let bounds = Bounds::new(2..=400).expect("bounds in order");
    let objective = Objective::half_of(Duration::from_secs(5)).expect("a time-out");
    let opened = Moment::ORIGIN;
    let limiter = Adaptive::new(Controller::new(Vegas, bounds, objective), Windowing::default(), opened);
    let pass = |begun: Moment, ended: Moment| {
        let permit = limiter.admit(begun, LEVEL).admitted().expect("places are free");
        permit.complete(ended, Outcome::Ok);
    };
    (0..100).for_each(|_| pass(opened, opened.plus(Duration::from_micros(10))));
    pass(opened, moment(0));
    assert!(limiter.baseline().is_some());
    limiter
}

fn full() -> Adaptive {
    let limiter = limiter(Bounds::exactly(1).expect("one place"));
    // Never given back.
    std::mem::forget(limiter.admit(moment(0), LEVEL));
    limiter
}

#[library_benchmark]
#[bench::taken_and_given_back(setup = settled, config = at_most(324_000))]
#[bench::in_the_first_window(setup = free, config = at_most(363_000))]
fn place(limiter: Adaptive) -> Adaptive {
    for number in 1..=REQUESTS {
        if let Some(permit) = limiter.admit(moment(number), black_box(LEVEL)).admitted() {
            permit.complete(moment(number + 10), black_box(Outcome::Ok));
        }
    }
    limiter
}

#[library_benchmark]
#[bench::refuse(setup = full, config = at_most(89_000))]
fn no_place(limiter: Adaptive) -> Adaptive {
    let mut admitted = 0;
    for number in 1..=REQUESTS {
        admitted += u64::from(limiter.admit(moment(number), black_box(LEVEL)).is_admit());
    }
    check(admitted, false);
    limiter
}

// The breaker.

fn closed() -> SharedBreaker {
    SharedBreaker::new(BreakerRule::default(), moment(0))
}

fn open() -> SharedBreaker {
    let breaker = closed();
    while let Some(pass) = breaker.admit(moment(0), roll(0.5)).admitted() {
        breaker.record(pass, moment(0), Outcome::Failed);
    }
    breaker
}

#[library_benchmark]
#[bench::closed(args = (true), setup = breaker, config = at_most(17_000))]
#[bench::open(args = (false), setup = breaker, config = at_most(70_000))]
fn breaker_check((breaker, is_closed): (SharedBreaker, bool)) -> SharedBreaker {
    let (roll, mut admitted) = (roll(0.5), 0);
    for number in 1..=REQUESTS {
        admitted += u64::from(breaker.admit(moment(number), black_box(roll)).is_admit());
    }
    check(admitted, is_closed);
    breaker
}

fn breaker(is_closed: bool) -> (SharedBreaker, bool) {
    (if is_closed { closed() } else { open() }, is_closed)
}

#[library_benchmark]
#[bench::success(setup = closed, config = at_most(230_000))]
fn breaker_call(breaker: SharedBreaker) -> SharedBreaker {
    let roll = roll(0.5);
    for number in 1..=REQUESTS {
        if let Some(pass) = breaker.admit(moment(number), black_box(roll)).admitted() {
            breaker.record(pass, moment(number + 10), black_box(Outcome::Ok));
        }
    }
    breaker
}

// The throttle, whose other side has refused everything.

fn throttle(roll: Roll) -> (Throttle, Roll) {
    let throttle = Throttle::new(ThrottleRule::default(), moment(0));
    for _ in 0..100 {
        // The first that the odds refuse passes as a probe, and the next one not before a second is over.
        let _ = throttle.admit(LEVEL, moment(0), Roll::new(0.0).expect("from 0 to below 1"));
        throttle.answered(LEVEL, moment(0), Answer::Refused);
    }
    (throttle, roll)
}

#[library_benchmark]
#[bench::admit(args = (roll(0.99)), setup = throttle, config = at_most(72_000))]
#[bench::refuse(args = (roll(0.0)), setup = throttle, config = at_most(119_000))]
fn throttled((throttle, roll): (Throttle, Roll)) -> Throttle {
    let mut admitted = 0;
    for number in 1..=REQUESTS {
        admitted += u64::from(throttle.admit(black_box(LEVEL), moment(number), black_box(roll)).is_admit());
    }
    check(admitted, roll.value() > 0.5);
    throttle
}

// The retry budget: a request, and a retry for it.

fn budget(ratio: Ratio) -> (RetryBudget, Ratio) {
    let terms = BudgetTerms { ratio, reserve_per_second: 0, ..BudgetTerms::default() };
    (RetryBudget::new(BudgetRule::new(terms).expect("terms in their ranges"), moment(0)), ratio)
}

#[library_benchmark]
#[bench::admit(args = (Ratio::ONE), setup = budget, config = at_most(137_000))]
#[bench::refuse(args = (Ratio::ZERO), setup = budget, config = at_most(178_000))]
fn retry_budget((budget, ratio): (RetryBudget, Ratio)) -> RetryBudget {
    let mut admitted = 0;
    for number in 1..=REQUESTS {
        budget.request(moment(number));
        admitted += u64::from(budget.take(moment(number)).is_admit());
    }
    check(admitted, ratio == Ratio::ONE);
    budget
}

// The shedder.

fn edge(edge: Edge) -> (SharedEdge, Cohort) {
    let shared = SharedEdge::new();
    shared.publish(edge, Duration::from_secs(1));
    (shared, Cohort::of(b"ann", Epoch(1)))
}

#[library_benchmark]
#[bench::admit(args = (Edge::OPEN), setup = edge, config = at_most(20_000))]
#[bench::refuse(args = (Edge::SHUT), setup = edge, config = at_most(20_000))]
fn shed((edge, cohort): (SharedEdge, Cohort)) -> SharedEdge {
    let mut admitted = 0;
    for _ in 1..=REQUESTS {
        admitted += u64::from(edge.decide(black_box(LEVEL), black_box(cohort)).is_admit());
    }
    check(admitted, edge.edge() == Edge::OPEN);
    edge
}

library_benchmark_group!(
    name = adaptive,
    benchmarks = [place, no_place, breaker_check, breaker_call, throttled, retry_budget, shed]
);

main!(library_benchmark_groups = adaptive);
