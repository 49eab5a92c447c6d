//! What must hold for limits of what is in flight, whatever comes in whatever order.

use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use tidegate_core::concurrency::{
    Adaptive, Aimd, Bounds, Controller, Fixed, Gradient, Latency, Objective, Shares, Surroundings, Vegas,
    Why, Window, Windowing,
};
use tidegate_core::permit::{Outcome, Permit};
use tidegate_core::{Criticality, Moment, Ratio};

const OUTCOMES: [Outcome; 4] = [Outcome::Ok, Outcome::Failed, Outcome::Overloaded, Outcome::Abandoned];
const TARGET: Duration = Duration::from_millis(100);

fn bounds() -> impl Strategy<Value = Bounds> {
    (1_u32..60, 0_u32..300, 0_u32..300).prop_map(|(min, span, start)| {
        let bounds = Bounds::new(min..=min + span).expect("in order");
        bounds.starting_at(min + start.min(span)).expect("within")
    })
}

fn controller(algorithm: u8, bounds: Bounds) -> Controller {
    let objective = Objective::latency(TARGET).expect("not zero");
    match algorithm {
        0 => Controller::new(Fixed, bounds, objective),
        1 => Controller::new(Aimd::default(), bounds, objective),
        2 => Controller::new(Vegas, bounds, objective),
        _ => Controller::new(Gradient::default(), bounds, objective),
    }
}

fn shares() -> impl Strategy<Value = Shares> {
    prop::collection::vec(0_u32..26, 4).prop_map(|hundredths| {
        Criticality::ALL.into_iter().zip(hundredths).fold(Shares::NONE, |shares, (level, share)| {
            let share = Ratio::new(f64::from(share) / 100.0).expect("a share");
            shares.guarantee(level, share).expect("at most all")
        })
    })
}

/// Windows of every kind, sensible or not.
fn windows() -> impl Strategy<Value = Window> {
    let counts = (0_u32..2_000, 0_u32..200, 0_u32..50, 0_u32..200);
    let median = prop_oneof![0_u64..200_000, 9_000_u64..12_000, Just(u64::MAX / 1_000)];
    (counts, 0_u32..=4, median, 0_u32..400, 0_u64..5_000).prop_map(
        |(counts, left, micros, in_flight, millis)| {
            let median = Duration::from_micros(micros);
            let (succeeded, failed, overloaded, abandoned) = counts;
            Window {
                length: Duration::from_millis(millis),
                latency: (succeeded > 0).then_some(Latency { min: median / 2, median, mean: median }),
                succeeded,
                unheard: succeeded / 4 * left,
                failed,
                overloaded,
                abandoned,
                max_in_flight: in_flight,
                sum_in_flight: u64::from(in_flight) * u64::from(succeeded + failed + overloaded + abandoned),
                unloaded: None,
            }
        },
    )
}

#[derive(Clone, Copy, Debug)]
enum Act {
    Admit(usize),
    Complete(usize, usize),
    Drop(usize),
    Wait(u64),
    Bounds(Bounds),
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let act = prop_oneof![
        8 => (0_usize..4).prop_map(Act::Admit),
        5 => (any::<usize>(), 0_usize..4).prop_map(|(which, outcome)| Act::Complete(which, outcome)),
        2 => any::<usize>().prop_map(Act::Drop),
        3 => (0_u64..80).prop_map(Act::Wait),
        1 => bounds().prop_map(Act::Bounds),
    ];
    prop::collection::vec(act, 1..400)
}

/// A limiter with the permits it gave out, in a list of our own.
struct Held {
    limiter: Arc<Adaptive>,
    shares: Shares,
    permits: Vec<(Criticality, Permit)>,
    now: Moment,
}

impl Held {
    fn act(&mut self, act: Act) {
        match act {
            Act::Admit(level) => self.admit(Criticality::ALL[level]),
            Act::Complete(which, outcome) if !self.permits.is_empty() => {
                let (_, permit) = self.permits.swap_remove(which % self.permits.len());
                permit.complete(self.now, OUTCOMES[outcome]);
            }
            Act::Drop(which) if !self.permits.is_empty() => {
                drop(self.permits.swap_remove(which % self.permits.len()));
            }
            Act::Complete(..) | Act::Drop(_) => {}
            Act::Wait(millis) => self.now = self.now.plus(Duration::from_millis(millis)),
            Act::Bounds(bounds) => {
                let change = self.limiter.set_bounds(self.now, bounds);
                assert_eq!((change.to, change.why), (self.limiter.limit(), Why::Operator));
            }
        }
    }

    fn admit(&mut self, level: Criticality) {
        let (limit, in_flight) = (u64::from(self.limiter.limit()), self.limiter.in_flight());
        let guaranteed = u64::from(self.shares.guaranteed(level, self.limiter.limit()));
        let is_owed = in_flight < limit && self.limiter.in_flight_of(level) < guaranteed;
        // Each permit comes from a handle of its own, which is gone before the permit is.
        let handle = Arc::clone(&self.limiter);
        let verdict = handle.admit_shared(self.now, level);
        drop(handle);
        match verdict.admitted() {
            Some(permit) => {
                assert!(in_flight < limit, "{in_flight} of {limit} were taken");
                self.permits.push((level, permit));
            }
            None => assert!(!is_owed, "{level} was owed a place"),
        }
    }

    fn check(&self) {
        assert_eq!(self.limiter.in_flight(), self.permits.len() as u64);
        for level in Criticality::ALL {
            let held = self.permits.iter().filter(|(of, _)| *of == level).count();
            assert_eq!(self.limiter.in_flight_of(level), held as u64);
        }
    }
}

proptest! {
    #[test]
    fn places_are_exact_in_any_order_of_taking_completing_dropping_and_changing_bounds(
        algorithm in 0_u8..4, bounds in bounds(), shares in shares(), acts in acts(),
    ) {
        let windowing = Windowing::new(Duration::from_millis(100), 10).unwrap();
        let limiter = Adaptive::new(controller(algorithm, bounds), windowing, Moment::ORIGIN);
        let limiter = Arc::new(limiter.with_shares(shares));
        let mut held = Held { limiter, shares, permits: Vec::new(), now: Moment::ORIGIN };
        let mut bounds = bounds;
        for act in acts {
            if let Act::Bounds(new) = act {
                bounds = new;
            }
            held.act(act);
            held.check();
            prop_assert!((bounds.min()..=bounds.max()).contains(&held.limiter.limit()));
        }
        held.permits.clear();
        held.check();
    }

    #[test]
    fn reserved_places_always_fit_beside_what_others_took(
        shares in shares(), limit in 1_u32..200, acts in acts(),
    ) {
        // At a limit that stands still, every level can fill its share at any moment.
        let controller = controller(0, Bounds::exactly(limit).unwrap());
        let limiter = Adaptive::new(controller, Windowing::default(), Moment::ORIGIN).with_shares(shares);
        let mut permits = Vec::new();
        for act in acts {
            match act {
                Act::Admit(level) => {
                    permits.extend(limiter.admit(Moment::ORIGIN, Criticality::ALL[level]).admitted());
                }
                Act::Complete(which, _) | Act::Drop(which) if !permits.is_empty() => {
                    drop(permits.swap_remove(which % permits.len()));
                }
                Act::Complete(..) | Act::Drop(_) | Act::Wait(_) | Act::Bounds(_) => {}
            }
            let owed: u64 = Criticality::ALL.iter().map(|&level| {
                u64::from(shares.guaranteed(level, limit)).saturating_sub(limiter.in_flight_of(level))
            }).sum();
            prop_assert!(limiter.in_flight() + owed <= u64::from(limit));
        }
    }

    #[test]
    fn a_limit_moves_within_its_bounds_and_grows_only_for_a_reason(
        algorithm in 0_u8..4, bounds in bounds(), windows in prop::collection::vec(windows(), 1..80),
        utilisation in prop::option::of(0_u32..=100), is_dependency_slow in any::<bool>(),
    ) {
        let utilisation = utilisation.map(|share| Ratio::new(f64::from(share) / 100.0).unwrap());
        let surroundings = Surroundings { utilisation, is_dependency_slow };
        let mut limit = controller(algorithm, bounds);
        for window in windows {
            let before = limit.limit();
            let change = limit.update(&window, surroundings);
            prop_assert_eq!((change.from, change.to), (before, limit.limit()));
            prop_assert!((bounds.min()..=bounds.max()).contains(&change.to));
            if change.to > change.from {
                let is_idle = utilisation.is_some_and(|busy| busy.value() < 0.5);
                prop_assert!(
                    matches!(change.why, Why::SlowStart | Why::Headroom | Why::Probe)
                        || (change.why == Why::Dependency && is_idle && window.max_in_flight >= before),
                    "{change}"
                );
                prop_assert!(!window.is_unused(before) && !window.is_unproven() && !window.is_overloaded());
                prop_assert!(window.latency.is_some_and(|latency| latency.median <= TARGET));
                prop_assert!(!is_dependency_slow);
            }
            if change.to < change.from {
                prop_assert!(
                    matches!(change.why, Why::Queueing | Why::Overloaded | Why::Objective | Why::Throughput),
                    "{change}"
                );
                prop_assert!(window.is_overloaded() || !window.is_unused(before));
            }
            if algorithm == 0 {
                prop_assert_eq!(change.why, Why::Fixed);
            }
        }
    }

    #[test]
    fn the_same_windows_move_a_limit_the_same_way(
        algorithm in 0_u8..4, bounds in bounds(), windows in prop::collection::vec(windows(), 1..40),
    ) {
        let run = || {
            let mut limit = controller(algorithm, bounds);
            windows.iter().map(|window| limit.update(window, Surroundings::default())).collect::<Vec<_>>()
        };
        prop_assert_eq!(run(), run());
    }
}
