use std::time::Duration;

use tidegate_core::Criticality::{self, Critical, CriticalPlus, Sheddable, SheddablePlus};
use tidegate_core::permit::Outcome;
use tidegate_core::shed::{Cohort, Edge, Epoch};
use tidegate_policy::policy::{Concurrency, Endpoint, LimitAlgorithm, Upstream, WaitingOrder, WaitingQueue};

use tidegate_core::Ratio;

use super::*;
use crate::clock::{SystemClock, ToldClock};

const MS: Duration = Duration::from_millis(1);

fn upstream(limit: u32, timeout: Duration) -> Upstream {
    let queue = WaitingQueue { timeout: Some(timeout), order: WaitingOrder::Fifo, max_waiting: 100 };
    let concurrency =
        Concurrency { algorithm: LimitAlgorithm::Fixed, max: limit, queue, ..Concurrency::default() };
    Upstream { concurrency, ..Upstream::new("orders", vec![Endpoint::new(false, "a", None)]) }
}

fn bulkhead(limit: u32, timeout: Duration) -> (Arc<Bulkhead>, ToldClock) {
    let clock = ToldClock::default();
    let bulkhead = Bulkhead::new(&upstream(limit, timeout), 7, Arc::new(clock.clone())).unwrap();
    (Arc::new(bulkhead), clock)
}

fn enter(bulkhead: &Arc<Bulkhead>, clock: &impl Clock, criticality: Criticality) -> Entered {
    enter_as(bulkhead, clock, criticality, "ann")
}

fn enter_as(bulkhead: &Arc<Bulkhead>, clock: &impl Clock, criticality: Criticality, who: &str) -> Entered {
    let who = || Who { cohort: Cohort::of(who.as_bytes(), Epoch(0)), key: 0 };
    let entering = Entering { criticality, who, attempt: None };
    bulkhead.enter(clock.moment(), entering)
}

fn place(entered: Entered) -> Place {
    match entered {
        Entered::Place(place) => place,
        other => panic!("a place is free, but {other:?}"),
    }
}

fn waiting(entered: Entered) -> Waiting {
    match entered {
        Entered::Wait(waiting) => waiting,
        other => panic!("all places are taken, but {other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_foreseen_is_what_happens() {
    let who = Who { cohort: Cohort::of(b"ann", Epoch(0)), key: 0 };
    for (timeout, full) in [(50 * MS, Foreseen::Wait), (Duration::ZERO, Foreseen::Refuse(FULL))] {
        let (bulkhead, clock) = bulkhead(1, timeout);
        assert_eq!(bulkhead.foresee(Critical, who), Foreseen::Place);
        let first = place(enter(&bulkhead, &clock, Critical));
        assert_eq!(bulkhead.foresee(Critical, who), full);
        let second = enter(&bulkhead, &clock, Critical);
        assert_eq!(matches!(second, Entered::Wait(_)), full == Foreseen::Wait);
        let counted = bulkhead.status(clock.moment());
        assert_eq!(bulkhead.foresee(CriticalPlus, who), full);
        assert_eq!(bulkhead.status(clock.moment()), counted, "a question leaves no trace");
        drop((first, second));
        assert_eq!(bulkhead.foresee(Critical, who), Foreseen::Place);
        // Sheddable_plus goes on, for there is room; what is below does not.
        bulkhead.shared.edge.publish(Edge::new(2 * u16::from(Cohort::COUNT)).unwrap(), TICK);
        assert_eq!(bulkhead.foresee(SheddablePlus, who), Foreseen::Place);
        let Foreseen::Refuse(refusal) = bulkhead.foresee(Sheddable, who) else {
            panic!("the edge is closed")
        };
        assert_eq!(refusal.reason, Reason::Shed);
    }
}

#[tokio::test(start_paused = true)]
async fn the_edge_keeps_nobody_of_its_level_from_a_place_that_is_free() {
    let (bulkhead, clock) = bulkhead(8, 50 * MS);
    bulkhead.shared.edge.publish(Edge::new(3 * u16::from(Cohort::COUNT)).unwrap(), TICK);
    let who = Who { cohort: Cohort::of(b"ann", Epoch(0)), key: 0 };
    let is_refused = |level| matches!(bulkhead.foresee(level, who), Foreseen::Refuse(_));
    assert!(is_refused(Sheddable) && is_refused(SheddablePlus), "the levels below are refused entirely");
    let mut places: Vec<_> = (0..8).map(|_| place(enter(&bulkhead, &clock, Critical))).collect();
    let Entered::Refuse(refusal) = enter(&bulkhead, &clock, Critical) else { panic!("no place is free") };
    assert_eq!(refusal.reason, Reason::Shed);
    assert!(is_refused(Critical) && !is_refused(CriticalPlus));
    let waiting = waiting(enter(&bulkhead, &clock, CriticalPlus));
    drop(places.pop());
    assert!(is_refused(Critical), "the place went to the one who waited");
    drop((places, waiting));
    assert!(!is_refused(Critical));
}

#[tokio::test(start_paused = true)]
async fn a_place_that_comes_back_goes_to_the_most_critical_of_those_who_wait() {
    let (bulkhead, clock) = bulkhead(1, 50 * MS);
    let first = place(enter(&bulkhead, &clock, Sheddable));
    let low = waiting(enter(&bulkhead, &clock, SheddablePlus));
    let high = waiting(enter(&bulkhead, &clock, CriticalPlus));
    assert_eq!(bulkhead.status(clock.moment()).waiting, [0, 1, 0, 1]);
    clock.advance(10 * MS);
    first.complete(clock.moment(), Outcome::Ok);
    let second = high.await.unwrap();
    assert_eq!(bulkhead.status(clock.moment()).waiting, [0, 1, 0, 0]);
    assert_eq!(bulkhead.status(clock.moment()).queue_delay, 10 * MS);
    drop(second);
    let third = low.await.unwrap();
    assert_eq!(bulkhead.status(clock.moment()).in_flight, 1);
    drop(third);
    assert_eq!(bulkhead.status(clock.moment()).in_flight, 0);
}

#[tokio::test(start_paused = true)]
async fn who_waits_too_long_is_refused_and_leaves() {
    let (bulkhead, clock) = bulkhead(1, 50 * MS);
    let _first = place(enter(&bulkhead, &clock, Critical));
    let second = waiting(enter(&bulkhead, &clock, Critical));
    assert_eq!(second.await.unwrap_err().reason, Reason::WaitTooLong);
    let status = bulkhead.status(clock.moment());
    assert_eq!(status.waiting, [0; 4]);
    let late = status.refused.iter().find(|refused| refused.reason == Reason::WaitTooLong).unwrap();
    assert_eq!(late.counts, [0, 0, 1, 0]);
}

#[tokio::test(start_paused = true)]
async fn who_goes_away_is_not_waited_for() {
    let (bulkhead, clock) = bulkhead(1, 50 * MS);
    let first = place(enter(&bulkhead, &clock, Critical));
    let gone = waiting(enter(&bulkhead, &clock, Critical));
    let stays = waiting(enter(&bulkhead, &clock, Sheddable));
    drop(gone);
    assert_eq!(bulkhead.status(clock.moment()).waiting, [1, 0, 0, 0]);
    drop(first);
    stays.await.unwrap().complete(clock.moment(), Outcome::Ok);
    // One that is given a place and never looks at it gives it back as well.
    let first = place(enter(&bulkhead, &clock, Critical));
    let gone = waiting(enter(&bulkhead, &clock, Critical));
    drop(first);
    drop(gone);
    assert_eq!(bulkhead.status(clock.moment()).in_flight, 0);
}

#[tokio::test(start_paused = true)]
async fn where_nobody_may_wait_the_limit_refuses_at_once() {
    let (bulkhead, clock) = bulkhead(1, Duration::ZERO);
    let _first = place(enter(&bulkhead, &clock, Critical));
    let Entered::Refuse(refusal) = enter(&bulkhead, &clock, Critical) else { panic!("nobody may wait") };
    assert_eq!((refusal.reason, refusal.retry), (Reason::LimitReached, Retry::After(TICK)));
}

#[tokio::test(start_paused = true)]
async fn a_full_queue_keeps_the_more_critical() {
    let (bulkhead, clock) = bulkhead(1, 50 * MS);
    let _first = place(enter(&bulkhead, &clock, Critical));
    let mut low: Vec<_> = (0..100).map(|_| waiting(enter(&bulkhead, &clock, Sheddable))).collect();
    assert!(
        matches!(enter(&bulkhead, &clock, Sheddable), Entered::Refuse(refusal) if refusal.reason == Reason::QueueFull)
    );
    let _high = waiting(enter(&bulkhead, &clock, Critical));
    let displaced = low.pop().unwrap();
    assert_eq!(displaced.await.unwrap_err().reason, Reason::Displaced);
    assert_eq!(bulkhead.status(clock.moment()).waiting, [99, 0, 1, 0]);
}

#[tokio::test(start_paused = true)]
async fn slow_callers_hold_half_of_the_places_and_a_place_that_is_undone_goes_to_the_next() {
    let (bulkhead, clock) = bulkhead(4, 50 * MS);
    let lingering: Vec<_> = (0..3).map(|_| bulkhead.linger()).collect();
    assert_eq!(lingering.iter().flatten().count(), 2);
    drop(lingering);
    assert!(bulkhead.linger().is_some());
    let mut places: Vec<_> = (0..4).map(|_| place(enter(&bulkhead, &clock, Critical))).collect();
    let next = waiting(enter(&bulkhead, &clock, Critical));
    places.pop().unwrap().undo();
    assert!(next.await.is_ok());
    drop(places);
    assert_eq!(bulkhead.status(clock.moment()).in_flight, 0);
}

/// Half a second in which these come every other millisecond and those who have a place keep it for 10 ms.
async fn half_a_second(bulkhead: &Arc<Bulkhead>, clock: &ToldClock, levels: &[Criticality]) {
    let mut served = std::collections::VecDeque::new();
    for turn in 0..250 {
        for (number, level) in levels.iter().enumerate() {
            let who = format!("caller {}", (turn * levels.len() + number) % 1_000);
            match enter_as(bulkhead, clock, *level, &who) {
                Entered::Place(place) => served.push_back((turn, place)),
                Entered::Wait(_) | Entered::Refuse(_) => {}
            }
        }
        clock.advance(2 * MS);
        while served.front().is_some_and(|(since, _)| since + 5 <= turn + 1) {
            let (_, place) = served.pop_front().unwrap();
            place.complete(clock.moment(), Outcome::Ok);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_flood_moves_the_edge_into_the_lowest_level_and_calm_opens_it_again() {
    let (bulkhead, clock) = bulkhead(10, Duration::ZERO);
    half_a_second(&bulkhead, &clock, &[Critical]).await;
    assert_eq!(bulkhead.status(clock.moment()).shed, [Ratio::ZERO; 4]);
    // Ten can be served in 10 ms, five came so far, and now forty come.
    for _ in 0..12 {
        half_a_second(&bulkhead, &clock, &[[Sheddable; 7].as_slice(), &[Critical]].concat()).await;
    }
    let status = bulkhead.status(clock.moment());
    assert!(status.shed[0].value() > 0.5 && status.shed[2..] == [Ratio::ZERO; 2], "{:?}", status.shed);
    assert!((2.0..5.0).contains(&status.wanted_ratio), "{}", status.wanted_ratio);
    for _ in 0..12 {
        half_a_second(&bulkhead, &clock, &[Critical]).await;
        bulkhead.look(clock.moment());
    }
    assert_eq!(bulkhead.status(clock.moment()).shed, [Ratio::ZERO; 4]);
}

#[tokio::test(start_paused = true)]
async fn what_rules_hold_back_is_wanted_and_does_not_move_the_edge() {
    let (bulkhead, clock) = bulkhead(10, Duration::ZERO);
    for _ in 0..20 {
        half_a_second(&bulkhead, &clock, &[Critical]).await;
        (0..1_750).for_each(|_| bulkhead.held_back());
    }
    let status = bulkhead.status(clock.moment());
    // 250 come and find four of ten places busy, so 625 could be done; 2000 are wanted.
    assert!((2.9..3.5).contains(&status.wanted_ratio), "{}", status.wanted_ratio);
    assert_eq!(status.shed, [Ratio::ZERO; 4]);
}

#[tokio::test(start_paused = true)]
async fn a_service_that_fails_at_once_does_not_seem_to_have_room() {
    let (bulkhead, clock) = bulkhead(10, Duration::ZERO);
    for _ in 0..20 {
        half_a_second(&bulkhead, &clock, &[Critical, Critical, Critical]).await;
    }
    let before = bulkhead.status(clock.moment()).wanted_ratio;
    for turn in 0..5_000 {
        for _ in 0..3 {
            let outcome = if turn % 2 == 0 { Outcome::Failed } else { Outcome::Overloaded };
            place(enter(&bulkhead, &clock, Critical)).complete(clock.moment(), outcome);
        }
        clock.advance(2 * MS);
    }
    let after = bulkhead.status(clock.moment()).wanted_ratio;
    assert!(before > 1.0 && (after / before - 1.0).abs() < 0.02, "{before}, then {after}");
}

#[tokio::test(start_paused = true)]
async fn when_many_retry_they_are_told_not_to() {
    let (bulkhead, clock) = bulkhead(1, Duration::ZERO);
    let _first = place(enter(&bulkhead, &clock, Critical));
    let mut last = Retry::After(TICK);
    for number in 0..400 {
        let who = || Who { cohort: Cohort::of(b"ann", Epoch(0)), key: 0 };
        let entering = Entering { criticality: Critical, who, attempt: Some(number % 2) };
        let Entered::Refuse(refusal) = bulkhead.enter(clock.moment(), entering) else { panic!("it is full") };
        last = refusal.retry;
    }
    assert_eq!(last, Retry::Never);
    assert!(bulkhead.status(clock.moment()).advises_against_retries);
}

/// Places come back on one thread while others begin to wait on another: nobody may be forgotten.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nobody_who_waits_is_forgotten() {
    let clock = SystemClock::new();
    let bulkhead = Bulkhead::new(&upstream(2, Duration::from_secs(30)), 7, Arc::new(clock)).unwrap();
    let tasks: Vec<_> = (0..4)
        .map(|number| {
            let door = Arc::new(bulkhead.entrance());
            tokio::spawn(async move {
                for turn in 0..5_000_u32 {
                    let place = match enter(&door, &clock, Criticality::ALL[(turn as usize + number) % 4]) {
                        Entered::Place(place) => place,
                        Entered::Wait(waiting) if turn % 7 == 0 => {
                            drop(waiting);
                            continue;
                        }
                        Entered::Wait(waiting) => waiting.await.unwrap(),
                        Entered::Refuse(refusal) => panic!("nobody is refused: {refusal:?}"),
                    };
                    if turn % 3 == 0 {
                        tokio::task::yield_now().await;
                    }
                    place.complete(clock.moment(), Outcome::Ok);
                }
            })
        })
        .collect();
    for task in tasks {
        tokio::time::timeout(Duration::from_secs(20), task).await.unwrap().unwrap();
    }
    let status = bulkhead.status(clock.moment());
    assert_eq!((status.in_flight, status.waiting), (0, [0; 4]));
}
