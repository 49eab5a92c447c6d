//! What must hold for time-outs and deadlines whatever happens in whatever order.

use std::time::Duration;

use proptest::prelude::*;
use tidegate_core::timeout::{
    AdaptiveTimeout, DeadlineRule, DeadlineTerms, Deadlines, Latencies, Sample, SharedTimeout, TimeLeft,
    TimeoutRule, TimeoutTerms,
};
use tidegate_core::{Moment, Ratio};

const FLOOR: Duration = Duration::from_millis(10);
const CEILING: Duration = Duration::from_secs(2);

fn rule() -> TimeoutRule {
    TimeoutRule::new(TimeoutTerms {
        false_ratio: Ratio::new(0.01).expect("a ratio"),
        floor: FLOOR,
        ceiling: CEILING,
        min_samples: 100,
        padding: 2,
        interval: Duration::from_secs(1),
        intervals: 5,
    })
    .expect("terms that fit")
}

fn at(millis: u64) -> Moment {
    Moment::from_nanos(1_790_000_000_000_000_000).plus(Duration::from_millis(millis))
}

#[derive(Clone, Debug)]
enum Step {
    Succeed { millis: u64, times: u32 },
    TimeOut { times: u32 },
    Freeze,
    Thaw,
    Pass(u64),
    Jump(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (0_u64..5_000, 1_u32..300).prop_map(|(millis, times)| Step::Succeed { millis, times }),
        2 => (1_u32..300).prop_map(|times| Step::TimeOut { times }),
        1 => Just(Step::Freeze),
        1 => Just(Step::Thaw),
        6 => (0_u64..3_000).prop_map(Step::Pass),
        1 => (0_u64..10_000_000).prop_map(Step::Jump),
    ];
    prop::collection::vec(step, 1..80)
}

proptest! {
    /// Within its bounds always, unchanged while frozen, and never more than doubled by what was cut off.
    #[test]
    fn a_time_out_stays_within_its_bounds_and_still_while_frozen(steps in steps()) {
        let mut now = 5_000_000;
        let mut timeout = AdaptiveTimeout::new(rule(), at(now));
        let shared = SharedTimeout::new(rule(), at(now));
        for step in steps {
            let before = timeout.timeout();
            let was_frozen = timeout.is_frozen();
            let mut record = |sample, times| {
                for _ in 0..times {
                    timeout.record(at(now), sample);
                    shared.record(at(now), sample);
                }
            };
            match step {
                Step::Succeed { millis, times } => record(Sample::Succeeded(Duration::from_millis(millis)), times),
                Step::TimeOut { times } => record(Sample::TimedOut(before), times),
                Step::Freeze => {
                    timeout.freeze();
                    shared.freeze();
                }
                Step::Thaw => {
                    timeout.thaw(at(now));
                    shared.thaw(at(now));
                }
                Step::Pass(millis) => now += millis,
                Step::Jump(to) => now = to,
            }
            prop_assert!((FLOOR..=CEILING).contains(&timeout.timeout()));
            prop_assert!(!was_frozen || timeout.timeout() == before);
            prop_assert_eq!(shared.timeout(), timeout.timeout());
        }
    }

    /// Against the samples themselves, sorted.
    #[test]
    fn a_rank_is_found_to_within_a_32nd(nanos in prop::collection::vec(1_024_u64..2_000_000_000_000, 1..300), pick in any::<prop::sample::Index>()) {
        let mut latencies = Latencies::default();
        let mut sorted = nanos;
        sorted.iter().for_each(|nanos| latencies.record(Duration::from_nanos(*nanos)));
        sorted.sort_unstable();
        let rank = pick.index(sorted.len());
        let (exact, rank) = (Duration::from_nanos(sorted[rank]), u64::try_from(rank).unwrap() + 1);
        let found = Latencies::at_rank(&[&latencies], rank).unwrap();
        prop_assert!(found >= exact && (found - exact).as_nanos() * 32 <= exact.as_nanos() + 32 * 1_024);
        prop_assert_eq!(Latencies::at_rank(&[&latencies], latencies.count() + 1), None);
    }

    /// After enough calm samples, the share cut off is at most what was asked for, and padding aside not
    /// much less.
    #[test]
    fn the_accepted_share_is_cut_off(slow in 0_u32..60, millis in 15_u64..300) {
        let mut timeout = AdaptiveTimeout::new(rule(), at(0));
        let long = Duration::from_millis(millis * 5);
        for sample in 0..1_000 {
            let took = if sample < slow { long } else { Duration::from_millis(millis) };
            timeout.record(at(10_000), Sample::Succeeded(took));
        }
        timeout.record(at(20_000), Sample::Succeeded(Duration::from_millis(millis)));
        timeout.record(at(21_500), Sample::Succeeded(Duration::from_millis(millis)));
        let is_cut_off = timeout.timeout() < long;
        prop_assert_eq!(is_cut_off, slow <= 10 || long > CEILING);
    }

    #[test]
    fn nobody_is_given_more_than_the_caller_has_left(
        given in prop::option::of(0_u64..100_000),
        elapsed in 0_u64..100_000,
        (margin, cap) in (0_u64..1_000, 1_u64..60_000),
    ) {
        let ms = Duration::from_millis;
        let terms = DeadlineTerms { margin: ms(margin), cap: ms(cap), ..DeadlineTerms::default() };
        let rule = DeadlineRule::new(terms).unwrap();
        let remaining = rule.remaining(TimeLeft { given: given.map(ms), elapsed: ms(elapsed) });
        prop_assert!(remaining <= ms(cap));
        if let Some(given) = given {
            prop_assert_eq!(remaining, ms(given.saturating_sub(elapsed).saturating_sub(margin).min(cap)));
        }
    }

    /// Whenever a request is refused for its deadline, those of the last ten seconds are at most a fifth.
    #[test]
    fn the_guard_holds_in_every_window(steps in prop::collection::vec((0_u64..2_000, 0_u32..20, any::<bool>()), 1..100)) {
        let deadlines = Deadlines::new(DeadlineRule::default(), at(0));
        let (mut now, mut asked, mut refused) = (0, Vec::new(), Vec::new());
        for (wait, requests, is_late) in steps {
            now += wait;
            for _ in 0..requests {
                let given = if is_late { Duration::ZERO } else { Duration::from_secs(9) };
                let left = TimeLeft { given: Some(given), elapsed: Duration::ZERO };
                asked.push(now);
                if !deadlines.decide(left, at(now), Duration::from_secs(1)).is_admit() {
                    prop_assert!(is_late);
                    refused.push(now);
                    let recent = |moments: &[u64]| moments.iter().filter(|moment| now - **moment <= 10_000).count();
                    prop_assert!(recent(&refused) * 5 <= recent(&asked));
                }
            }
        }
    }
}
