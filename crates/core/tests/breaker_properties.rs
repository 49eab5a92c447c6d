//! What must hold for a breaker whatever happens in whatever order.

use std::time::Duration;

use proptest::prelude::*;
use tidegate_core::breaker::{
    Breaker, BreakerRule, BreakerTerms, OpenTime, Pass, Probing, SharedBreaker, State, Window,
};
use tidegate_core::permit::Outcome;
use tidegate_core::{Moment, Ratio, Retry, Roll, Verdict};

const PROBES: u32 = 3;
const LIMIT: u64 = 700;
/// So many times the limit a probe that has not come back holds its place.
const KEPT: u64 = 10;
const LONGEST: u64 = 2_000;

fn rule(window: Window) -> BreakerRule {
    BreakerRule::new(BreakerTerms {
        window,
        min_requests: 3,
        open: OpenTime {
            first: Duration::from_millis(500),
            growth: 2,
            longest: Duration::from_millis(LONGEST),
            jitter: Ratio::new(0.1).expect("a ratio"),
        },
        probing: Probing { probes: PROBES, limit: Duration::from_millis(LIMIT) },
        ..BreakerTerms::default()
    })
    .expect("terms that fit")
}

#[derive(Clone, Debug)]
enum Step {
    Ask(f64),
    End { which: usize, outcome: Outcome },
    Pass(u64),
    Jump(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let outcomes = prop_oneof![Just(Outcome::Ok), Just(Outcome::Failed), Just(Outcome::Abandoned)];
    let step = prop_oneof![
        4 => (0.0..1.0_f64).prop_map(Step::Ask),
        3 => (any::<prop::sample::Index>(), outcomes)
            .prop_map(|(index, outcome)| Step::End { which: index.index(1_000), outcome }),
        2 => (0_u64..900).prop_map(Step::Pass),
        1 => (0_u64..100_000).prop_map(Step::Jump),
    ];
    prop::collection::vec(step, 1..200)
}

fn windows() -> impl Strategy<Value = Window> {
    prop_oneof![Just(Window::Last(5)), Just(Window::Over(Duration::from_secs(1)))]
}

fn at(millis: u64) -> Moment {
    Moment::from_nanos(millis * 1_000_000)
}

proptest! {
    /// Also when the clock jumps: ahead, which ends probes' time, or back, which starts it again.
    #[test]
    fn probes_in_flight_are_never_more_than_allowed(window in windows(), steps in steps()) {
        let mut breaker = Breaker::new(rule(window), at(1_000_000));
        let mut now = 1_000_000;
        let mut running: Vec<(bool, Pass)> = Vec::new();
        // Probes admitted in this round of half-open, without the cancelled ones.
        let mut probes = 0;
        for step in steps {
            match step {
                Step::Ask(roll) => {
                    let was = breaker.state();
                    let verdict = breaker.admit(at(now), Roll::new(roll).unwrap());
                    let is_probe = breaker.state() == State::HalfOpen;
                    if was != State::HalfOpen {
                        probes = 0;
                        running.iter_mut().for_each(|(is_probe, _)| *is_probe = false);
                    }
                    if let Verdict::Admit(pass) = verdict {
                        probes += u32::from(is_probe);
                        running.push((is_probe, pass));
                    }
                    prop_assert!(probes <= PROBES);
                }
                Step::End { which, outcome } => {
                    if running.is_empty() { continue; }
                    let (is_probe, pass) = running.swap_remove(which % running.len());
                    let was = breaker.state();
                    breaker.record(pass, at(now), outcome);
                    let stays = was == State::HalfOpen && breaker.state() == State::HalfOpen;
                    probes -= u32::from(is_probe && stays && outcome == Outcome::Abandoned && probes > 0);
                }
                Step::Pass(millis) => now += millis,
                Step::Jump(to) => now = 950_000 + to,
            }
        }
    }

    /// Also those of earlier rounds, if every attempt is given up within ten times the probes' limit.
    #[test]
    fn probes_on_their_way_are_never_more_than_allowed(time_out in 1..KEPT * LIMIT, steps in steps()) {
        let mut breaker = Breaker::new(rule(Window::Last(5)), at(0));
        let (mut now, mut running): (u64, Vec<(u64, bool, Pass)>) = (0, Vec::new());
        for step in steps {
            for (_, _, pass) in running.extract_if(.., |(began, ..)| *began + time_out <= now) {
                breaker.record(pass, at(now), Outcome::Failed);
            }
            match step {
                Step::Ask(roll) => {
                    let verdict = breaker.admit(at(now), Roll::new(roll).unwrap());
                    let is_probe = breaker.state() == State::HalfOpen;
                    running.extend(verdict.admitted().map(|pass| (now, is_probe, pass)));
                    prop_assert!(running.iter().filter(|(_, is_probe, _)| *is_probe).count() <= PROBES as usize);
                }
                Step::End { which, outcome } if !running.is_empty() => {
                    let (_, _, pass) = running.swap_remove(which % running.len());
                    breaker.record(pass, at(now), outcome);
                }
                Step::End { .. } => {}
                Step::Pass(millis) => now += millis,
                // No clock set back here, and no pause without anybody's time-out.
                Step::Jump(_) => now += 1,
            }
        }
    }

    /// Nothing blocks for ever: whatever happened, and wherever the clock went, a request passes within
    /// the longest wait and the time that probes may hold their places, if nobody else comes.
    #[test]
    fn a_breaker_lets_somebody_through_in_time(window in windows(), steps in steps()) {
        let mut breaker = Breaker::new(rule(window), at(1_000_000));
        let (mut now, mut running) = (1_000_000, Vec::new());
        for step in steps {
            match step {
                Step::Ask(roll) => running.extend(breaker.admit(at(now), Roll::new(roll).unwrap()).admitted()),
                Step::End { which, outcome } if !running.is_empty() => {
                    breaker.record(running.swap_remove(which % running.len()), at(now), outcome);
                }
                Step::End { .. } => {}
                Step::Pass(millis) => now += millis,
                Step::Jump(to) => now = 950_000 + to,
            }
        }
        // Half-open with all probes hung, then open at its longest with the most jitter, then until the hung
        // ones are taken for lost.
        let bound = now + KEPT * LIMIT + LONGEST * 11 / 10 + 10;
        let mut is_through = |now| breaker.admit(at(now), Roll::new(0.0).unwrap()).is_admit();
        prop_assert!((now..=bound).step_by(5).any(&mut is_through));
    }

    #[test]
    fn results_from_another_time_change_nothing(outcomes in prop::collection::vec(any::<bool>(), 0..40)) {
        let mut breaker = Breaker::new(rule(Window::Last(5)), at(0));
        let roll = Roll::new(0.0).unwrap();
        let early: Vec<_> = outcomes.iter().map(|_| breaker.admit(at(0), roll).admitted().unwrap()).collect();
        for _ in 0..3 {
            let pass = breaker.admit(at(0), roll).admitted().unwrap();
            breaker.record(pass, at(0), Outcome::Failed);
        }
        let refused = breaker.admit(at(0), roll).refusal();
        for (pass, is_ok) in early.into_iter().zip(outcomes) {
            breaker.record(pass, at(100), if is_ok { Outcome::Ok } else { Outcome::Failed });
        }
        prop_assert_eq!(breaker.admit(at(0), roll).refusal(), refused);
        prop_assert_eq!(breaker.trips(), 1);
    }

    #[test]
    fn a_retry_is_exact_while_open(roll in 0.0..1.0_f64, early in 1_u64..400) {
        let mut breaker = Breaker::new(rule(Window::Last(5)), at(0));
        let zero = Roll::new(0.0).unwrap();
        for _ in 0..3 {
            let pass = breaker.admit(at(0), zero).admitted().unwrap();
            breaker.record(pass, at(0), Outcome::Failed);
        }
        let refusal = breaker.admit(at(0), Roll::new(roll).unwrap()).refusal().unwrap();
        let Retry::After(after) = refusal.retry else { panic!("it opens again") };
        let due = at(0).plus(after);
        let just_before = Moment::from_nanos(due.nanos() - early);
        prop_assert!(!breaker.admit(just_before, zero).is_admit());
        prop_assert!(breaker.admit(due, zero).is_admit());
    }

    #[test]
    fn a_shared_breaker_answers_as_the_plain_one(window in windows(), steps in steps()) {
        let mut plain = Breaker::new(rule(window), at(1_000_000));
        let shared = SharedBreaker::new(rule(window), at(1_000_000));
        let (mut now, mut running) = (1_000_000, Vec::new());
        for step in steps {
            match step {
                Step::Ask(roll) => {
                    let roll = Roll::new(roll).unwrap();
                    match (plain.admit(at(now), roll), shared.admit(at(now), roll)) {
                        (Verdict::Admit(one), Verdict::Admit(other)) => running.push((one, other)),
                        (Verdict::Refuse(one), Verdict::Refuse(other)) => prop_assert_eq!(one, other),
                        (one, other) => prop_assert!(false, "{:?} against {:?}", one, other),
                    }
                }
                Step::End { which, outcome } if !running.is_empty() => {
                    let (one, other) = running.swap_remove(which % running.len());
                    plain.record(one, at(now), outcome);
                    shared.record(other, at(now), outcome);
                }
                Step::End { .. } => {}
                Step::Pass(millis) => now += millis,
                Step::Jump(to) => now = 950_000 + to,
            }
            prop_assert_eq!(plain.state(), shared.state());
        }
    }
}
