use super::*;
use crate::verdict::Refusal;

fn at(millis: u64) -> Moment {
    Moment::ORIGIN.plus(Duration::from_millis(millis))
}

fn roll(value: f64) -> Roll {
    Roll::new(value).unwrap()
}

/// The rule of the example.
fn terms() -> BreakerTerms {
    let ratio = |value| Ratio::new(value).unwrap();
    let second = Duration::from_secs(1);
    BreakerTerms {
        window: Window::Over(20 * second),
        min_requests: 5,
        failure_ratio: ratio(0.5),
        slow: None,
        open: OpenTime { first: 5 * second, growth: 2, longest: 15 * second, jitter: ratio(0.0) },
        probing: Probing { probes: 4, limit: 10 * second },
        recovery: Some(Recovery { first: ratio(0.25), interval: second, min_requests: 2 }),
    }
}

fn breaker(change: impl FnOnce(&mut BreakerTerms)) -> Breaker {
    let mut terms = terms();
    change(&mut terms);
    Breaker::new(BreakerRule::new(terms).unwrap(), at(0))
}

fn example() -> Breaker {
    breaker(|_| {})
}

fn pass(breaker: &mut Breaker, now: u64) -> Pass {
    breaker.admit(at(now), roll(0.0)).admitted().unwrap()
}

fn feed(breaker: &mut Breaker, now: u64, outcomes: &[Outcome]) {
    for outcome in outcomes {
        let pass = pass(breaker, now);
        breaker.record(pass, at(now), *outcome);
    }
}

fn refused(breaker: &mut Breaker, now: u64) -> Option<u128> {
    match breaker.admit(at(now), roll(0.0)).refusal() {
        Some(Refusal { reason: Reason::BreakerOpen, retry: Retry::After(after) }) => Some(after.as_millis()),
        Some(other) => panic!("{other:?}"),
        None => None,
    }
}

const OK: Outcome = Outcome::Ok;
const FAIL: Outcome = Outcome::Failed;

/// Open since 0 s.
fn tripped() -> Breaker {
    let mut breaker = example();
    feed(&mut breaker, 0, &[FAIL; 5]);
    assert_eq!(breaker.state(), State::Open);
    breaker
}

/// Recovering since 5 s, a quarter admitted.
fn recovering() -> Breaker {
    let mut breaker = tripped();
    feed(&mut breaker, 5_000, &[OK; 3]);
    assert_eq!(breaker.state(), State::Recovering);
    breaker
}

#[test]
fn a_breaker_trips_and_recovers_as_in_the_example() {
    let mut breaker = example();
    feed(&mut breaker, 0, &[FAIL, FAIL, FAIL, OK]);
    assert_eq!(breaker.state(), State::Closed);
    feed(&mut breaker, 0, &[OK]);
    assert_eq!(breaker.state(), State::Open);
    assert_eq!(refused(&mut breaker, 3_000), Some(2_000));

    let probes = [(); 4].map(|()| pass(&mut breaker, 6_000));
    assert_eq!(breaker.state(), State::HalfOpen);
    assert!(refused(&mut breaker, 6_000).is_some());
    for (probe, outcome) in probes.into_iter().zip([FAIL, OK, OK, OK]) {
        breaker.record(probe, at(6_000), outcome);
    }
    assert_eq!(breaker.state(), State::Recovering);
    let admitted = breaker.admit(at(6_000), roll(0.24)).admitted().unwrap();
    assert!(!breaker.admit(at(6_000), roll(0.25)).is_admit());

    breaker.record(admitted, at(7_000), OK);
    assert_eq!(breaker.share(), Ratio::new(0.5).unwrap());
    let admitted = breaker.admit(at(7_500), roll(0.49)).admitted().unwrap();
    breaker.record(admitted, at(8_000), OK);
    assert_eq!(breaker.state(), State::Closed);
}

#[test]
fn too_few_results_never_trip() {
    let mut breaker = example();
    feed(&mut breaker, 0, &[FAIL; 4]);
    feed(&mut breaker, 20_000, &[FAIL; 4]); // the first four have left the window
    assert_eq!((breaker.state(), breaker.counts(at(20_000)).requests), (State::Closed, 4));
}

#[test]
fn a_window_of_results_forgets_by_number() {
    let mut breaker = breaker(|terms| terms.window = Window::Last(6));
    feed(&mut breaker, 0, &[FAIL, FAIL, OK, OK, OK, OK]);
    assert_eq!(breaker.counts(at(0)), Counts { requests: 6, failures: 2, slow: 0 });
    feed(&mut breaker, 0, &[OK, OK, FAIL, FAIL]); // both early failures have left
    assert_eq!((breaker.state(), breaker.counts(at(0)).failures), (State::Closed, 2));
    feed(&mut breaker, 999_000, &[FAIL]);
    assert_eq!(breaker.state(), State::Open);
}

#[test]
fn the_threshold_itself_trips() {
    let mut breaker = breaker(|terms| terms.min_requests = 6);
    feed(&mut breaker, 0, &[FAIL, OK, FAIL, OK, OK, OK]);
    assert_eq!(breaker.state(), State::Closed);
    feed(&mut breaker, 0, &[FAIL, FAIL]);
    assert_eq!(breaker.state(), State::Open); // 4 of 8
}

#[test]
fn slowness_alone_trips_when_asked_to() {
    let slow = Slow { above: Duration::from_millis(100), ratio: Ratio::new(0.8).unwrap() };
    let mut breaker = breaker(|terms| terms.slow = Some(slow));
    for took in [100, 101, 101, 101] {
        let pass = pass(&mut breaker, 0);
        breaker.record(pass, at(took), OK);
    }
    let last = pass(&mut breaker, 0);
    assert_eq!(breaker.counts(at(0)).slow, 3);
    breaker.record(last, at(101), OK);
    assert_eq!(breaker.state(), State::Open); // 4 of 5
    // A slow probe is a bad one.
    let probes = [(); 2].map(|()| pass(&mut breaker, 6_000));
    probes.into_iter().for_each(|probe| breaker.record(probe, at(6_101), OK));
    assert_eq!(breaker.state(), State::Open);
}

#[test]
fn a_cancelled_request_is_neither_success_nor_failure() {
    let mut breaker = example();
    feed(&mut breaker, 0, &[Outcome::Abandoned; 100]);
    feed(&mut breaker, 0, &[FAIL; 4]);
    assert_eq!((breaker.state(), breaker.counts(at(0)).requests), (State::Closed, 4));
    feed(&mut breaker, 0, &[Outcome::Overloaded]);
    assert_eq!(breaker.state(), State::Open);
}

#[test]
fn a_result_from_before_the_trip_does_not_count() {
    let mut breaker = example();
    let early = [(); 8].map(|()| pass(&mut breaker, 0));
    feed(&mut breaker, 0, &[FAIL; 5]);
    let mut early = early.into_iter();
    for pass in early.by_ref().take(4) {
        breaker.record(pass, at(1_000), OK);
    }
    assert_eq!(refused(&mut breaker, 1_000), Some(4_000));
    let probe = pass(&mut breaker, 5_000);
    for pass in early {
        breaker.record(pass, at(5_000), FAIL);
    }
    assert_eq!(breaker.state(), State::HalfOpen);
    breaker.record(probe, at(5_000), OK);
    assert_eq!(breaker.state(), State::HalfOpen);
}

#[test]
fn a_result_from_before_the_trip_does_not_count_after_the_return_either() {
    let mut breaker = example();
    let early = [(); 12].map(|()| pass(&mut breaker, 0));
    feed(&mut breaker, 0, &[FAIL; 5]);
    feed(&mut breaker, 5_000, &[OK; 3]);
    let mut early = early.into_iter();
    for pass in early.by_ref().take(6) {
        breaker.record(pass, at(5_000), FAIL);
    }
    assert_eq!(breaker.state(), State::Recovering);
    feed(&mut breaker, 5_500, &[OK]);
    feed(&mut breaker, 6_000, &[OK]);
    feed(&mut breaker, 7_000, &[OK]);
    assert_eq!(breaker.state(), State::Closed);
    let before = breaker.counts(at(7_000));
    for pass in early {
        breaker.record(pass, at(7_000), FAIL);
    }
    assert_eq!((breaker.state(), breaker.counts(at(7_000))), (State::Closed, before));
}

#[test]
fn a_probe_of_an_earlier_round_does_not_speak_for_the_one_in_its_place() {
    let mut breaker = tripped();
    let hung = [(); 4].map(|()| pass(&mut breaker, 5_000));
    assert!(refused(&mut breaker, 15_000).is_some());
    // Lost, as it seems: forgotten after ten times their limit.
    assert_eq!(refused(&mut breaker, 104_999), Some(1));
    let second_round = [(); 4].map(|()| pass(&mut breaker, 105_000));
    hung.into_iter().for_each(|probe| breaker.record(probe, at(105_000), OK));
    assert_eq!(breaker.state(), State::HalfOpen);
    assert!(refused(&mut breaker, 105_000).is_some());
    second_round.into_iter().for_each(|probe| breaker.record(probe, at(105_000), FAIL));
    assert_eq!(breaker.state(), State::Open);
}

#[test]
fn probes_are_judged_as_soon_as_the_missing_ones_cannot_matter() {
    let mut half_open = tripped();
    feed(&mut half_open, 5_000, &[FAIL]);
    assert_eq!(half_open.state(), State::HalfOpen);
    feed(&mut half_open, 5_000, &[FAIL]);
    assert_eq!(half_open.state(), State::Open);
    assert_eq!(recovering().state(), State::Recovering); // after three good ones of four
}

#[test]
fn a_cancelled_probe_leaves_its_place_to_another() {
    let mut breaker = tripped();
    let probes = [(); 4].map(|()| pass(&mut breaker, 5_000));
    assert!(refused(&mut breaker, 5_000).is_some());
    for probe in probes {
        breaker.record(probe, at(5_000), Outcome::Abandoned);
        feed(&mut breaker, 5_000, &[Outcome::Abandoned]);
    }
    assert_eq!(breaker.state(), State::HalfOpen);
}

#[test]
fn probes_that_hang_have_failed_when_their_time_is_over() {
    let mut breaker = tripped();
    let hung = [(); 4].map(|()| pass(&mut breaker, 5_000));
    assert_eq!(refused(&mut breaker, 5_001), Some(9_999));
    assert!(refused(&mut breaker, 15_000).is_some()); // open again, for 10 s
    assert_eq!((breaker.state(), breaker.trips()), (State::Open, 2));
    hung.into_iter().for_each(|probe| breaker.record(probe, at(15_001), OK));
    assert_eq!(breaker.state(), State::Open);
    assert_eq!(refused(&mut breaker, 24_999), Some(1));
    assert!(breaker.admit(at(25_000), roll(0.0)).is_admit());
}

#[test]
fn probes_that_have_not_come_back_hold_their_places_as_in_the_example() {
    let mut breaker = tripped();
    let hung = [(); 4].map(|()| pass(&mut breaker, 5_000));
    assert!(refused(&mut breaker, 15_000).is_some());
    assert_eq!(breaker.state(), State::Open);
    assert!(refused(&mut breaker, 25_000).is_some());
    assert_eq!(breaker.state(), State::HalfOpen);
    for probe in hung {
        breaker.record(probe, at(35_000), FAIL);
    }
    let _second_round = [(); 4].map(|()| pass(&mut breaker, 35_000));
    assert!(refused(&mut breaker, 35_000).is_some());
}

#[test]
fn one_hung_probe_does_not_keep_the_others_from_finding_out() {
    let mut breaker = tripped();
    let _hung = pass(&mut breaker, 5_000);
    feed(&mut breaker, 5_000, &[OK; 3]);
    assert_eq!(breaker.state(), State::Recovering);
}

#[test]
fn each_further_trip_waits_longer_up_to_the_cap_and_closing_forgets() {
    let mut breaker = tripped();
    let mut now = 0;
    for wait in [5_000, 10_000, 15_000, 15_000] {
        assert_eq!(refused(&mut breaker, now), Some(u128::from(wait)));
        now += wait;
        feed(&mut breaker, now, &[FAIL; 2]);
    }
    now += 15_000;
    feed(&mut breaker, now, &[OK; 3]);
    for _ in 0..2 {
        feed(&mut breaker, now, &[OK]);
        now += 1_000;
        feed(&mut breaker, now, &[OK]);
    }
    assert_eq!(breaker.state(), State::Closed);
    feed(&mut breaker, now, &[FAIL; 4]); // of five, one is ok
    assert_eq!(refused(&mut breaker, now), Some(5_000));
}

#[test]
fn the_wait_is_jittered_by_the_first_request_that_meets_it() {
    for (drawn, expected) in [(0.0, 4_500), (0.5, 5_000), (0.75, 5_250)] {
        let mut breaker = breaker(|terms| terms.open.jitter = Ratio::new(0.1).unwrap());
        feed(&mut breaker, 0, &[FAIL; 5]);
        assert!(!breaker.admit(at(0), roll(drawn)).is_admit());
        assert_eq!(refused(&mut breaker, 0), Some(expected));
    }
}

#[test]
fn failures_while_recovering_open_for_longer() {
    let mut breaker = recovering();
    feed(&mut breaker, 5_100, &[OK, FAIL]);
    assert_eq!(breaker.state(), State::Open);
    assert_eq!(refused(&mut breaker, 5_100), Some(10_000));
}

#[test]
fn a_poor_interval_holds_the_share_and_a_good_one_doubles_it() {
    let mut breaker = recovering();
    feed(&mut breaker, 5_100, &[OK, OK, FAIL]);
    feed(&mut breaker, 6_000, &[OK]); // 1 of 4 is half of the ratio
    assert_eq!(breaker.share(), Ratio::new(0.25).unwrap());
    feed(&mut breaker, 7_000, &[OK]);
    assert_eq!(breaker.share(), Ratio::new(0.5).unwrap());
}

#[test]
fn without_results_the_share_stays() {
    let mut breaker = recovering();
    for second in 6..60 {
        assert!(!breaker.admit(at(second * 1_000), roll(0.9)).is_admit());
    }
    assert_eq!(breaker.share(), Ratio::new(0.25).unwrap());
    assert_eq!(breaker.state(), State::Recovering);
}

#[test]
fn the_operator_can_force_it_open_and_switch_it_off() {
    let mut breaker = example();
    let early = pass(&mut breaker, 0);
    breaker.set_switch(Switch::ForcedOpen);
    assert_eq!((breaker.state(), breaker.share()), (State::Open, Ratio::ZERO));
    assert_eq!(refused(&mut breaker, 999_000), Some(5_000));
    breaker.record(early, at(0), OK);
    breaker.set_switch(Switch::Automatic);
    assert_eq!(breaker.state(), State::HalfOpen); // nobody knows yet whether all is well

    breaker.set_switch(Switch::Disabled);
    feed(&mut breaker, 0, &[FAIL; 100]);
    assert_eq!((breaker.state(), breaker.share()), (State::Closed, Ratio::ONE));
    breaker.set_switch(Switch::Automatic);
    assert_eq!((breaker.state(), breaker.counts(at(0)).requests), (State::Closed, 0));
}

#[test]
fn a_clock_set_back_does_not_keep_it_open() {
    let hour = 3_600_000;
    let mut breaker = example();
    feed(&mut breaker, hour, &[FAIL; 5]);
    assert_eq!(refused(&mut breaker, hour), Some(5_000));
    assert_eq!(refused(&mut breaker, 0), Some(5_000));
    let hung = [(); 4].map(|()| pass(&mut breaker, hour));
    assert_eq!(refused(&mut breaker, 0), Some(10_000)); // half-open, and their time starts again
    assert!(refused(&mut breaker, 10_000).is_some());
    assert_eq!(breaker.state(), State::Open);
    drop(hung);
}

#[test]
fn a_clock_set_back_while_recovering_delays_the_return_by_one_interval_only() {
    let hour = 3_600_000;
    let mut breaker = example();
    feed(&mut breaker, hour, &[FAIL; 5]);
    feed(&mut breaker, hour + 5_000, &[OK; 3]);
    assert_eq!(breaker.state(), State::Recovering);
    feed(&mut breaker, 0, &[OK]);
    feed(&mut breaker, 1_000, &[OK]);
    assert_eq!(breaker.share(), Ratio::new(0.5).unwrap());
}

#[test]
fn terms_that_contradict_each_other_are_refused() {
    let field = |change: fn(&mut BreakerTerms)| {
        let mut terms = terms();
        change(&mut terms);
        BreakerRule::new(terms).map_or_else(|problem| problem.field, |_| "none")
    };
    assert_eq!(field(|terms| terms.window = Window::Last(4)), "min_requests");
    assert_eq!(field(|terms| terms.window = Window::Over(Duration::ZERO)), "window");
    assert_eq!(field(|terms| terms.min_requests = 0), "min_requests");
    assert_eq!(field(|terms| terms.failure_ratio = Ratio::ZERO), "failure_ratio");
    assert_eq!(field(|terms| terms.open.longest = Duration::from_secs(4)), "open.longest");
    assert_eq!(field(|terms| terms.open.jitter = Ratio::ONE), "open.jitter");
    assert_eq!(field(|terms| terms.probing.probes = 0), "probing.probes");
    assert_eq!(field(|_| {}), "none");
    assert_eq!(BreakerRule::default().terms(), &BreakerTerms::default());
}
