use super::*;
use crate::concurrency::window::Latency;
use crate::concurrency::{Aimd, Fixed, Gradient, Vegas};
use crate::units::Ratio;

const QUIET: Surroundings = Surroundings { utilisation: None, is_dependency_slow: false };
const SLOW_DEPENDENCY: Surroundings = Surroundings { utilisation: None, is_dependency_slow: true };

/// A window of a second in which all that was in flight took the same time.
fn window(in_flight: u32, millis: u64) -> Window {
    let median = Duration::from_millis(millis);
    Window {
        length: Duration::from_secs(1),
        latency: Some(Latency { min: median, median, mean: median }),
        succeeded: whole(f64::from(in_flight) / median.as_secs_f64()),
        unheard: 0,
        failed: 0,
        overloaded: 0,
        abandoned: 0,
        max_in_flight: in_flight,
        sum_in_flight: u64::from(in_flight) * u64::from(whole(f64::from(in_flight) / median.as_secs_f64())),
        unloaded: None,
    }
}

fn overloaded(window: Window) -> Window {
    Window { overloaded: window.succeeded / 20, ..window }
}

fn controller(algorithm: impl LimitAlgorithm + 'static, bounds: std::ops::RangeInclusive<u32>) -> Controller {
    let objective = Objective::latency(Duration::from_millis(100)).unwrap();
    Controller::new(algorithm, Bounds::new(bounds).unwrap(), objective)
}

fn change(from: u32, to: u32, why: Why) -> Change {
    Change { from, to, why }
}

#[test]
fn seven_windows_move_the_limit_as_in_the_example() {
    let mut limit = controller(Aimd::default(), 10..=40);
    for (window, surroundings, expected) in [
        (window(20, 10), QUIET, change(20, 25, Why::SlowStart)),
        (window(12, 10), QUIET, change(25, 25, Why::Unused)),
        (window(25, 150), QUIET, change(25, 20, Why::Throughput)),
        (window(20, 150), SLOW_DEPENDENCY, change(20, 20, Why::Dependency)),
        (window(20, 120), QUIET, change(20, 18, Why::Objective)),
        (window(18, 10), QUIET, change(18, 18, Why::Throughput)),
        (overloaded(window(18, 10)), QUIET, change(18, 16, Why::Overloaded)),
    ] {
        assert_eq!(limit.update(&window, surroundings), expected);
    }
}

#[test]
fn a_burst_at_the_start_is_no_baseline_and_doubles_nothing() {
    // Twelve workers of 50 ms, three times too much, and 50 places from the first moment on.
    let burst = Window { unloaded: Some(Duration::from_millis(50)), ..window(50, 208) };
    let mut limit = Controller::new(
        Vegas,
        Bounds::new(2..=400).unwrap().starting_at(50).unwrap(),
        Objective::half_of(Duration::from_secs(60)).unwrap(),
    );
    assert_eq!(limit.update(&burst, QUIET), change(50, 34, Why::Queueing));
    assert_eq!(limit.baseline(), Some(Duration::from_millis(50)));
    assert!(!limit.is_doubling());
    // Fewer, and hardly faster, would prove that nobody had waited; but the first window began with nobody.
    limit.update(&window(34, 190), QUIET);
    assert_eq!(limit.baseline(), Some(Duration::from_millis(50)));
    // What is known is not asked again.
    limit.update(&Window { unloaded: Some(Duration::from_millis(1)), ..window(30, 125) }, QUIET);
    assert_eq!(limit.baseline(), Some(Duration::from_millis(50)));
}

#[test]
fn bounds_end_every_movement_and_are_the_reason_once_reached() {
    let mut limit = controller(Aimd::default(), 18..=22);
    assert_eq!(limit.update(&window(20, 10), QUIET), change(20, 22, Why::SlowStart));
    assert_eq!(limit.update(&window(22, 10), QUIET), change(22, 22, Why::Ceiling));
    assert_eq!(limit.update(&overloaded(window(22, 10)), QUIET), change(22, 19, Why::Overloaded));
    assert_eq!(limit.update(&overloaded(window(19, 10)), QUIET), change(19, 18, Why::Overloaded));
    assert_eq!(limit.update(&overloaded(window(18, 10)), QUIET), change(18, 18, Why::Floor));
}

#[test]
fn an_overloaded_answer_shrinks_the_limit_of_every_algorithm_but_the_fixed() {
    let bounds = 1..=100;
    for mut limit in [
        controller(Aimd::default(), bounds.clone()),
        controller(Vegas, bounds.clone()),
        controller(Gradient::default(), bounds.clone()),
    ] {
        let change = limit.update(&overloaded(window(20, 10)), QUIET);
        assert_eq!((change.to, change.why), (18, Why::Overloaded), "{}", limit.algorithm());
        // Also when few places are in use: the service knows better than our count.
        let change = limit.update(&overloaded(window(2, 10)), QUIET);
        assert!(change.to < change.from && change.why == Why::Overloaded);
    }
    let mut fixed = controller(Fixed, bounds);
    assert_eq!(fixed.update(&overloaded(window(20, 900)), QUIET), change(20, 20, Why::Fixed));
}

#[test]
fn nothing_moves_while_places_are_unused() {
    for mut limit in [
        controller(Aimd::default(), 1..=100),
        controller(Vegas, 1..=100),
        controller(Gradient::default(), 1..=100),
    ] {
        for millis in [10, 10, 90, 900, 10] {
            assert_eq!(limit.update(&window(9, millis), QUIET), change(20, 20, Why::Unused));
        }
    }
}

#[test]
fn windows_in_which_most_failed_or_were_abandoned_never_grow_the_limit() {
    for spoil in [
        |window: Window| Window { failed: window.succeeded + 1, ..window },
        |window: Window| Window { abandoned: window.succeeded + 1, ..window },
    ] {
        let mut limit = controller(Aimd::default(), 1..=100);
        assert_eq!(limit.update(&spoil(window(20, 1)), QUIET), change(20, 20, Why::Unproven));
        assert_eq!(limit.baseline(), None);
    }
    let mut limit = controller(Vegas, 1..=100);
    let nothing = Window { latency: None, succeeded: 0, abandoned: 60, ..window(20, 1) };
    assert_eq!(limit.update(&nothing, QUIET), change(20, 20, Why::Unproven));
}

#[test]
fn answers_that_nobody_hears_never_grow_the_limit() {
    // M6: the objective is far away, and after a while of health every caller leaves just before the answer.
    for healthy in [0, 60] {
        for mut limit in far_from_their_objective() {
            for _ in 0..healthy {
                let _ = limit.update(&window(12, 10), QUIET);
            }
            let baseline = limit.baseline();
            for _ in 0..600 {
                let late = window(limit.limit(), 1_000);
                let change = limit.update(&Window { unheard: late.succeeded, ..late }, QUIET);
                assert!(change.to <= change.from, "{} {change}", limit.algorithm());
            }
            assert_eq!(limit.baseline(), baseline);
            // It is over when somebody hears again.
            let before = limit.limit();
            for _ in 0..5 {
                let _ = limit.update(&window(limit.limit(), 10), QUIET);
            }
            assert!(limit.limit() > before, "{}", limit.algorithm());
        }
    }
}

#[test]
fn callers_who_never_wait_do_not_keep_the_limit_from_growing() {
    for mut limit in far_from_their_objective() {
        let _ = limit.update(&window(12, 10), QUIET);
        let quick = window(20, 10);
        let change = limit.update(&Window { unheard: quick.succeeded, ..quick }, QUIET);
        assert!(change.to > change.from, "{} {change}", limit.algorithm());
    }
}

fn far_from_their_objective() -> [Controller; 3] {
    let objective = Objective::latency(Duration::from_secs(30)).unwrap();
    let bounds = Bounds::new(5..=200).unwrap();
    let backoff = Ratio::new(0.9).unwrap();
    [
        Controller::new(Aimd::new(backoff, objective.target()).unwrap(), bounds, objective),
        Controller::new(Vegas, bounds, objective),
        Controller::new(Gradient::default(), bounds, objective),
    ]
}

#[test]
fn a_slow_dependency_does_not_collapse_the_limit() {
    // M7: latency goes from 10 ms to 900 ms while the own processor is idle, for ten minutes.
    let idle = Surroundings { utilisation: Some(Ratio::new(0.05).unwrap()), is_dependency_slow: false };
    for told in [idle, SLOW_DEPENDENCY] {
        for mut limit in [
            controller(Aimd::default(), 1..=100),
            controller(Vegas, 1..=100),
            controller(Gradient::default(), 1..=100),
        ] {
            let _ = limit.update(&window(20, 10), QUIET);
            let before = limit.limit();
            for _ in 0..600 {
                let change = limit.update(&window(before, 900), told);
                assert_eq!((change.to, change.why), (before, Why::Dependency), "{}", limit.algorithm());
            }
        }
    }
}

#[test]
fn an_idle_service_gets_the_places_that_a_slower_dependency_takes() {
    // 20 a second for 10 ms need a place or so; 300 a second for 90 ms need 27, and all are wanted.
    let idle = Surroundings { utilisation: Some(Ratio::new(0.05).unwrap()), is_dependency_slow: false };
    for mut limit in [
        controller(Aimd::default(), 1..=100),
        controller(Vegas, 1..=100),
        controller(Gradient::default(), 1..=100),
    ] {
        let _ = limit.update(&window(1, 10), idle);
        for _ in 0..3 {
            let _ = limit.update(&window(limit.limit().min(27), 90), idle);
        }
        let found = limit.limit();
        assert!((27..=40).contains(&found), "{} found {found}", limit.algorithm());
        let most = (0..600).map(|_| limit.update(&window(27, 90), idle).to).max().unwrap();
        assert!(most <= 60, "{} has {most} places for 27", limit.algorithm());
    }
}

#[test]
fn a_dependency_that_bears_no_more_is_not_given_more() {
    // The service is idle and what it calls serves 200 a second, whoever asks: more in flight only wait there.
    let idle = Surroundings { utilisation: Some(Ratio::new(0.05).unwrap()), is_dependency_slow: false };
    let mut limit = Controller::new(
        Vegas,
        Bounds::new(1..=1_000).unwrap(),
        Objective::latency(Duration::from_secs(5)).unwrap(),
    );
    let saturated = |places: u32| window(places, u64::from(places) * 5);
    let limits: Vec<u32> = (0..600).map(|_| limit.update(&saturated(limit.limit()), idle).to).collect();
    let (most, above) = (limits.iter().max().unwrap(), limits.iter().filter(|limit| **limit > 20).count());
    assert!(*most <= 40 && above < 60, "at most {most}, {above} windows above 20");
}

#[test]
fn a_dependency_nobody_told_of_costs_about_a_quarter_and_not_all() {
    // The same without being told: within the objective, latency triples whatever is in flight.
    for mut limit in [controller(Vegas, 1..=100), controller(Gradient::default(), 1..=100)] {
        for _ in 0..10 {
            let _ = limit.update(&window(limit.limit(), 10), QUIET);
        }
        let before = limit.limit();
        let least = (0..200).map(|_| limit.update(&window(limit.limit(), 30), QUIET).to).min().unwrap();
        assert!(least * 10 >= before * 6, "{} fell from {before} to {least}", limit.algorithm());
        assert!(limit.limit() >= before, "{} stays at {}", limit.algorithm(), limit.limit());
    }
}

#[test]
fn the_operator_moves_the_limit_only_as_far_as_the_bounds_demand() {
    let mut limit = controller(Vegas, 1..=100);
    assert_eq!(limit.set_bounds(Bounds::new(5..=50).unwrap()), change(20, 20, Why::Operator));
    assert_eq!(limit.set_bounds(Bounds::new(1..=8).unwrap()), change(20, 8, Why::Operator));
    assert_eq!(limit.set_bounds(Bounds::exactly(40).unwrap()), change(8, 40, Why::Operator));
    assert_eq!(limit.update(&window(40, 10), QUIET), change(40, 40, Why::Ceiling));
    limit.set_algorithm(Aimd::default());
    assert_eq!((limit.algorithm(), limit.limit()), ("aimd", 40));
}

#[test]
fn a_limit_that_rests_for_the_wrong_reason_is_found_out_by_a_probe() {
    // The service takes 30 ms however many are in flight, but Vegas believes in 10 ms. It rests at 8 places
    // of which 6 seem to wait; a quarter more of them are no slower, and it lets go.
    let mut limit = controller(Vegas, 1..=100);
    let _ = limit.update(&window(20, 10), QUIET);
    let _ = limit.set_bounds(Bounds::exactly(8).unwrap());
    let _ = limit.set_bounds(Bounds::new(1..=100).unwrap());
    let changes: Vec<Change> = (0..60).map(|_| limit.update(&window(limit.limit(), 30), QUIET)).collect();
    assert!(changes.contains(&change(8, 10, Why::Probe)), "{changes:?}");
    assert_eq!((limit.limit(), limit.baseline()), (100, Some(Duration::from_millis(30))));
}
