//! Instructions for a thousand decisions of each kind, each kind with a hard limit.
//!
//! A limit is the measured count and a tenth, in the release of the compiler that the workspace asks
//! for. Raising one is a decision: say in the commit what the instructions buy.

#![allow(missing_docs, unused_qualifications, reason = "the macros of the bench write such items")]

use std::hint::black_box;

use gungraun::prelude::*;
use gungraun::{Callgrind, EventKind};
use tidegate_core::keyed::{DueTable, MaxKeys};
use tidegate_core::rate::{Algorithm, FixedWindow, SlidingLog, SlidingWindow, TokenBucket};
use tidegate_core::shell::{AtomicDue, Enrolled, Fine, Packed};
use tidegate_core::together::{Ask, Joint, decide};
use tidegate_core::{Cost, Moment, Quota};

const DECISIONS: u64 = 1_000;

/// Fails the run above so many instructions.
fn at_most(instructions: u64) -> LibraryBenchmarkConfig {
    let callgrind = Callgrind::default().hard_limits([(EventKind::Ir, instructions)]).clone();
    LibraryBenchmarkConfig::default().tool(callgrind).clone()
}

/// The moment of the decision with this number: a microsecond after the one before.
fn moment(number: u64) -> Moment {
    Moment::from_nanos(1_000_000_000 + number * 1_000)
}

/// Enough for everybody, with a count that no decision here exhausts.
fn plenty() -> Quota {
    Quota::per_second(Cost::of(1_000_000)).expect("a million a second is a quota")
}

/// One a day, so that the second request is refused.
fn scarce() -> Quota {
    Quota::per_day(Cost::ONE).expect("one a day is a quota")
}

// One counter, no keys.

type Single = (AtomicDue, Enrolled<Fine>);

fn single(quota: Quota) -> Single {
    let limiter = AtomicDue::new();
    let rule = limiter.enrol(&TokenBucket::new(quota)).expect("sixteen rules fit");
    assert!(limiter.decide(&rule, moment(0), Cost::ONE).is_admit());
    (limiter, rule)
}

#[library_benchmark]
#[bench::admit(args = (plenty()), setup = single, config = at_most(66_000))]
#[bench::refuse(args = (scarce()), setup = single, config = at_most(88_000))]
fn single_counter((limiter, rule): Single) -> (Single, u64) {
    let mut admitted = 0;
    for number in 1..=DECISIONS {
        let verdict = limiter.decide(black_box(&rule), moment(number), black_box(Cost::ONE));
        admitted += u64::from(verdict.is_admit());
    }
    ((limiter, rule), black_box(admitted))
}

// A table of keys.

type Table = (DueTable, Enrolled<Packed>);

fn empty_table(quota: Quota) -> Table {
    let room = MaxKeys::new(2 * usize::try_from(DECISIONS).expect("a thousand")).expect("two thousand keys");
    let table = DueTable::new(room, 0x5EED);
    let rule = table.enrol(&TokenBucket::new(quota)).expect("sixteen rules fit");
    (table, rule)
}

fn filled_table(quota: Quota) -> Table {
    let (table, rule) = empty_table(quota);
    for id in 1..=DECISIONS {
        assert!(table.decide(&rule, table.key(&id), moment(0), Cost::ONE).is_admit());
    }
    (table, rule)
}

#[library_benchmark]
#[bench::known_key_admit(args = (plenty()), setup = filled_table, config = at_most(138_000))]
#[bench::known_key_refuse(args = (scarce()), setup = filled_table, config = at_most(160_000))]
#[bench::new_key(args = (plenty()), setup = empty_table, config = at_most(748_000))]
fn table_of_keys((table, rule): Table) -> (Table, u64) {
    let mut admitted = 0;
    for id in 1..=DECISIONS {
        let key = table.key(black_box(&id));
        let verdict = table.decide(black_box(&rule), key, moment(id), black_box(Cost::ONE));
        admitted += u64::from(verdict.is_admit());
    }
    ((table, rule), black_box(admitted))
}

// Every decision comes seconds after the one before, so it first brings its group up to date. With a
// million keys and a hundred thousand decisions a second that is the usual case.
#[library_benchmark]
#[bench::idle(args = (plenty()), setup = filled_table, config = at_most(612_000))]
#[bench::refuse(args = (scarce()), setup = filled_table, config = at_most(160_000))]
fn table_after_a_pause((table, rule): Table) -> (Table, u64) {
    let mut admitted = 0;
    for id in 1..=DECISIONS {
        let key = table.key(black_box(&id));
        let now = moment(id * 3_000_000);
        let verdict = table.decide(black_box(&rule), key, now, black_box(Cost::ONE));
        admitted += u64::from(verdict.is_admit());
    }
    ((table, rule), black_box(admitted))
}

// The algorithms themselves, without a shell.

type Pair<A> = (A, <A as Algorithm>::State);

fn windowed<A: Algorithm<Time = Moment>>(rule: A) -> Pair<A> {
    let mut state = rule.fresh(moment(0));
    assert!(rule.decide(&mut state, moment(0), Cost::ONE).is_admit());
    (rule, state)
}

fn fixed(quota: Quota) -> Pair<FixedWindow> {
    windowed(FixedWindow::new(quota).expect("a quota without burst"))
}

fn sliding(quota: Quota) -> Pair<SlidingWindow> {
    windowed(SlidingWindow::new(quota).expect("a quota without burst"))
}

fn log(quota: Quota) -> Pair<SlidingLog> {
    windowed(SlidingLog::new(quota).expect("a quota without burst"))
}

#[inline(always)]
fn steps<A: Algorithm<Time = Moment>>((rule, mut state): Pair<A>) -> (Pair<A>, u64) {
    let mut admitted = 0;
    for number in 1..=DECISIONS {
        let verdict = rule.decide(black_box(&mut state), moment(number), black_box(Cost::ONE));
        admitted += u64::from(verdict.is_admit());
    }
    ((rule, state), black_box(admitted))
}

#[library_benchmark]
#[bench::admit(args = (plenty()), setup = fixed, config = at_most(109_000))]
#[bench::refuse(args = (scarce()), setup = fixed, config = at_most(105_000))]
fn fixed_window(pair: Pair<FixedWindow>) -> (Pair<FixedWindow>, u64) {
    steps(pair)
}

#[library_benchmark]
#[bench::admit(args = (plenty()), setup = sliding, config = at_most(377_000))]
#[bench::refuse(args = (scarce()), setup = sliding, config = at_most(520_000))]
fn sliding_window(pair: Pair<SlidingWindow>) -> (Pair<SlidingWindow>, u64) {
    steps(pair)
}

#[library_benchmark]
#[bench::admit(args = (plenty()), setup = log, config = at_most(287_000))]
#[bench::refuse(args = (scarce()), setup = log, config = at_most(261_000))]
fn sliding_log(pair: Pair<SlidingLog>) -> (Pair<SlidingLog>, u64) {
    steps(pair)
}

// Several limiters, charged together or not at all.

fn three(last: Quota) -> [Single; 3] {
    [single(plenty()), single(plenty()), single(last)]
}

#[library_benchmark]
#[bench::admit(args = (plenty()), setup = three, config = at_most(820_000))]
#[bench::refuse(args = (scarce()), setup = three, config = at_most(520_000))]
fn all_or_none_of_three(limiters: [Single; 3]) -> ([Single; 3], u64) {
    let mut admitted = 0;
    for number in 1..=DECISIONS {
        let [a, b, c] = &limiters;
        let now = moment(number);
        let (a, b, c) = (a.0.at(&a.1, now), b.0.at(&b.1, now), c.0.at(&c.1, now));
        let mut asks = [Ask::new(&a, Cost::ONE), Ask::new(&b, Cost::ONE), Ask::new(&c, Cost::ONE)];
        admitted += u64::from(matches!(decide(black_box(&mut asks)), Joint::Admit { .. }));
    }
    (limiters, black_box(admitted))
}

library_benchmark_group!(
    name = decisions,
    benchmarks = [
        single_counter,
        table_of_keys,
        table_after_a_pause,
        fixed_window,
        sliding_window,
        sliding_log,
        all_or_none_of_three
    ]
);

main!(library_benchmark_groups = decisions);
