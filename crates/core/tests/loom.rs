//! Every interleaving of two or three threads over each structure without locks.
//!
//! Run with `RUSTFLAGS="--cfg loom" cargo test -p tidegate-core --test loom --release`.
#![cfg(loom)]

use std::time::Duration;

use loom::model::Builder;
use loom::sync::Arc;
use loom::thread;
use tidegate_core::breaker::{BreakerRule, BreakerTerms, OpenTime, Probing, SharedBreaker, State};
use tidegate_core::concurrency::{Adaptive, Aimd, Bounds, Controller, Objective, Shares, Windowing};
use tidegate_core::keyed::{CellTable, DueTable, InFlightTable, MaxKeys, Override};
use tidegate_core::permit::{InFlight, Outcome};
use tidegate_core::rate::{FixedWindow, TokenBucket};
use tidegate_core::retry::{
    AttemptHistogram, BudgetRule, BudgetTerms, HistogramRule, HistogramTerms, RetryBudget, RetryTokens,
    TokenRule,
};
use tidegate_core::shed::{Cohort, Edge, Reserve, ReservedPlaces, SharedEdge};
use tidegate_core::shell::{AtomicDue, Enrolled, Packed};
use tidegate_core::throttle::{Answer, Throttle, ThrottleRule};
use tidegate_core::together::{Ask, Joint, decide};
use tidegate_core::{Cost, Criticality, Moment, Quota, Ratio, Reason, Retry, Roll, Verdict};

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
        let limiter = Arc::new(AtomicDue::new(at(0)));
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
        let limiter = Arc::new(AtomicDue::new(at(0)));
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
fn a_quota_changes_under_way_without_losing_a_unit() {
    explore(|| {
        let limiter = Arc::new(AtomicDue::new(at(0)));
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
        let limiters = Arc::new([AtomicDue::new(at(0)), AtomicDue::new(at(0))]);
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

/// A table of one group, and its rule.
fn table(units: u32) -> (Arc<DueTable>, Arc<Enrolled<Packed>>) {
    let table = DueTable::new(MaxKeys::new(1).unwrap(), 1);
    let rule = table.enrol(&bucket(units)).unwrap();
    (Arc::new(table), Arc::new(rule))
}

#[test]
fn two_threads_bring_the_same_key_in_once() {
    explore(|| {
        let (table, rule) = table(1);
        let key = table.key("ann");
        let other = {
            let (table, rule) = (table.clone(), rule.clone());
            thread::spawn(move || table.decide(&rule, key, at(0), Cost::ONE).is_admit())
        };
        let mine = table.decide(&rule, key, at(0), Cost::ONE).is_admit();
        assert!(mine ^ other.join().unwrap());
        assert_eq!(table.active(at(0)), 1);
    });
}

#[test]
fn an_idle_slot_is_reused_or_charged_but_not_both() {
    explore(|| {
        let (table, rule) = table(1);
        let (ann, bob, cid) = (table.key("ann"), table.key("bob"), table.key("cid"));
        for key in [ann, bob] {
            assert!(table.decide(&rule, key, at(0), Cost::ONE).is_admit());
        }
        // Both slots are idle at 1000 ms. Ann comes back while Cid needs a slot.
        let other = {
            let (table, rule) = (table.clone(), rule.clone());
            thread::spawn(move || assert!(table.decide(&rule, cid, at(1_000), Cost::ONE).is_admit()))
        };
        assert!(table.decide(&rule, ann, at(1_000), Cost::ONE).is_admit());
        other.join().unwrap();
        for key in [ann, cid] {
            assert!(!table.decide(&rule, key, at(1_000), Cost::ONE).is_admit());
        }
        assert_eq!(table.overflowed(), 0);
    });
}

/// A table whose only group was tidied at 1 s. Ticks of its rule are 16 ns, so it must be tidied again from
/// 26 770 ms on.
fn tidied_table(units: u32) -> (Arc<DueTable>, Arc<Enrolled<Packed>>) {
    let (table, rule) = table(units);
    assert!(table.decide(&rule, table.key("ann"), at(1_000), Cost::ONE).is_admit());
    (table, rule)
}

#[test]
fn a_group_is_tidied_while_a_slower_thread_charges_an_active_key() {
    explore(|| {
        let (table, rule) = tidied_table(2);
        let (ann, bob) = (table.key("ann"), table.key("bob"));
        assert!(table.decide(&rule, ann, at(26_700), Cost::ONE).is_admit());
        let other = {
            let (table, rule) = (table.clone(), rule.clone());
            thread::spawn(move || assert!(table.decide(&rule, bob, at(26_780), Cost::of(2)).is_admit()))
        };
        assert!(table.decide(&rule, ann, at(26_760), Cost::ONE).is_admit());
        other.join().unwrap();
        for key in [ann, bob] {
            assert!(!table.decide(&rule, key, at(26_790), Cost::ONE).is_admit());
            assert!(table.decide(&rule, key, at(27_800), Cost::of(2)).is_admit());
        }
    });
}

#[test]
fn a_group_is_tidied_while_a_slower_thread_charges_an_idle_key() {
    explore(|| {
        let (table, rule) = tidied_table(1);
        let (ann, bob) = (table.key("ann"), table.key("bob"));
        let other = {
            let (table, rule) = (table.clone(), rule.clone());
            thread::spawn(move || assert!(table.decide(&rule, bob, at(26_780), Cost::ONE).is_admit()))
        };
        assert!(table.decide(&rule, ann, at(26_760), Cost::ONE).is_admit());
        other.join().unwrap();
        assert!(!table.decide(&rule, ann, at(26_790), Cost::ONE).is_admit());
        assert!(!table.decide(&rule, bob, at(26_790), Cost::ONE).is_admit());
    });
}

#[test]
fn a_group_is_moved_back_by_two_threads_at_once() {
    explore(|| {
        // Moved twice, a due time of 11 210 ms would read as one just before 20 s, when the group was tidied,
        // because 2^32 ticks lie between: as idle.
        let table = Arc::new(DueTable::new(MaxKeys::new(1).unwrap(), 1));
        let quota = Quota::per_second(Cost::of(10)).unwrap().with_burst(Cost::ONE).unwrap();
        let rule = Arc::new(table.enrol(&TokenBucket::new(quota)).unwrap());
        let ann = table.key("ann");
        assert!(table.decide(&rule, ann, at(20_000), Cost::ONE).is_admit());
        let other = {
            let (table, rule) = (table.clone(), rule.clone());
            thread::spawn(move || assert!(!table.decide(&rule, ann, at(11_110), Cost::ONE).is_admit()))
        };
        assert!(!table.decide(&rule, ann, at(11_110), Cost::ONE).is_admit());
        other.join().unwrap();
        assert!(table.decide(&rule, ann, at(11_210), Cost::ONE).is_admit());
    });
}

#[test]
fn a_group_is_moved_back_while_a_thread_of_the_old_time_decides() {
    explore(|| {
        // Ann has one of two left. One thread takes it at the old time while the other moves her slot to the
        // new one. Read or written with the wrong time, 9 s or 2^31 ticks away, the slot would look idle.
        let table = Arc::new(DueTable::new(MaxKeys::new(1).unwrap(), 1));
        let quota = Quota::per_second(Cost::of(10)).unwrap().with_burst(Cost::of(2)).unwrap();
        let rule = Arc::new(table.enrol(&TokenBucket::new(quota)).unwrap());
        let ann = table.key("ann");
        assert!(table.decide(&rule, ann, at(20_000), Cost::ONE).is_admit());
        let other = {
            let (table, rule) = (table.clone(), rule.clone());
            thread::spawn(move || table.decide(&rule, ann, at(11_110), Cost::ONE).is_admit())
        };
        let _ = table.decide(&rule, ann, at(20_010), Cost::ONE);
        other.join().unwrap();
        assert!(!table.decide(&rule, ann, at(11_150), Cost::of(2)).is_admit());
    });
}

#[test]
fn what_two_threads_foresee_is_taken_once() {
    explore(|| {
        let (table, rule) = table(2);
        let ann = table.key("ann");
        assert!(table.decide(&rule, ann, at(0), Cost::ONE).is_admit());
        let take = || {
            let (table, rule) = (table.clone(), rule.clone());
            move || match table.foresee(&rule, ann, at(0), Cost::ONE).unwrap() {
                Verdict::Admit(foreseen) => foreseen.take().is_some(),
                Verdict::Refuse(_) => false,
            }
        };
        let other = thread::spawn(take());
        assert!(take()() ^ other.join().unwrap());
        assert_eq!(table.usage(&rule, ann, at(0)).used, Cost::of(2));
    });
}

#[test]
fn what_was_foreseen_before_a_group_is_moved_back_is_not_taken_after() {
    explore(|| {
        // Ann has one of two left. She foresees that at the old time; the other thread moves her slot to the new one.
        let table = Arc::new(DueTable::new(MaxKeys::new(1).unwrap(), 1));
        let quota = Quota::per_second(Cost::of(10)).unwrap().with_burst(Cost::of(2)).unwrap();
        let rule = Arc::new(table.enrol(&TokenBucket::new(quota)).unwrap());
        let ann = table.key("ann");
        assert!(table.decide(&rule, ann, at(20_000), Cost::ONE).is_admit());
        let foreseen = table.foresee(&rule, ann, at(20_010), Cost::ONE).unwrap().admitted().unwrap();
        let other = {
            let (table, rule) = (table.clone(), rule.clone());
            thread::spawn(move || table.decide(&rule, ann, at(11_110), Cost::ONE).is_admit())
        };
        let is_taken = foreseen.take().is_some();
        assert!(!(is_taken && other.join().unwrap()));
        assert!(!table.decide(&rule, ann, at(11_150), Cost::of(2)).is_admit());
    });
}

#[test]
fn a_place_that_two_threads_foresee_is_taken_once() {
    explore(|| {
        let table = std::sync::Arc::new(InFlightTable::new(MaxKeys::new(1).unwrap(), 7));
        let ann = table.key("ann");
        let held = table.take(ann, 2).admitted().unwrap();
        let take = || {
            let table = std::sync::Arc::clone(&table);
            move || match table.foresee(ann, 2).unwrap() {
                Verdict::Admit(foreseen) => foreseen.take(),
                Verdict::Refuse(_) => None,
            }
        };
        let other = thread::spawn(take());
        let taken = [take()(), other.join().unwrap()];
        assert_eq!((taken.iter().flatten().count(), table.total()), (1, 2));
        for place in taken.into_iter().flatten().chain([held]) {
            table.give_back(place);
        }
        assert_eq!(table.total(), 0);
    });
}

#[test]
fn a_block_takes_effect_or_not_yet_and_never_half() {
    explore(|| {
        let (table, rule) = table(5);
        let ann = table.key("ann");
        let other = {
            let table = table.clone();
            thread::spawn(move || table.set_override(ann, Override::Block, at(0), at(9)).unwrap())
        };
        let admitted = u32::from(table.decide(&rule, ann, at(0), Cost::ONE).is_admit());
        other.join().unwrap();
        assert!(!table.decide(&rule, ann, at(0), Cost::ONE).is_admit());
        table.clear_override(ann);
        assert_eq!(table.usage(&rule, ann, at(0)).used, Cost::of(admitted));
    });
}

#[test]
fn two_threads_give_a_key_one_cell() {
    explore(|| {
        let table = Arc::new(CellTable::new(MaxKeys::new(1).unwrap(), 1));
        let quota = Quota::per_second(Cost::ONE).unwrap();
        let rule = Arc::new(table.enrol(FixedWindow::new(quota).unwrap()).unwrap());
        let key = table.key("ann");
        let other = {
            let (table, rule) = (table.clone(), rule.clone());
            thread::spawn(move || table.decide(&rule, key, at(0), Cost::ONE).is_admit())
        };
        let mine = table.decide(&rule, key, at(0), Cost::ONE).is_admit();
        assert!(mine ^ other.join().unwrap());
    });
}

/// A budget of one retry a second, whatever the traffic.
fn one_retry() -> Arc<RetryBudget> {
    let window = Duration::from_secs(1);
    let terms = BudgetTerms { ratio: Ratio::ZERO, reserve_per_second: 1, window };
    Arc::new(RetryBudget::new(BudgetRule::new(terms).unwrap(), at(0)))
}

#[test]
fn two_threads_take_the_last_retry_once_also_while_a_bucket_ends() {
    explore(|| {
        let budget = one_retry();
        let other = {
            let budget = budget.clone();
            thread::spawn(move || budget.take(at(0)).is_admit())
        };
        let mine = budget.take(at(100)).is_admit();
        assert!(mine ^ other.join().unwrap());
        assert_eq!(budget.spent(at(100)).retries, 1);
    });
}

#[test]
fn a_request_counted_while_a_bucket_ends_is_not_lost() {
    explore(|| {
        let budget = one_retry();
        budget.request(at(0));
        let other = {
            let budget = budget.clone();
            thread::spawn(move || budget.request(at(0)))
        };
        budget.request(at(100));
        assert!(budget.take(at(100)).is_admit());
        other.join().unwrap();
        let spent = budget.spent(at(100));
        assert_eq!((spent.requests, spent.retries), (3, 1));
    });
}

/// Trips at the second failure, open for 1 s, one probe.
fn breaker() -> std::sync::Arc<SharedBreaker> {
    let terms = BreakerTerms::default();
    let open = OpenTime { first: Duration::from_secs(1), jitter: Ratio::ZERO, ..terms.open };
    let probing = Probing { probes: 1, ..terms.probing };
    let rule = BreakerRule::new(BreakerTerms { min_requests: 2, open, probing, recovery: None, ..terms });
    std::sync::Arc::new(SharedBreaker::new(rule.unwrap(), at(0)))
}

fn roll() -> Roll {
    Roll::new(0.0).unwrap()
}

#[test]
fn failures_on_two_threads_trip_a_breaker_once() {
    explore(|| {
        let breaker = breaker();
        let fail = |breaker: std::sync::Arc<SharedBreaker>| {
            move || {
                for _ in 0..2 {
                    if let Some(permit) = breaker.admit_permit(at(0), roll()).admitted() {
                        permit.complete(at(0), Outcome::Failed);
                    }
                }
            }
        };
        let other = thread::spawn(fail(breaker.clone()));
        fail(breaker.clone())();
        other.join().unwrap();
        assert_eq!((breaker.trips(), breaker.state()), (1, State::Open));
        assert!(!breaker.admit(at(999), roll()).is_admit());
    });
}

#[test]
fn two_threads_get_one_probe_and_a_cancelled_one_comes_back() {
    explore(|| {
        let breaker = breaker();
        for _ in 0..2 {
            breaker.admit_permit(at(0), roll()).admitted().unwrap().complete(at(0), Outcome::Failed);
        }
        assert!(!breaker.admit(at(0), roll()).is_admit());
        let other = {
            let breaker = breaker.clone();
            thread::spawn(move || breaker.admit_permit(at(1_000), roll()).admitted())
        };
        let mine = breaker.admit_permit(at(1_000), roll()).admitted();
        let theirs = other.join().unwrap();
        assert!(mine.is_some() ^ theirs.is_some());
        drop((mine, theirs));
        breaker.admit_permit(at(1_000), roll()).admitted().unwrap().complete(at(1_000), Outcome::Ok);
        assert_eq!(breaker.state(), State::Closed);
    });
}

#[test]
fn one_of_two_threads_passes_a_throttle_against_the_odds() {
    explore(|| {
        let throttle = Arc::new(Throttle::new(ThrottleRule::default(), at(0)));
        let level = Criticality::Critical;
        assert!(throttle.admit(level, at(0), roll()).is_admit());
        throttle.answered(level, at(0), Answer::Refused);
        let other = {
            let throttle = throttle.clone();
            thread::spawn(move || throttle.admit(level, at(1), roll()).is_admit())
        };
        let mine = throttle.admit(level, at(1), roll()).is_admit();
        assert!(mine ^ other.join().unwrap());
        assert_eq!(throttle.seen(level, at(1)).requests, 3);
    });
}

#[test]
fn attempts_counted_while_a_block_ends_are_not_lost() {
    explore(|| {
        let terms = HistogramTerms { window: 200, ..HistogramTerms::default() };
        let histogram = Arc::new(AttemptHistogram::new(HistogramRule::new(terms).unwrap()));
        (0..9).for_each(|_| histogram.record(0));
        let other = {
            let histogram = histogram.clone();
            thread::spawn(move || [0, 1].into_iter().for_each(|number| histogram.record(number)))
        };
        histogram.record(0);
        other.join().unwrap();
        let seen = histogram.seen();
        assert_eq!((seen.first, seen.second), (11, 1));
    });
}

#[test]
fn tokens_lose_neither_a_failure_nor_a_success() {
    explore(|| {
        let tokens = Arc::new(RetryTokens::new(TokenRule::new(2).unwrap()));
        tokens.failed();
        let other = {
            let tokens = tokens.clone();
            thread::spawn(move || tokens.failed())
        };
        tokens.succeeded();
        other.join().unwrap();
        // The success may come when nothing is left, but never when all is there.
        assert_eq!(tokens.thousandths(), 100);
    });
}

#[test]
fn an_edge_and_its_wait_are_seen_together_or_not_yet() {
    let millis = Duration::from_millis;
    explore(move || {
        let shared = Arc::new(SharedEdge::new());
        shared.publish(Edge::new(128).unwrap(), millis(1));
        let other = {
            let shared = shared.clone();
            thread::spawn(move || shared.publish(Edge::new(256).unwrap(), millis(2)))
        };
        let cohort = Cohort::all().next().unwrap();
        let plus = shared.decide(Criticality::SheddablePlus, cohort);
        let lowest = shared.decide(Criticality::Sheddable, cohort);
        other.join().unwrap();
        let wait = |wait| Verdict::refuse(Reason::Shed, Retry::After(millis(wait)));
        assert!(plus == Verdict::Admit(()) || plus == wait(2), "the new wait with the new edge");
        // Whoever saw the new edge goes on seeing it, so a lower level is never let in after a higher one
        // was refused.
        assert!(lowest == wait(2) || (lowest == wait(1) && plus.is_admit()));
    });
}

#[test]
fn a_reserve_is_kept_while_threads_race_for_the_last_open_place() {
    explore(|| {
        let reserve = Reserve::new(2, Ratio::new(0.5).unwrap()).unwrap();
        let places = std::sync::Arc::new(ReservedPlaces::new(reserve));
        let ask = |level: Criticality| {
            let places = places.clone();
            move || places.admit(level, at(0)).admitted()
        };
        let others = [thread::spawn(ask(Criticality::Sheddable)), thread::spawn(ask(Criticality::Critical))];
        let mine = ask(Criticality::SheddablePlus)();
        let [sheddable, critical] = others.map(|other| other.join().unwrap());
        assert!(critical.is_some(), "one place is only for it");
        assert!(mine.is_none() || sheddable.is_none(), "one place is open");
        assert!(places.in_flight() <= 2);
        drop((mine, sheddable, critical));
        assert_eq!(places.in_flight(), 0);
    });
}

// Limits of what is in flight: places, windows and changes of the limit at once.

/// A limiter that starts with so many places and closes its first window at 1 ms.
fn adaptive(places: u32, shares: Shares) -> std::sync::Arc<Adaptive> {
    let bounds = Bounds::new(1..=10).unwrap().starting_at(places).unwrap();
    let objective = Objective::latency(Duration::from_secs(1)).unwrap();
    let windowing = Windowing::new(Duration::from_millis(1), 10).unwrap();
    let limiter = Adaptive::new(Controller::new(Aimd::default(), bounds, objective), windowing, at(0));
    std::sync::Arc::new(limiter.with_shares(shares))
}

#[test]
fn adaptive_places_are_never_more_than_the_limit_and_all_come_back() {
    explore(|| {
        let limiter = adaptive(1, Shares::NONE);
        let work = |outcome: Option<Outcome>, level: Criticality| {
            let limiter = limiter.clone();
            move || {
                if let Some(permit) = limiter.admit(at(0), level).admitted() {
                    assert!(limiter.in_flight() <= 1);
                    match outcome {
                        Some(outcome) => permit.complete(at(0), outcome),
                        None => drop(permit),
                    }
                }
            }
        };
        let others = [
            thread::spawn(work(None, Criticality::Critical)),
            thread::spawn(work(Some(Outcome::Ok), Criticality::Sheddable)),
        ];
        work(Some(Outcome::Failed), Criticality::Critical)();
        for other in others {
            other.join().unwrap();
        }
        assert_eq!(limiter.in_flight(), 0);
    });
}

#[test]
fn a_window_closes_once_when_two_threads_find_it_due() {
    explore(|| {
        let limiter = adaptive(2, Shares::NONE);
        for _ in 0..9 {
            limiter.admit(at(0), Criticality::Critical).admitted().unwrap().complete(at(0), Outcome::Ok);
        }
        let permits = [limiter.clone(), limiter.clone()]
            .map(|limiter| limiter.admit_shared(at(0), Criticality::Critical).admitted().unwrap());
        let [mine, theirs] = permits;
        let other = thread::spawn(move || theirs.complete(at(2), Outcome::Ok));
        mine.complete(at(2), Outcome::Ok);
        other.join().unwrap();
        assert_eq!((limiter.limit(), limiter.recent().len(), limiter.in_flight()), (3, 1, 0));
    });
}

#[test]
fn the_last_spare_place_and_a_guaranteed_one_are_taken_at_once() {
    explore(|| {
        let shares = Shares::NONE.guarantee(Criticality::CriticalPlus, Ratio::new(0.5).unwrap()).unwrap();
        let limiter = adaptive(2, shares);
        let taking = |level| {
            let limiter = limiter.clone();
            move || limiter.admit_shared(at(0), level).admitted()
        };
        let others =
            [Criticality::Sheddable, Criticality::Critical].map(|level| thread::spawn(taking(level)));
        let guaranteed = taking(Criticality::CriticalPlus)();
        let spare: Vec<_> = others.into_iter().filter_map(|other| other.join().unwrap()).collect();
        assert!(guaranteed.is_some() && spare.len() == 1);
        assert_eq!(limiter.in_flight(), 2);
    });
}

#[test]
fn a_limit_lowered_under_way_keeps_what_is_in_flight_exact() {
    explore(|| {
        let limiter = adaptive(2, Shares::NONE);
        let held = limiter.admit(at(0), Criticality::Critical).admitted().unwrap();
        let other = {
            let limiter = limiter.clone();
            thread::spawn(move || limiter.admit_shared(at(0), Criticality::Critical).admitted())
        };
        let _change = limiter.set_bounds(at(0), Bounds::exactly(1).unwrap());
        let theirs = other.join().unwrap();
        assert_eq!(limiter.in_flight(), 1 + u64::from(theirs.is_some()));
        assert!(!limiter.admit(at(0), Criticality::Critical).is_admit());
        drop((held, theirs));
        assert_eq!((limiter.in_flight(), limiter.limit()), (0, 1));
    });
}

#[test]
fn a_newcomer_of_two_threads_gets_one_slot_and_never_more_than_its_limit() {
    explore(|| {
        let table = std::sync::Arc::new(InFlightTable::new(MaxKeys::new(1).unwrap(), 7));
        let key = table.key("ann");
        let enter = || {
            let table = std::sync::Arc::clone(&table);
            move || {
                let place = table.take(key, 1).admitted();
                assert!(table.total() <= 1);
                if let Some(place) = place {
                    table.give_back(place);
                    return 1;
                }
                0
            }
        };
        let other = thread::spawn(enter());
        let admitted = enter()() + other.join().unwrap();
        assert!(admitted >= 1);
        assert_eq!((table.total(), table.overflowed()), (0, 0));
    });
}

#[test]
fn a_slot_at_zero_goes_to_its_key_or_to_a_newcomer_but_never_to_both() {
    explore(|| {
        let table = std::sync::Arc::new(InFlightTable::new(MaxKeys::new(1).unwrap(), 7));
        // Loom's tables have two slots for one key: ann's, which she has just left, and cid's, who is there.
        let [ann, cid, bob] = ["ann", "cid", "bob"].map(|name| table.key(name));
        let left = table.take(ann, 1).admitted().unwrap();
        let stays = table.take(cid, 1).admitted().unwrap();
        table.give_back(left);
        let other = {
            let table = std::sync::Arc::clone(&table);
            thread::spawn(move || table.take(ann, 1).admitted())
        };
        let taken = [table.take(bob, 1).admitted(), other.join().unwrap()];
        let own = taken.iter().flatten().filter(|place| !place.is_overflow()).count();
        assert_eq!((own, taken.iter().flatten().count(), table.total()), (1, 2, 3));
        for place in taken.into_iter().flatten().chain([stays]) {
            table.give_back(place);
        }
        assert_eq!(table.total(), 0);
    });
}
