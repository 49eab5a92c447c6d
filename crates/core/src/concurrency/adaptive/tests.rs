use super::*;
use crate::concurrency::{Aimd, Fixed, LimitAlgorithm, Objective, Vegas, Why};
use crate::permit::Outcome;
use crate::units::Ratio;

const LEVEL: Criticality = Criticality::Critical;

fn at(millis: u64) -> Moment {
    Moment::ORIGIN.plus(Duration::from_millis(millis))
}

fn limiter(algorithm: impl LimitAlgorithm + 'static, bounds: Bounds) -> Adaptive {
    let objective = Objective::latency(Duration::from_secs(1)).unwrap();
    let windowing = Windowing::new(Duration::from_millis(100), 10).unwrap();
    Adaptive::new(Controller::new(algorithm, bounds, objective), windowing, at(0))
}

/// Takes all places at `start` and completes them `took` later.
fn fill(limiter: &Adaptive, start: u64, took: u64) -> u32 {
    let mut permits = Vec::new();
    while let Some(permit) = limiter.admit(at(start), LEVEL).admitted() {
        permits.push(permit);
    }
    let count = u32::try_from(permits.len()).unwrap();
    for permit in permits {
        permit.complete(at(start + took), Outcome::Ok);
    }
    count
}

#[test]
fn the_place_after_the_last_is_refused_without_a_time_to_wait() {
    let limiter = limiter(Fixed, Bounds::exactly(2).unwrap());
    let _permits = [limiter.admit(at(0), LEVEL), limiter.admit(at(0), LEVEL)].map(Verdict::admitted);
    let refusal = limiter.admit(at(0), LEVEL).refusal().unwrap();
    assert_eq!((refusal.reason, refusal.retry), (Reason::LimitReached, Retry::After(Duration::ZERO)));
    assert_eq!(limiter.in_flight_of(LEVEL), 2);
}

#[test]
fn a_window_closes_when_it_is_old_enough_and_full_enough() {
    let limiter = limiter(Aimd::default(), Bounds::new(1..=100).unwrap());
    assert_eq!(fill(&limiter, 0, 10), 20); // full enough, but 10 ms old
    assert_eq!(limiter.last(), None);
    limiter.admit(at(90), LEVEL).admitted().unwrap().complete(at(100), Outcome::Ok);
    assert_eq!(limiter.last(), Some(Change { from: 20, to: 25, why: Why::SlowStart }));
    assert_eq!(limiter.limit(), 25);
    // Old enough, but one request is not enough; with nine more it is.
    limiter.admit(at(290), LEVEL).admitted().unwrap().complete(at(300), Outcome::Ok);
    assert_eq!(limiter.recent().len(), 1);
    assert_eq!(fill(&limiter, 301, 10), 25);
    limiter.admit(at(390), LEVEL).admitted().unwrap().complete(at(400), Outcome::Ok);
    assert_eq!(limiter.recent().last(), Some(&(at(400), Change { from: 25, to: 31, why: Why::SlowStart })));
}

#[test]
fn what_started_under_another_limit_teaches_nothing() {
    let limiter = limiter(Vegas, Bounds::new(1..=100).unwrap());
    let early: Vec<_> = (0..15).map(|_| limiter.admit(at(0), LEVEL).admitted().unwrap()).collect();
    let _ = limiter.set_bounds(at(50), Bounds::new(1..=15).unwrap());
    for permit in early {
        permit.complete(at(900), Outcome::Overloaded);
    }
    assert_eq!((limiter.in_flight(), limiter.limit()), (0, 15));
    assert_eq!(limiter.last().unwrap().why, Why::Operator);
}

#[test]
fn a_limit_below_what_is_in_flight_admits_nobody_until_enough_came_back() {
    let limiter = limiter(Vegas, Bounds::new(1..=100).unwrap());
    let mut permits: Vec<_> = (0..20).map(|_| limiter.admit(at(0), LEVEL).admitted().unwrap()).collect();
    let change = limiter.set_bounds(at(1), Bounds::exactly(5).unwrap());
    assert_eq!((change, limiter.in_flight()), (Change { from: 20, to: 5, why: Why::Operator }, 20));
    while permits.len() > 5 {
        assert!(!limiter.admit(at(2), LEVEL).is_admit());
        drop(permits.pop());
    }
    assert!(!limiter.admit(at(2), LEVEL).is_admit());
    drop(permits.pop());
    permits.push(limiter.admit(at(2), LEVEL).admitted().unwrap());
    let _ = limiter.set_bounds(at(3), Bounds::exactly(9).unwrap());
    assert_eq!((permits.len(), limiter.in_flight(), limiter.limit()), (5, 5, 9));
}

#[test]
fn abandoned_requests_return_their_places_and_never_move_the_limit() {
    let limiter = limiter(Aimd::default(), Bounds::new(1..=100).unwrap());
    for millis in 0..1_000 {
        drop(limiter.admit(at(millis), LEVEL).admitted().unwrap());
    }
    limiter.admit(at(1_000), LEVEL).admitted().unwrap().complete(at(1_001), Outcome::Ok);
    assert_eq!((limiter.in_flight(), limiter.limit()), (0, 20));
    assert_eq!(limiter.last().unwrap().why, Why::Unused);
}

#[test]
fn a_permit_may_outlive_the_handle_it_came_from() {
    let limiter = Arc::new(limiter(Fixed, Bounds::exactly(3).unwrap()));
    let clones = [Arc::clone(&limiter), Arc::clone(&limiter), Arc::clone(&limiter)];
    let permits = clones.map(|clone| clone.admit_shared(at(0), LEVEL).admitted().unwrap());
    assert!(!limiter.admit_shared(at(0), LEVEL).is_admit());
    let [first, second, third] = permits;
    third.complete(at(5), Outcome::Failed);
    drop(first);
    second.complete(at(1), Outcome::Ok);
    assert_eq!(limiter.in_flight(), 0);
}

#[test]
fn guaranteed_places_are_kept_for_their_level_and_the_limit_is_never_exceeded() {
    let shares = Shares::NONE.guarantee(Criticality::CriticalPlus, Ratio::new(0.2).unwrap()).unwrap();
    let limiter = limiter(Fixed, Bounds::exactly(10).unwrap()).with_shares(shares);
    let mut permits = Vec::new();
    for level in [Criticality::Sheddable, Criticality::CriticalPlus] {
        permits.extend((0..20).map_while(|_| limiter.admit(at(0), level).admitted()));
    }
    let counts = Criticality::ALL.map(|level| limiter.in_flight_of(level));
    assert_eq!((counts, limiter.in_flight()), ([8, 0, 0, 2], 10));
}

#[test]
fn a_clock_that_went_back_an_hour_does_not_stop_the_windows() {
    let limiter = limiter(Aimd::default(), Bounds::new(1..=100).unwrap());
    let hour = 3_600_000;
    fill(&limiter, hour, 10);
    fill(&limiter, hour + 200, 10);
    let before = limiter.limit();
    assert!(before > 20);
    for round in 0..3 {
        fill(&limiter, round * 200, 10);
    }
    assert!(limiter.limit() > before);
}

#[test]
fn a_window_that_spans_a_pause_is_forgotten() {
    let limiter = limiter(Aimd::default(), Bounds::new(1..=100).unwrap());
    for _ in 0..3 {
        limiter.admit(at(0), LEVEL).admitted().unwrap().complete(at(1), Outcome::Overloaded);
    }
    limiter.admit(at(20_000), LEVEL).admitted().unwrap().complete(at(20_000), Outcome::Ok);
    fill(&limiter, 20_050, 10);
    fill(&limiter, 20_300, 10);
    assert_eq!(limiter.recent(), [(at(20_310), Change { from: 20, to: 25, why: Why::SlowStart })]);
}

#[test]
fn threads_that_take_and_give_back_at_once_leave_nothing_behind() {
    let limiter = limiter(Vegas, Bounds::new(1..=50).unwrap().starting_at(3).unwrap());
    std::thread::scope(|scope| {
        for thread in 0..4_u64 {
            let limiter = &limiter;
            scope.spawn(move || {
                for turn in 0..20_000 {
                    let level = Criticality::ALL[usize::try_from(turn % 4).unwrap()];
                    let Some(permit) = limiter.admit(at(turn), level).admitted() else { continue };
                    match (turn + thread) % 3 {
                        0 => drop(permit),
                        1 => permit.complete(at(turn + 1), Outcome::Ok),
                        _ => permit.complete(at(turn + 2), Outcome::Overloaded),
                    }
                }
            });
        }
    });
    assert_eq!(limiter.in_flight(), 0);
    assert!((1..=50).contains(&limiter.limit()));
}

/// Keeps every place taken by requests of a millisecond, and returns when it is `until`.
fn keep_full(limiter: &Adaptive, from: u64, until: u64) {
    let mut held = VecDeque::new();
    let mut now = at(from);
    while now < at(until) {
        while let Some(permit) = limiter.admit(now, LEVEL).admitted() {
            held.push_back(permit);
        }
        now = now.plus(Duration::from_millis(1) / limiter.limit());
        held.pop_front().unwrap().complete(now, Outcome::Ok);
    }
    held.into_iter().for_each(|permit| permit.complete(now, Outcome::Abandoned));
}

#[test]
fn from_a_cold_start_windows_close_early_until_the_first_trouble() {
    let bounds = Bounds::new(1..=1_000).unwrap();
    let objective = Objective::latency(Duration::from_secs(1)).unwrap();
    let limiter = Adaptive::new(Controller::new(Vegas, bounds, objective), Windowing::default(), at(0));
    keep_full(&limiter, 0, 200);
    let moves: Vec<_> =
        limiter.recent().into_iter().map(|(at, change)| (at.nanos() / 1_000_000, change)).collect();
    let doubled = |from| Change { from, to: 2 * from, why: Why::SlowStart };
    assert_eq!(moves, [(62, doubled(20)), (125, doubled(40)), (187, doubled(80))]);
    // Overloaded answers end it: now a window takes its second.
    for _ in 0..60 {
        limiter.admit(at(201), LEVEL).admitted().unwrap().complete(at(202), Outcome::Overloaded);
    }
    limiter.admit(at(1_290), LEVEL).admitted().unwrap().complete(at(1_300), Outcome::Ok);
    assert_eq!(limiter.last().unwrap().why, Why::Overloaded);
    let changes = limiter.recent().len();
    keep_full(&limiter, 1_302, 2_200);
    assert_eq!(limiter.recent().len(), changes);
}

#[test]
fn a_cold_start_without_demand_closes_no_window_early() {
    let bounds = Bounds::new(1..=1_000).unwrap();
    let objective = Objective::latency(Duration::from_secs(1)).unwrap();
    let limiter = Adaptive::new(Controller::new(Vegas, bounds, objective), Windowing::default(), at(0));
    for millis in 0..990 {
        limiter.admit(at(millis), LEVEL).admitted().unwrap().complete(at(millis + 1), Outcome::Ok);
    }
    assert_eq!(limiter.last(), None);
    limiter.admit(at(1_000), LEVEL).admitted().unwrap().complete(at(1_001), Outcome::Ok);
    assert_eq!(limiter.last().unwrap().why, Why::Unused);
}
