//! What adapts: budgets, breakers, throttles, edges, and limits of what is in flight.

use std::time::Duration;

use loom::sync::Arc;
use loom::thread;
use tidegate_core::breaker::{BreakerRule, BreakerTerms, OpenTime, Probing, SharedBreaker, State};
use tidegate_core::concurrency::{Adaptive, Aimd, Bounds, Controller, Objective, Shares, Windowing};
use tidegate_core::permit::{Outcome, Permit};
use tidegate_core::retry::{
    AttemptHistogram, BudgetRule, BudgetTerms, HistogramRule, HistogramTerms, RetryBudget, RetryTokens,
    TokenRule,
};
use tidegate_core::shed::{Cohort, Edge, Reserve, ReservedPlaces, SharedEdge};
use tidegate_core::throttle::{Answer, Throttle, ThrottleRule};
use tidegate_core::{Criticality, Ratio, Reason, Retry, Roll, Verdict};

use crate::{at, explore};

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
fn stocks_of_places_lose_none_and_never_exceed_the_limit() {
    explore(|| {
        let limiter = adaptive(6, Shares::NONE);
        let take = |limiter: &std::sync::Arc<Adaptive>, most: usize| -> Vec<Permit> {
            let ask = || limiter.admit_shared(at(0), Criticality::Critical).admitted();
            std::iter::from_fn(ask).take(most).collect()
        };
        // With six places free there are stocks from the first one that comes back, and with four taken no more.
        take(&limiter, 1).into_iter().for_each(Permit::undo);
        let mut held = take(&limiter, 3);
        let ending = held.pop();
        let other = {
            let limiter = limiter.clone();
            thread::spawn(move || {
                drop(ending);
                take(&limiter, 1)
            })
        };
        held.extend(take(&limiter, 2));
        held.extend(other.join().unwrap());
        assert!(held.len() <= 6);
        // What a stock had kept would be missing here.
        let rest = take(&limiter, 7);
        assert_eq!((held.len() + rest.len(), limiter.in_flight()), (6, 6));
        drop((held, rest));
        assert_eq!(limiter.in_flight(), 0);
    });
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
