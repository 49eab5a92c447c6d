//! What must hold for every sequence of ticks and requests, whoever moves the edge.

use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use tidegate_core::permit::Permit;
use tidegate_core::shed::{Cohort, Edge, Epoch, Flow, Reserve, ReservedPlaces, SlowRamp, Steering, Tick};
use tidegate_core::{Criticality, Moment, Ratio};

fn share() -> impl Strategy<Value = Ratio> {
    (0.0..=1.0).prop_filter_map("a share", |value| Ratio::new(value).ok())
}

fn flows() -> impl Strategy<Value = Flow> {
    let count = prop_oneof![Just(0_u64), 0..50_u64, 0..100_000_u64, Just(u64::MAX)];
    (count.clone(), count.clone(), count, share()).prop_map(|(entered, served, waiting, busy)| Flow {
        entered,
        served,
        waiting,
        busy,
    })
}

/// Pressures that fall with criticality, as rising thresholds make them.
fn pressures() -> impl Strategy<Value = [Option<f64>; 4]> {
    let values = prop::array::uniform4(prop_oneof![0.0..3.0, Just(0.0), Just(1e300)]);
    prop::option::of(values).prop_map(|values| match values {
        None => [None; 4],
        Some(mut values) => {
            values.sort_by(|one: &f64, other| other.total_cmp(one));
            values.map(Some)
        }
    })
}

fn ticks() -> impl Strategy<Value = Vec<Tick>> {
    let arrived = prop::array::uniform4(prop_oneof![Just(0_u64), 0..2_000_u64, Just(u64::MAX)]);
    let tick = (arrived, prop::option::of(flows()), pressures())
        .prop_map(|(arrived, flow, pressures)| Tick { arrived, flow, pressures });
    prop::collection::vec(tick, 1..80)
}

/// Asserts that a level is refused, in part or entirely, only when all lower ones are refused entirely.
fn assert_strict(edge: Edge) {
    for pair in Criticality::ALL.windows(2) {
        assert!(edge.refused(pair[1]) <= Ratio::ZERO || edge.refused(pair[0]) >= Ratio::ONE, "{edge:?}");
    }
}

proptest! {
    #[test]
    fn strict_order_holds_wherever_the_edge_is_steered(ticks in ticks()) {
        let mut steering = Steering::default();
        for tick in &ticks {
            let edge = steering.tick(tick);
            assert_strict(edge);
            prop_assert_eq!(edge, steering.edge());
            prop_assert!(edge.refused(Criticality::CriticalPlus).value() <= 0.9, "a tenth always passes");
        }
    }

    #[test]
    fn what_is_not_pressed_is_never_refused_more(ticks in ticks()) {
        let mut steering = Steering::default();
        for tick in &ticks {
            let before = steering.edge();
            let after = steering.tick(tick);
            let is_pressed = |level: Criticality| {
                tick.flow.is_some_and(|flow| flow.error() > 0.0)
                    || tick.pressures[level.index()].is_some_and(|pressure| pressure > 1.0)
            };
            for level in Criticality::ALL {
                let rose = after.refused(level) > before.refused(level);
                prop_assert!(!rose || is_pressed(level), "{:?} {:?}", before, after);
            }
        }
    }

    #[test]
    fn a_user_meets_the_same_answer_everywhere_and_whoever_passes_passes_at_every_lower_edge(
        user in prop::collection::vec(any::<u8>(), 0..20), hour in any::<u64>(), ranks in 0..=512_u16,
    ) {
        let cohort = Cohort::of(&user, Epoch(hour));
        prop_assert_eq!(cohort, Cohort::of(&user.clone(), Epoch(hour)));
        let edge = Edge::new(ranks).unwrap();
        for level in Criticality::ALL {
            if edge.admits(level, cohort) {
                prop_assert!((0..ranks).all(|lower| Edge::new(lower).unwrap().admits(level, cohort)));
                prop_assert!(Criticality::ALL.iter().all(|above| *above < level || edge.admits(*above, cohort)));
            }
        }
    }

    #[test]
    fn the_ramp_never_moves_faster_than_a_level_in_its_time(
        steps in prop::collection::vec((0..60_000_u64, share()), 1..200),
    ) {
        let mut ramp = SlowRamp::default();
        let mut now = Moment::ORIGIN;
        let mut before = ramp.tell(now, Ratio::ZERO);
        for (millis, busy) in steps {
            now = now.plus(Duration::from_millis(millis));
            let edge = ramp.tell(now, busy);
            assert_strict(edge);
            let moved = u64::from(edge.ranks().abs_diff(before.ranks()));
            prop_assert!(moved <= millis.min(28_000) * 128 / 120_000 + 1, "{} ranks in {} ms", moved, millis);
            before = edge;
        }
    }

    #[test]
    fn places_are_never_more_than_there_are_and_the_reserve_is_kept(
        capacity in 2..60_u32, kept in share(), steps in prop::collection::vec((0..4_usize, any::<bool>()), 1..300),
    ) {
        let Ok(reserve) = Reserve::new(capacity, kept) else { return Ok(()) };
        let places = Arc::new(ReservedPlaces::new(reserve));
        let mut held: Vec<Permit> = Vec::new();
        for (level, is_release) in steps {
            if is_release {
                held.pop();
                continue;
            }
            let (level, taken) = (Criticality::ALL[level], held.len() as u64);
            let admitted = places.admit(level, Moment::ORIGIN).admitted();
            prop_assert_eq!(admitted.is_some(), reserve.decide(level, taken).is_admit());
            held.extend(admitted);
            prop_assert_eq!(places.in_flight(), held.len() as u64);
            prop_assert!(held.len() <= capacity as usize);
            let open = reserve.ceiling(Criticality::Sheddable);
            prop_assert!(level >= Criticality::Critical || taken < open || places.in_flight() == taken);
            // The share as people write it, in whole places: never less than asked for.
            prop_assert!((u64::from(capacity) - open) as f64 >= f64::from(capacity) * kept.value() - 1e-3);
        }
    }
}
