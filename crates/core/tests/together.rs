//! One request over several limiters: all are charged or none is.

use std::time::Duration;

use proptest::prelude::*;
use tidegate_core::keyed::{CellTable, DueTable, MaxKeys};
use tidegate_core::rate::{FixedWindow, LeakyBucket, TokenBucket};
use tidegate_core::shell::{AtomicDue, Locked};
use tidegate_core::together::{Ask, Joint, Limiter, decide};
use tidegate_core::{Cost, Moment, Quota, Retry};

fn per_second(units: u32) -> Quota {
    Quota::per_second(Cost::of(units)).expect("a positive rate")
}

proptest! {
    #[test]
    fn a_request_is_charged_by_all_or_by_none_and_told_the_longest_way_back(
        rates in [1_u32..20, 1_u32..20, 1_u32..20, 1_u32..20],
        requests in prop::collection::vec((0_u64..300, [1_u32..6, 1_u32..6, 1_u32..6, 1_u32..6]), 1..60),
    ) {
        let start = Moment::from_nanos(1_790_000_000_000_000_000);
        let (one, locked) = (AtomicDue::new(), Locked::new());
        let max_keys = MaxKeys::new(10).unwrap();
        let (due, cells) = (DueTable::new(max_keys, 1), CellTable::new(max_keys, 1));
        let bucket = one.enrol(&TokenBucket::new(per_second(rates[0]))).unwrap();
        let window = locked.enrol(FixedWindow::new(per_second(rates[1])).unwrap(), start).unwrap();
        let shaped = due.enrol(&LeakyBucket::new(per_second(rates[2]), Cost::of(3)).unwrap()).unwrap();
        let cell = cells.enrol(FixedWindow::new(per_second(rates[3])).unwrap()).unwrap();
        let (due_key, cell_key) = (due.key("ann"), cells.key("ann"));

        let mut now = start;
        for (step, costs) in requests {
            now = now.plus(Duration::from_millis(step));
            let used = || [
                one.usage(&bucket, now).used,
                locked.usage(&window, now).used,
                due.usage(&shaped, due_key, now).used,
                cells.usage(&cell, cell_key, now).used,
            ];
            let costs = costs.map(Cost::of);
            let limiters = (one.at(&bucket, now), locked.at(&window, now), due.at(&shaped, due_key, now), cells.at(&cell, cell_key, now));
            let limiters: [&dyn Limiter; 4] = [&limiters.0, &limiters.1, &limiters.2, &limiters.3];
            let alone: Vec<_> = limiters.iter().zip(costs).map(|(limiter, cost)| limiter.peek(cost)).collect();
            let before = used();
            let mut asks = [0, 1, 2, 3].map(|index| Ask::new(limiters[index], costs[index]));
            match decide(&mut asks) {
                Joint::Admit { wait } => {
                    prop_assert_eq!(Some(wait), alone.iter().filter_map(|verdict| verdict.admitted()).max());
                    for index in 0..4 {
                        let grain = used()[index].micros().abs_diff(before[index].plus(costs[index]).micros());
                        prop_assert!(grain <= 1, "limiter {index}");
                    }
                }
                Joint::Refuse { by, refusal } => {
                    prop_assert_eq!(used(), before);
                    prop_assert_eq!(alone[by].refusal(), Some(refusal));
                    let longer = |retry| match (retry, refusal.retry) {
                        (Retry::After(other), Retry::After(told)) => other > told,
                        (Retry::Never, told) => told != Retry::Never,
                        (Retry::After(_), Retry::Never) => false,
                    };
                    prop_assert!(!alone.iter().filter_map(|verdict| verdict.refusal()).any(|other| longer(other.retry)));
                }
            }
        }
    }
}

#[test]
fn several_limits_on_one_request_wait_as_nginx_does() {
    // Two limits, 10 a second with 5 waiting and 5 a second with 2 waiting: all must pass, a refused
    // request leaves both unchanged, the wait is the longest.
    let now = Moment::from_nanos(0);
    let (fast, slow) = (AtomicDue::new(), AtomicDue::new());
    let ten = fast.enrol(&LeakyBucket::new(per_second(10), Cost::of(5)).unwrap()).unwrap();
    let five = slow.enrol(&LeakyBucket::new(per_second(5), Cost::of(2)).unwrap()).unwrap();
    let limiters = (fast.at(&ten, now), slow.at(&five, now));
    let mut waits = Vec::new();
    for _ in 0..5 {
        let mut asks = [Ask::new(&limiters.0, Cost::ONE), Ask::new(&limiters.1, Cost::ONE)];
        waits.push(match decide(&mut asks) {
            Joint::Admit { wait } => Some(wait.as_millis()),
            Joint::Refuse { by, .. } => {
                assert_eq!(by, 1);
                None
            }
        });
    }
    assert_eq!(waits, [Some(0), Some(200), Some(400), None, None]);
    assert_eq!(fast.usage(&ten, now).used, Cost::of(3));
}

#[test]
fn racing_requests_over_two_limiters_never_leave_one_charged_alone() {
    let now = Moment::from_nanos(0);
    let limiters = [AtomicDue::new(), AtomicDue::new()];
    let rules =
        [0, 1].map(|index: usize| limiters[index].enrol(&TokenBucket::new(per_second(1_000))).unwrap());
    let admitted: u32 = std::thread::scope(|scope| {
        let threads = [[0, 1], [1, 0]].map(|order| {
            let (limiters, rules) = (&limiters, &rules);
            scope.spawn(move || {
                let bound = order.map(|index: usize| limiters[index].at(&rules[index], now));
                (0..5_000)
                    .map(|_| {
                        let mut asks = [Ask::new(&bound[0], Cost::ONE), Ask::new(&bound[1], Cost::ONE)];
                        u32::from(matches!(decide(&mut asks), Joint::Admit { .. }))
                    })
                    .sum::<u32>()
            })
        });
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    for index in 0..2 {
        assert_eq!(limiters[index].usage(&rules[index], now).used, Cost::of(admitted));
    }
}
