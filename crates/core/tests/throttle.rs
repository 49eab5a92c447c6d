//! The throttle against the published formula, and against services that refuse.

use std::time::Duration;

use tidegate_core::throttle::{Answer, Seen, Throttle, ThrottleRule, ThrottleTerms};
use tidegate_core::{Criticality, Moment, Ratio, Roll};

const START: Moment = Moment::from_nanos(1_790_000_000_000_000_000);
const LEVEL: Criticality = Criticality::Critical;

/// The numbers of each line that is not a comment.
fn rows<const N: usize>(text: &str) -> impl Iterator<Item = [f64; N]> {
    text.lines().filter(|line| !line.starts_with('#')).map(|line| {
        let numbers: Vec<f64> = line.split_whitespace().map(|word| word.parse().expect("a number")).collect();
        numbers.try_into().expect("as many numbers as columns")
    })
}

fn rule(multiplier: f64) -> ThrottleRule {
    ThrottleRule::new(ThrottleTerms { multiplier, ..ThrottleTerms::default() }).expect("a multiplier")
}

#[test]
fn the_probability_is_as_published() {
    for [requests, accepts, multiplier, expected] in rows(include_str!("data/throttle.txt")) {
        let count = |number: f64| format!("{number}").parse().unwrap();
        let seen = Seen { requests: count(requests), accepts: count(accepts) };
        let probability = rule(multiplier).probability(seen).value();
        assert_eq!(format!("{probability:.6}"), format!("{expected:.6}"), "{seen:?}");
    }
}

/// Rolls that are the same in every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> Roll {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        Roll::new(((mixed ^ (mixed >> 31)) >> 11) as f64 / (1_u64 << 53) as f64).expect("below 1")
    }
}

/// What became of the requests of one stretch of time.
#[derive(Clone, Copy, Default)]
struct Sum {
    offered: f64,
    sent: f64,
    accepted: f64,
}

/// A service that accepts `capacity` a second, and a caller that offers `offered` a second.
struct World {
    throttle: Throttle,
    dice: Dice,
    second: u32,
}

impl World {
    fn new(rule: ThrottleRule) -> Self {
        Self { throttle: Throttle::new(rule, START), dice: Dice(3), second: 0 }
    }

    fn run(&mut self, seconds: u32, offered: u32, capacity: u32) -> Sum {
        let mut sum = Sum::default();
        for _ in 0..seconds {
            let mut accepted = 0;
            for request in 0..offered {
                let within = Duration::from_secs(1) * request / offered;
                let now = START.plus(Duration::from_secs(self.second.into()) + within);
                sum.offered += 1.0;
                if !self.throttle.admit(LEVEL, now, self.dice.roll()).is_admit() {
                    continue;
                }
                // Capacity is granted evenly over the second.
                let is_accepted = accepted < (capacity * (request + 1)).div_ceil(offered).min(capacity);
                accepted += u32::from(is_accepted);
                sum.sent += 1.0;
                sum.accepted += f64::from(u8::from(is_accepted));
                let answer = if is_accepted { Answer::Accepted } else { Answer::Refused };
                self.throttle.answered(LEVEL, now, answer);
            }
            self.second += 1;
        }
        sum
    }
}

#[test]
fn in_the_long_run_about_k_times_as_much_is_sent_as_is_accepted() {
    for row in rows(include_str!("data/throttle_steady.txt")) {
        let [multiplier, overload, refused_here, sent, refused_there] = row;
        let mut world = World::new(rule(multiplier));
        let offered: u32 = format!("{}", overload * 100.0).parse().unwrap();
        world.run(240, offered, 100);
        let sum = world.run(240, offered, 100);
        let close = |found: f64, expected: f64| (found - expected).abs() < 0.03 + 0.03 * expected;
        let found =
            [1.0 - sum.sent / sum.offered, sum.sent / sum.accepted, (sum.sent - sum.accepted) / sum.accepted];
        for (found, expected) in found.into_iter().zip([refused_here, sent, refused_there]) {
            assert!(close(found, expected), "{row:?}: {found:.3} instead of {expected}");
        }
        assert!(sum.accepted > 0.95 * 240.0 * 100.0, "{row:?}: the capacity is used");
    }
}

#[test]
fn below_the_capacity_nothing_is_refused_here() {
    let sum = World::new(ThrottleRule::default()).run(600, 70, 100);
    assert!(sum.sent >= sum.offered && sum.accepted >= sum.offered);
}

/// Others approach 1 while nothing is accepted, and then never notice that the service is back.
#[test]
fn a_service_that_comes_back_is_noticed_within_the_window() {
    for offered in [5, 50, 500] {
        let mut world = World::new(ThrottleRule::default());
        world.run(60, offered, offered);
        world.run(120, offered, 0);
        let down = world.run(480, offered, 0);
        // The share beyond the ceiling, and one a second.
        assert!(down.sent <= 0.06 * down.offered + 480.0, "{} of {} sent", down.sent, down.offered);
        world.run(120, offered, offered);
        let back = world.run(60, offered, offered);
        assert!(
            back.accepted > 0.95 * back.offered,
            "{} of {} after two minutes",
            back.accepted,
            back.offered
        );
    }
}

#[test]
fn the_ceiling_is_what_is_refused_at_most() {
    let terms = ThrottleTerms { ceiling: Ratio::new(0.75).unwrap(), ..ThrottleTerms::default() };
    let mut world = World::new(ThrottleRule::new(terms).unwrap());
    world.run(120, 100, 0);
    let sum = world.run(120, 100, 0);
    let sent = sum.sent / sum.offered;
    assert!((0.24..0.28).contains(&sent), "{sent}");
}
