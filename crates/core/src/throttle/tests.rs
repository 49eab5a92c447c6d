use super::*;
use crate::permit::Outcome;
use crate::units::{Criticality, Moment};
use crate::verdict::{Reason, Retry};

const LEVEL: Criticality = Criticality::Critical;

fn at(millis: u64) -> Moment {
    Moment::ORIGIN.plus(Duration::from_millis(millis))
}

fn roll(value: f64) -> Roll {
    Roll::new(value).unwrap()
}

/// A throttle that sent so many requests at the origin and got so many accepted, the others refused.
fn after(requests: u64, accepts: u64) -> Throttle {
    let throttle = Throttle::new(ThrottleRule::default(), at(0));
    for number in 0..requests {
        let _sent = throttle.admit(LEVEL, at(0), roll(0.999));
        throttle.answered(LEVEL, at(0), if number < accepts { Answer::Accepted } else { Answer::Refused });
    }
    throttle
}

#[test]
fn the_probability_is_as_in_the_example() {
    for (accepts, expected) in [(50, "0.000000"), (40, "0.198020"), (0, "0.990099")] {
        let seen = Seen { requests: 100, accepts };
        assert_eq!(format!("{:.6}", ThrottleRule::default().probability(seen).value()), expected);
    }
    let live = after(100, 40);
    assert_eq!(live.seen(LEVEL, at(0)), Seen { requests: 100, accepts: 40 });
    assert_eq!(format!("{:.6}", live.probability(LEVEL, at(0)).value()), "0.198020");
}

#[test]
fn a_roll_refuses_below_the_probability_and_the_ceiling() {
    let rule = ThrottleRule::default();
    for (requests, accepts) in [(0, 0), (1, 0), (100, 50), (100, 40), (100, 0), (1_000, 100), (10, 90)] {
        let seen = Seen { requests, accepts };
        let probability = rule.probability(seen).value().min(rule.terms().ceiling.value());
        for value in (0..1_000).map(|step| f64::from(step) / 1_000.0) {
            assert_eq!(rule.refuses(seen, roll(value)), value < probability, "{seen:?} {value}");
        }
    }
}

#[test]
fn what_is_refused_here_counts_as_a_request() {
    let throttle = after(10, 0);
    assert!(throttle.admit(LEVEL, at(0), roll(0.0)).is_admit()); // the probe
    assert!(!throttle.admit(LEVEL, at(0), roll(0.0)).is_admit());
    assert_eq!(throttle.seen(LEVEL, at(0)).requests, 12);
}

#[test]
fn the_ceiling_lets_something_through_and_so_does_time() {
    let throttle = after(1_000, 0);
    assert!(throttle.admit(LEVEL, at(0), roll(0.95)).is_admit());
    assert!(throttle.admit(LEVEL, at(0), roll(0.94)).is_admit()); // the first that passes against the odds
    let refusal = throttle.admit(LEVEL, at(400), roll(0.94)).refusal().unwrap();
    assert_eq!(
        (refusal.reason, refusal.retry),
        (Reason::Throttled, Retry::After(Duration::from_millis(600)))
    );
    assert!(!throttle.admit(LEVEL, at(999), roll(0.94)).is_admit());
    assert!(throttle.admit(LEVEL, at(1_000), roll(0.94)).is_admit());
}

#[test]
fn a_caller_of_one_request_a_second_is_never_refused_here() {
    let throttle = Throttle::new(ThrottleRule::default(), at(0));
    for second in 0..600 {
        assert!(throttle.admit(LEVEL, at(second * 1_000), roll(0.0)).is_admit());
        throttle.answered(LEVEL, at(second * 1_000), Answer::Refused);
    }
}

#[test]
fn a_hundred_at_once_on_a_cold_start_are_not_mistaken_for_refused() {
    let throttle = Throttle::new(ThrottleRule::default(), at(0));
    assert!((0..100).all(|_| throttle.admit(LEVEL, at(0), roll(0.0)).is_admit()));
}

#[test]
fn errors_of_the_application_are_not_refusals() {
    for (outcome, answer) in [
        (Outcome::Ok, Answer::Accepted),
        (Outcome::Failed, Answer::Accepted),
        (Outcome::Abandoned, Answer::Accepted),
        (Outcome::Overloaded, Answer::Refused),
    ] {
        assert_eq!(Answer::from(outcome), answer);
    }
}

#[test]
fn one_criticality_does_not_suffer_for_another() {
    let throttle = after(100, 0);
    let other = Criticality::CriticalPlus;
    assert!((0..100).all(|_| throttle.admit(other, at(0), roll(0.0)).is_admit()));
}

#[test]
fn two_minutes_later_all_is_forgotten() {
    let throttle = after(100, 0);
    assert!(throttle.probability(LEVEL, at(114_999)).value() > 0.9);
    assert_eq!(throttle.probability(LEVEL, at(120_000)), Ratio::ZERO);
}

#[test]
fn a_clock_set_back_an_hour_blocks_nobody() {
    let hour = 3_600_000;
    let throttle = Throttle::new(ThrottleRule::default(), at(hour));
    for _ in 0..100 {
        let _sent = throttle.admit(LEVEL, at(hour), roll(0.999));
        throttle.answered(LEVEL, at(hour), Answer::Refused);
    }
    assert!((0..100).all(|_| throttle.admit(LEVEL, at(0), roll(0.0)).is_admit()));
}

#[test]
fn terms_without_sense_are_refused() {
    let field = |terms| ThrottleRule::new(terms).unwrap_err().field;
    let terms = ThrottleTerms::default();
    assert_eq!(field(ThrottleTerms { multiplier: 0.9, ..terms }), "multiplier");
    assert_eq!(field(ThrottleTerms { multiplier: f64::NAN, ..terms }), "multiplier");
    assert_eq!(field(ThrottleTerms { window: Duration::ZERO, ..terms }), "window");
    assert_eq!(field(ThrottleTerms { probe_every: Duration::ZERO, ..terms }), "probe_every");
    assert_eq!(ThrottleRule::new(terms), Ok(ThrottleRule::default()));
}
