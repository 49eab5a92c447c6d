//! Published cases, and what must hold against dependencies that misbehave in known ways.
//!
//! A data file is a list of lines; `#` begins a comment.
//!
//! | line | means |
//! |---|---|
//! | `rule over 20s min 5 failure 0.5 open 5s probes 4` | a fresh breaker, without jitter and gradual return; `last 10` for a window of results |
//! | `at 6s` | from here on it is 6 s after the start |
//! | `results F S C` | so many requests are admitted, and fail, succeed or are cancelled at once |
//! | `begin 4` | so many requests are admitted and go on |
//! | `end-early S S` | and some of those end |
//! | `probes 4` | exactly so many probes are admitted |
//! | `end F S` | and end |
//! | `refused`, `refused retry 2s` | a request is refused, and told when to come back |
//! | `state open` | the breaker is there |
#![expect(clippy::panic, reason = "a line that cannot be read must fail the test, also from a helper")]

#[path = "support/random.rs"]
mod random;

use std::collections::VecDeque;
use std::time::Duration;

use random::Dice;
use tidegate_core::breaker::{
    Breaker, BreakerRule, BreakerTerms, OpenTime, Pass, Probing, SharedBreaker, State, Switch, Window,
};
use tidegate_core::permit::Outcome;
use tidegate_core::{Moment, Ratio, Retry, Roll, Verdict};

const START: Moment = Moment::from_nanos(1_790_000_000_000_000_000);

#[test]
fn published_cases_hold() {
    let mut case = Case::new(BreakerTerms::default());
    for (number, line) in include_str!("data/breaker.txt").lines().enumerate() {
        let words: Vec<_> = line.split_whitespace().take_while(|word| !word.starts_with('#')).collect();
        if let [command, arguments @ ..] = &words[..] {
            case.number = number + 1;
            case.run(command, arguments);
        }
    }
}

struct Case {
    breaker: Breaker,
    now: Moment,
    early: VecDeque<Pass>,
    probes: VecDeque<Pass>,
    number: usize,
}

impl Case {
    fn new(terms: BreakerTerms) -> Self {
        let breaker = Breaker::new(BreakerRule::new(terms).expect("terms that fit"), START);
        Self { breaker, now: START, early: VecDeque::new(), probes: VecDeque::new(), number: 0 }
    }

    fn run(&mut self, command: &str, arguments: &[&str]) {
        let number = self.number;
        match command {
            "rule" => *self = Self::new(terms(arguments)),
            "at" => self.now = START.plus(seconds(arguments[0])),
            "results" => {
                for word in arguments {
                    let pass = self.admit();
                    self.breaker.record(pass, self.now, outcome(word));
                }
            }
            "begin" => (0..count(arguments[0])).for_each(|_| {
                let pass = self.admit();
                self.early.push_back(pass);
            }),
            "probes" => (0..count(arguments[0])).for_each(|_| {
                let pass = self.admit();
                self.probes.push_back(pass);
            }),
            "end" => end(&mut self.breaker, &mut self.probes, self.now, arguments),
            "end-early" => end(&mut self.breaker, &mut self.early, self.now, arguments),
            "refused" => {
                let refusal = self.breaker.admit(self.now, roll(0.0)).refusal().expect("a refusal");
                if let ["retry", after] = arguments {
                    assert_eq!(refusal.retry, Retry::After(seconds(after)), "line {number}");
                }
            }
            "state" => assert_eq!(self.breaker.state().as_str(), arguments[0], "line {number}"),
            other => panic!("line {number}: unknown word `{other}`"),
        }
    }

    fn admit(&mut self) -> Pass {
        let verdict = self.breaker.admit(self.now, roll(0.0));
        verdict.admitted().unwrap_or_else(|| panic!("line {}: refused", self.number))
    }
}

fn end(breaker: &mut Breaker, passes: &mut VecDeque<Pass>, now: Moment, outcomes: &[&str]) {
    for word in outcomes {
        breaker.record(passes.pop_front().expect("as many ends as begins"), now, outcome(word));
    }
}

fn terms(words: &[&str]) -> BreakerTerms {
    let mut terms = BreakerTerms { recovery: None, ..BreakerTerms::default() };
    terms.open.jitter = Ratio::ZERO;
    for pair in words.chunks(2) {
        match pair {
            ["over", window] => terms.window = Window::Over(seconds(window)),
            ["last", results] => terms.window = Window::Last(count(results)),
            ["min", requests] => terms.min_requests = count(requests),
            ["failure", ratio] => {
                terms.failure_ratio = Ratio::new(ratio.parse().expect("a number")).expect("a ratio")
            }
            ["open", first] => terms.open = OpenTime { first: seconds(first), ..terms.open },
            ["probes", probes] => terms.probing = Probing { probes: count(probes), ..terms.probing },
            other => panic!("unknown words {other:?}"),
        }
    }
    terms
}

fn outcome(word: &str) -> Outcome {
    match word {
        "S" => Outcome::Ok,
        "F" => Outcome::Failed,
        "C" => Outcome::Abandoned,
        other => panic!("no outcome: `{other}`"),
    }
}

fn count(word: &str) -> u32 {
    word.parse().expect("a whole number")
}

fn seconds(word: &str) -> Duration {
    Duration::from_secs(word.strip_suffix('s').expect("seconds").parse().expect("a whole number"))
}

fn roll(value: f64) -> Roll {
    Roll::new(value).expect("from 0 to 1")
}

fn at(millis: u64) -> Moment {
    START.plus(Duration::from_millis(millis))
}

/// Scenario D2. A public report: a threshold of 10 % made a dependency at 85 % success one at 0 %.
#[test]
fn a_dependency_that_answers_four_in_five_is_not_cut_off_with_the_defaults() {
    for (success, every) in [(0.8, 200), (0.8, 10), (0.8, 1), (0.9, 200), (0.9, 10)] {
        let mut dice = Dice(7);
        let mut breaker = Breaker::new(BreakerRule::default(), START);
        for request in 0..200_000 {
            let now = at(request * every);
            let pass = breaker.admit(now, roll(dice.number())).admitted().expect("it is never open");
            let is_ok = dice.number() < success;
            breaker.record(pass, now, if is_ok { Outcome::Ok } else { Outcome::Failed });
        }
        assert_eq!(breaker.trips(), 0);
    }
}

/// Scenario D3. A public report: any number of probes against an upstream that hangs sent 17 times the
/// traffic.
#[test]
fn an_upstream_that_hangs_gets_a_few_probes_and_no_more() {
    let mut dice = Dice(11);
    let mut breaker = Breaker::new(BreakerRule::default(), START);
    let time_out = 30_000;
    let mut running: VecDeque<(u64, Pass)> = VecDeque::new();
    let mut sent_after_trip = 0;
    for now in (0..600_000).step_by(10) {
        while running.front().is_some_and(|(began, _)| began + time_out <= now) {
            let (_, pass) = running.pop_front().unwrap();
            breaker.record(pass, at(now), Outcome::Failed);
        }
        if let Verdict::Admit(pass) = breaker.admit(at(now), roll(dice.number())) {
            sent_after_trip += u32::from(breaker.trips() > 0);
            running.push_back((now, pass));
        }
        // Those from before the trip have been given up by then. A round of probes fails after 10 s, and still
        // holds its places until it is given up.
        assert!(breaker.trips() == 0 || now < 61_000 || running.len() <= 4, "{} run", running.len());
    }
    assert_ne!(breaker.state(), State::Closed);
    assert!(sent_after_trip <= 4 * 16, "{sent_after_trip} of 57 000 requests were sent");
}

/// Scenario D4. The dependency comes back with 30 % of its capacity and has all of it after a minute.
#[test]
fn traffic_comes_back_with_the_dependency_and_trips_it_at_most_twice() {
    let mut dice = Dice(13);
    let mut breaker = Breaker::new(BreakerRule::default(), START);
    let per_second = 200;
    let (mut trips_back, mut closed_at, mut served) = (0, None, 0);
    for second in 0_u64..180 {
        // Down for 30 s, then a ramp.
        let capacity = match second {
            0..30 => 0,
            30..90 => per_second * 3 / 10 + (second - 30) * per_second * 7 / 600,
            _ => per_second,
        };
        let mut left = capacity;
        let trips = breaker.trips();
        for request in 0..per_second {
            let now = at(second * 1_000 + request * 1_000 / per_second);
            let Verdict::Admit(pass) = breaker.admit(now, roll(dice.number())) else { continue };
            // Capacity is granted evenly over the second.
            let is_ok = left > 0 && capacity - left <= capacity * (request + 1) / per_second;
            left -= u64::from(is_ok);
            served += u64::from(is_ok);
            breaker.record(pass, now, if is_ok { Outcome::Ok } else { Outcome::Failed });
        }
        trips_back += if second >= 30 { breaker.trips() - trips } else { 0 };
        if breaker.state() == State::Closed && second >= 30 && closed_at.is_none() {
            closed_at = Some(second);
        }
    }
    assert!(trips_back <= 2, "tripped {trips_back} times on the way back");
    assert!(closed_at.is_some_and(|second| second <= 100), "closed at {closed_at:?}");
    assert!(served > 90 * per_second, "{served} served");
}

/// A thousand instances that tripped together do not probe together.
#[test]
fn instances_that_tripped_together_probe_apart() {
    let mut dice = Dice(17);
    let mut waits: Vec<_> = (0..1_000)
        .map(|_| {
            let mut breaker = Breaker::new(BreakerRule::default(), START);
            for _ in 0..50 {
                let pass = breaker.admit(START, roll(0.0)).admitted().unwrap();
                breaker.record(pass, START, Outcome::Failed);
            }
            match breaker.admit(START, roll(dice.number())).refusal().unwrap().retry {
                Retry::After(wait) => wait,
                Retry::Never => panic!("it opens again"),
            }
        })
        .collect();
    waits.sort_unstable();
    assert!(waits[0] >= Duration::from_millis(4_500) && waits[999] <= Duration::from_millis(5_500));
    let busiest = waits.chunk_by(|a, b| a.as_millis() / 100 == b.as_millis() / 100).map(<[_]>::len).max();
    assert!(busiest.unwrap() < 200, "{busiest:?} of 1000 within a tenth of a second; even are 100");
}

#[test]
fn a_shared_breaker_answers_as_the_plain_one_and_its_permits_come_back() {
    let rule = BreakerRule::new(terms(&["min", "5", "open", "5s", "probes", "2"])).unwrap();
    let breaker = std::sync::Arc::new(SharedBreaker::new(rule, START));
    for _ in 0..4 {
        breaker.admit_permit(START, roll(0.5)).admitted().unwrap().complete(START, Outcome::Failed);
    }
    drop(breaker.admit_permit(START, roll(0.5)));
    assert_eq!((breaker.state(), breaker.counts(START).requests), (State::Closed, 4));
    let pass = breaker.admit(START, roll(0.5)).admitted().unwrap();
    breaker.record(pass, START, Outcome::Failed);
    assert_eq!(breaker.state(), State::Open);
    for millis in [0, 1, 4_999] {
        let refusal = breaker.admit(at(millis), roll(0.5)).refusal().unwrap();
        assert_eq!(refusal.retry, Retry::After(Duration::from_millis(5_000 - millis)));
    }
    let probes = [(); 2].map(|()| breaker.admit_permit(at(5_000), roll(0.5)).admitted().unwrap());
    assert!(!breaker.admit(at(5_000), roll(0.5)).is_admit());
    drop(probes);
    for _ in 0..2 {
        breaker.admit_permit(at(5_000), roll(0.5)).admitted().unwrap().complete(at(5_001), Outcome::Ok);
    }
    assert_eq!((breaker.state(), breaker.trips()), (State::Closed, 1));
    breaker.set_switch(Switch::ForcedOpen);
    assert!(!breaker.admit(at(6_000), roll(0.5)).is_admit());
    breaker.set_switch(Switch::Disabled);
    assert!(breaker.admit(at(6_000), roll(0.5)).is_admit());
}
