//! Every interleaving of two or three threads over each structure without locks, with at most two forced switches
//! between threads.
//!
//! Run with `RUSTFLAGS="--cfg loom" cargo test -p tidegate-core --test loom --release`.
#![cfg(loom)]

mod adaptive;
mod cells;
mod keyed;
mod timeout;

use loom::model::Builder;
use loom::sync::Arc;
use loom::thread;
use tidegate_core::permit::{InFlight, Outcome};
use tidegate_core::rate::TokenBucket;
use tidegate_core::shell::AtomicDue;
use tidegate_core::together::{Ask, Joint, decide};
use tidegate_core::{Cost, Moment, Quota};

/// Two forced switches between threads find all but the most contrived races, in seconds. Loom switches
/// where threads write, so every thread of a test here must have something to write.
fn explore(test: impl Fn() + Send + Sync + 'static) {
    let mut builder = Builder::new();
    builder.preemption_bound = Some(2);
    builder.max_branches = 100_000;
    builder.check(test);
}

fn bucket(units: u32) -> TokenBucket {
    TokenBucket::new(Quota::per_second(Cost::of(units)).unwrap())
}

fn at(millis: u64) -> Moment {
    Moment::from_nanos(millis * 1_000_000)
}

#[test]
fn two_threads_take_the_last_unit_of_a_limiter_once() {
    explore(|| {
        let limiter = Arc::new(AtomicDue::new());
        let rule = Arc::new(limiter.enrol(&bucket(1)).unwrap());
        let other = {
            let (limiter, rule) = (limiter.clone(), rule.clone());
            thread::spawn(move || limiter.decide(&rule, at(0), Cost::ONE).is_admit())
        };
        let mine = limiter.decide(&rule, at(0), Cost::ONE).is_admit();
        assert!(mine ^ other.join().unwrap());
        assert_eq!(limiter.usage(&rule, at(0)).used, Cost::ONE);
    });
}

#[test]
fn a_settlement_and_a_decision_at_once_both_count() {
    explore(|| {
        let limiter = Arc::new(AtomicDue::new());
        let rule = Arc::new(limiter.enrol(&bucket(10)).unwrap());
        let mut charge = limiter.decide(&rule, at(0), Cost::of(4)).admitted().unwrap();
        let other = {
            let (limiter, rule) = (limiter.clone(), rule.clone());
            thread::spawn(move || assert!(limiter.decide(&rule, at(0), Cost::of(2)).is_admit()))
        };
        limiter.settle(&rule, at(0), &mut charge, Cost::ONE);
        other.join().unwrap();
        assert_eq!(limiter.usage(&rule, at(0)).used, Cost::of(3));
    });
}

#[test]
fn a_refund_beside_a_reset_gives_back_nothing_of_what_is_taken_after_it() {
    // What is taken at the same moment once more is due when the first was.
    for later in [0, 1] {
        explore(move || {
            let limiter = Arc::new(AtomicDue::new());
            let rule = Arc::new(limiter.enrol(&bucket(1)).unwrap());
            let mut charge = limiter.decide(&rule, at(0), Cost::ONE).admitted().unwrap();
            let other = {
                let (limiter, rule) = (limiter.clone(), rule.clone());
                thread::spawn(move || {
                    limiter.reset();
                    assert!(limiter.decide(&rule, at(later), Cost::ONE).is_admit());
                })
            };
            limiter.refund(&rule, at(0), &mut charge);
            other.join().unwrap();
            assert!(!limiter.decide(&rule, at(later), Cost::ONE).is_admit());
        });
    }
}

#[test]
fn a_quota_changes_under_way_without_losing_a_unit() {
    explore(|| {
        let limiter = Arc::new(AtomicDue::new());
        let old = Arc::new(limiter.enrol(&bucket(10)).unwrap());
        let new = limiter.enrol(&bucket(20)).unwrap();
        let other = {
            let (limiter, old) = (limiter.clone(), old.clone());
            thread::spawn(move || assert!(limiter.decide(&old, at(0), Cost::ONE).is_admit()))
        };
        assert!(limiter.decide(&new, at(0), Cost::ONE).is_admit());
        other.join().unwrap();
        assert_eq!(limiter.usage(&new, at(0)).used, Cost::of(2));
    });
}

#[test]
fn requests_over_two_limiters_are_charged_by_both_or_by_none() {
    explore(|| {
        let limiters = Arc::new([AtomicDue::new(), AtomicDue::new()]);
        let rules =
            Arc::new([limiters[0].enrol(&bucket(1)).unwrap(), limiters[1].enrol(&bucket(1)).unwrap()]);
        let ask = |order: [usize; 2]| {
            let (limiters, rules) = (limiters.clone(), rules.clone());
            move || {
                let bound = order.map(|index| limiters[index].at(&rules[index], at(0)));
                let mut asks = [Ask::new(&bound[0], Cost::ONE), Ask::new(&bound[1], Cost::ONE)];
                matches!(decide(&mut asks), Joint::Admit { .. })
            }
        };
        let other = thread::spawn(ask([1, 0]));
        let admitted = u32::from(ask([0, 1])()) + u32::from(other.join().unwrap());
        assert!(admitted <= 1);
        for index in 0..2 {
            assert_eq!(limiters[index].usage(&rules[index], at(0)).used, Cost::of(admitted));
        }
    });
}

#[test]
fn places_in_flight_are_never_more_than_the_limit_and_all_come_back() {
    explore(|| {
        let places = std::sync::Arc::new(InFlight::new(1).unwrap());
        let work = |outcome: Option<Outcome>| {
            let places = places.clone();
            move || {
                if let Some(permit) = places.admit(at(0)).admitted() {
                    assert!(places.in_flight() <= 1);
                    match outcome {
                        Some(outcome) => permit.complete(at(1), outcome),
                        None => drop(permit),
                    }
                }
            }
        };
        let others = [thread::spawn(work(None)), thread::spawn(work(Some(Outcome::Ok)))];
        work(Some(Outcome::Failed))();
        for other in others {
            other.join().unwrap();
        }
        assert_eq!(places.in_flight(), 0);
    });
}
