//! Single answers: when to come again, what a refund restores, what many small ones come to.

use std::time::Duration;

use proptest::prelude::*;
use tidegate_core::keyed::{DueTable, MaxKeys};
use tidegate_core::rate::TokenBucket;
use tidegate_core::{Cost, Moment, Quota, Reason, Retry, Verdict};

use crate::draw::{promises, quotas, share, start, traffic};

proptest! {
    #[test]
    fn retry_is_exact_to_the_nanosecond(promise in promises(), traffic in traffic()) {
        for key in &mut promise.kept() {
            let mut now = start();
            for &(step, cost) in &traffic {
                now = now.plus(promise.time(step) / 8);
                let cost = promise.cost(cost);
                let Verdict::Refuse(refusal) = key.decide(now, cost) else { continue };
                let Retry::After(wait) = refusal.retry else { panic!("{cost} can fit") };
                prop_assert!(!wait.is_zero());
                now = now.plus(wait);
                let too_early = Moment::from_nanos(now.nanos() - 1);
                prop_assert!(!key.peek(too_early, cost).is_admit(), "admitted a nanosecond before {wait:?}");
                prop_assert!(key.peek(now, cost).is_admit(), "refused again after {wait:?}");
            }
        }
    }

    #[test]
    fn n_at_once_equal_n_by_one(promise in promises(), count in 1_u32..50, before in 0_u64..1_000) {
        for (mut by_one, mut at_once) in promise.kept().into_iter().zip(promise.kept()).take(2) {
            for key in [&mut by_one, &mut at_once] {
                let _ = key.decide(start(), promise.cost(before));
            }
            let single = (0..count).all(|_| by_one.decide(start(), Cost::ONE).is_admit());
            let together = at_once.decide(start(), Cost::of(count));
            let is_same = by_one.usage(start()) == at_once.usage(start());
            let (together, fits) = match together {
                Verdict::Admit(_) => (true, true),
                Verdict::Refuse(refusal) => (false, refusal.retry != Retry::Never),
            };
            // Whole units are whole grains as long as the clock grants less than one a nanosecond.
            let is_whole = u128::from(promise.quota.amount().micros()) <= promise.quota.window().as_nanos() * 1_000;
            match promise.borrowing {
                None if is_whole => prop_assert!(single == together && (!together || is_same)),
                None => prop_assert!(together || !single),
                // One that borrows does not count against itself, and n by one do against each other.
                Some(_) => {
                    prop_assert!(together || !single || !fits);
                    prop_assert!(!(is_whole && single && together) || is_same);
                }
            }
        }
    }

    #[test]
    fn n_by_one_take_of_a_table_what_they_cost_and_60_billionths_of_the_burst_each(
        quota in prop_oneof![
            quotas(),
            (1_000_000_000_u64..2_000_000_000_000, 1_u64..2_000_000).prop_filter_map("too long", |(units, seconds)| {
                Quota::new(Cost::units(units).unwrap(), Duration::from_secs(seconds)).ok()
            }),
        ],
        count in 1_u64..50,
        share_of_burst in 0_u64..20,
    ) {
        let table = DueTable::new(MaxKeys::new(10).unwrap(), 7);
        let rule = table.enrol(&TokenBucket::new(quota)).unwrap();
        let key = table.key("caller");
        let cost = Cost::from_micros(share(quota.burst().micros(), share_of_burst).max(1));
        let taken = (0..count).filter(|_| table.decide(&rule, key, start(), cost).is_admit()).count() as u64;
        let used = table.usage(&rule, key, start()).used.micros();
        let exact = taken * cost.micros();
        // A tick is never finer than a nanosecond.
        let nanosecond = 2 * quota.amount().micros().div_ceil(u64::try_from(quota.window().as_nanos()).unwrap());
        let rounded = share(quota.burst().micros(), 60) / 1_000_000;
        prop_assert!(used >= exact, "{used} of {exact}");
        prop_assert!(used <= exact + (taken + 1) * (rounded.max(nanosecond) + 1), "{used} of {exact}");
    }

    #[test]
    fn a_refund_restores_what_was(promise in promises(), traffic in traffic(), cost in 0_u64..1_000) {
        for key in &mut promise.kept() {
            let mut now = start();
            for &(step, cost) in &traffic {
                now = now.plus(promise.time(step));
                let _ = key.decide(now, promise.cost(cost));
            }
            let before = key.usage(now);
            if let Verdict::Admit(mut charge) = key.decide(now, promise.cost(cost)) {
                key.settle(now, &mut charge, Cost::ZERO);
                prop_assert_eq!(key.usage(now), before);
                key.settle(now, &mut charge, Cost::ZERO);
                prop_assert_eq!(key.usage(now), before, "the second refund is a no-op");
            }
        }
    }

    #[test]
    fn a_true_cost_above_the_estimate_is_owed_whole(
        promise in promises(),
        estimate in 1_u64..1_000,
        more in 0_u64..6_000,
    ) {
        for key in &mut promise.kept() {
            let estimate = promise.cost(estimate);
            let true_cost = estimate.plus(promise.cost(more));
            if let Verdict::Admit(mut charge) = key.decide(start(), estimate) {
                key.settle(start(), &mut charge, true_cost);
                let used = u128::from(key.usage(start()).used.micros());
                prop_assert!(used >= u128::from(true_cost.micros()), "{used} of {true_cost}");
                let rounded = 2 * (promise.granted(key.slack()) + 1);
                prop_assert!(used <= u128::from(true_cost.micros()) + rounded, "{used} of {true_cost}");
            }
        }
    }

    #[test]
    fn what_can_never_fit_is_refused_for_ever_and_only_that(promise in promises(), extra in 1_u64..1_000_000_000) {
        for key in &mut promise.kept() {
            let rounded = u64::try_from(promise.granted(key.slack())).unwrap();
            let above = promise.at_once() + rounded + extra.max(promise.at_once());
            let refusal = key.peek(start(), Cost::from_micros(above)).refusal().unwrap();
            prop_assert_eq!((refusal.reason, refusal.retry), (Reason::CostAboveBurst, Retry::Never));
            prop_assert!(key.peek(start(), promise.quota.burst()).is_admit());
        }
    }
}
