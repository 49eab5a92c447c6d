//! What must hold for every sequence of requests, for the limiters that count in windows and the warm-up.

mod harness;

use std::time::Duration;

use harness::{
    Kind, START, admitted, key, kinds, live, most_within, nanos, pace, pair, quotas, thousandths, walks,
    wild, wild_quotas, windows,
};
use proptest::prelude::*;
use tidegate_core::rate::{Period, SlidingLog};
use tidegate_core::{Cost, Moment, Quota, Reason, Retry, Verdict};

proptest! {
    #[test]
    fn a_fixed_window_never_holds_more_than_the_amount(quota in quotas(), walk in walks()) {
        let window = nanos(quota.window());
        let mut key = key(Kind::Fixed, quota, START).unwrap();
        let admitted = admitted(&mut *key, window, quota.amount(), &walk);
        for (at, _) in &admitted {
            let same_window = admitted.iter().filter(|(other, _)| other / window == at / window);
            prop_assert!(same_window.map(|(_, cost)| cost).sum::<u64>() <= quota.amount().micros());
        }
    }

    #[test]
    fn a_log_never_admits_more_than_the_amount_in_any_window(
        quota in quotas(),
        walk in walks(),
        capacity in 1..100_usize,
    ) {
        let rule = SlidingLog::new(quota).unwrap().with_capacity(capacity).unwrap();
        let mut key = live([rule.clone(), rule], START, Moment::from_nanos);
        let admitted = admitted(&mut *key, nanos(quota.window()), quota.amount(), &walk);
        prop_assert!(most_within(&admitted, nanos(quota.window())) <= quota.amount().micros());
    }

    #[test]
    fn a_log_with_room_admits_whatever_an_exact_count_admits(quota in quotas(), walk in walks()) {
        let (window, amount) = (nanos(quota.window()), quota.amount().micros());
        let mut key = key(Kind::Log, quota, START).unwrap();
        let mut now = START;
        let mut counted: Vec<(u64, u64)> = Vec::new();
        for (step, share) in walk {
            now += thousandths(window, step);
            let cost = thousandths(amount, share);
            let within: u64 = counted.iter().filter(|(at, _)| now - at < window).map(|(_, cost)| cost).sum();
            let is_admit = key.decide(now, Cost::from_micros(cost)).is_admit();
            prop_assert_eq!(is_admit, within + cost <= amount);
            if is_admit {
                counted.push((now, cost));
            }
        }
    }

    #[test]
    fn a_sliding_window_keeps_its_estimate_and_its_envelope(
        quota in quotas(),
        buckets in 1..=64_u32,
        walk in walks(),
        length in 1..3_000_u64,
    ) {
        let (window, amount) = (nanos(quota.window()), quota.amount().micros());
        let mut key = key(Kind::Sliding(buckets), quota, START).unwrap();
        let mut now = START;
        let mut taken = Vec::new();
        for (step, share) in walk {
            now += thousandths(window, step);
            let cost = thousandths(amount, share);
            if key.decide(now, Cost::from_micros(cost)).is_admit() {
                taken.push((now, cost));
            }
            prop_assert!(key.usage(now).used <= quota.amount());
        }
        let length = thousandths(window, length).max(1);
        let envelope = u128::from(amount) + (u128::from(amount) * u128::from(length)).div_ceil(u128::from(window));
        prop_assert!(u128::from(most_within(&taken, length)) <= envelope);
        if buckets > 1 {
            let short = window - window.div_ceil(u64::from(buckets));
            prop_assert!(most_within(&taken, short) <= amount);
        }
    }

    #[test]
    fn a_sliding_window_estimates_what_the_formula_says(
        quota in quotas(),
        previous in 0..=1_000_u64,
        current in 0..=1_000_u64,
        elapsed in 0..1_000_u64,
    ) {
        let (window, amount) = (nanos(quota.window()), quota.amount().micros());
        let start = START.next_multiple_of(window);
        let mut key = key(Kind::Sliding(1), quota, start).unwrap();
        let previous = thousandths(amount, previous);
        prop_assert!(key.decide(start, Cost::from_micros(previous)).is_admit());
        let passed = thousandths(window, elapsed);
        let current = thousandths(amount, current);
        let is_admit = key.decide(start + window + passed, Cost::from_micros(current)).is_admit();
        let left = u128::from(previous) * u128::from(window - passed);
        let limit = u128::from(amount) * u128::from(window);
        prop_assert_eq!(is_admit, left + u128::from(current) * u128::from(window) <= limit);
    }

    #[test]
    fn a_calendar_day_never_holds_more_than_the_amount(
        amount in 1..20_000_000_u64,
        offset in -840..=840_i16,
        walk in walks(),
    ) {
        let quota = Quota::per_day(Cost::from_micros(amount)).unwrap();
        let mut key = key(Kind::Calendar(Period::Day, offset), quota, START).unwrap();
        let day = 86_400_000_000_000;
        let admitted = admitted(&mut *key, day, quota.amount(), &walk);
        let local = |at: u64| at.saturating_add_signed(i64::from(offset) * 60_000_000_000) / day;
        for (at, _) in &admitted {
            let same_day = admitted.iter().filter(|(other, _)| local(*other) == local(*at));
            prop_assert!(same_day.map(|(_, cost)| cost).sum::<u64>() <= amount);
        }
    }

    #[test]
    fn from_cold_the_band_takes_exactly_the_warm_up_whatever_the_calls(
        per_second in 1..1_000_u32,
        seconds in 1..100_u32,
        cold_factor in 2..=9_u32,
        cuts in prop::collection::vec(1..1_000_u64, 0..20),
    ) {
        // Chosen so that the band, 2W / (s + c·s), is a whole number of millionths.
        let amount = per_second * (1 + cold_factor);
        let kind = Kind::WarmUp {
            warm_up: Duration::from_secs(seconds.into()),
            cold_factor,
            max_wait: Duration::MAX,
        };
        let mut key = key(kind, Quota::per_second(Cost::of(amount)).unwrap(), START).unwrap();
        let mut left = Cost::of(2 * per_second * seconds);
        for cut in cuts {
            let cost = Cost::from_micros(thousandths(left.micros(), cut));
            prop_assert!(key.decide(START, cost).is_admit());
            left = left.minus(cost);
        }
        prop_assert!(key.decide(START, left).is_admit());
        prop_assert_eq!(key.peek(START, Cost::ONE), Verdict::Admit(Duration::from_secs(seconds.into())));
    }

    #[test]
    fn a_warm_up_never_grants_faster_than_its_rate(
        quota in quotas(),
        warm_up in 1..60_000_u64,
        walk in walks(),
    ) {
        let warm_up = Duration::from_millis(warm_up);
        let kind = Kind::WarmUp { warm_up, cold_factor: 3, max_wait: Duration::MAX };
        let Some(mut key) = key(kind, quota, START) else { return Ok(()) };
        let mut now = START;
        let (mut granted, mut first) = (0_u128, None);
        for (step, share) in walk {
            now += thousandths(nanos(quota.window()), step);
            let cost = thousandths(quota.amount().micros(), share);
            let charge = key.decide(now, Cost::from_micros(cost)).admitted().unwrap();
            let leaves = now + nanos(charge.wait());
            // What left before this one has been paid for by the time since the first.
            let passed = u128::from(leaves - *first.get_or_insert(leaves));
            let earned = passed * u128::from(quota.amount().micros());
            prop_assert!(granted * u128::from(nanos(quota.window())) <= earned + u128::from(quota.amount().micros()));
            granted += u128::from(cost);
        }
    }

    #[test]
    fn a_retry_is_exact_to_the_nanosecond_even_for_late_moments(
        kind in kinds(),
        quota in quotas(),
        walk in walks(),
        late in prop_oneof![Just(0), 0..900_u64],
    ) {
        let Some(mut key) = key(kind, quota, START) else { return Ok(()) };
        let mut latest = START;
        for (step, share) in walk {
            latest += thousandths(pace(kind, quota), step);
            let cost = Cost::from_micros(thousandths(quota.amount().micros(), share));
            let now = latest - thousandths(pace(kind, quota), late);
            let _taken = key.decide(latest, cost);
            let Some(refusal) = key.peek(now, cost).refusal() else { continue };
            match refusal.retry {
                Retry::After(wait) => {
                    prop_assert!(wait > Duration::ZERO);
                    prop_assert!(!key.peek(now + nanos(wait) - 1, cost).is_admit());
                    prop_assert!(key.peek(now + nanos(wait), cost).is_admit());
                }
                Retry::Never => {
                    prop_assert_eq!(refusal.reason, Reason::CostAboveBurst);
                    prop_assert!(!key.fresh(now).peek(now, cost).is_admit());
                }
            }
        }
    }

    #[test]
    fn what_remains_fits_and_a_millionth_more_does_not(kind in windows(), quota in quotas(), walk in walks()) {
        let mut key = key(kind, quota, START).unwrap();
        let mut now = START;
        for (step, share) in walk {
            now += thousandths(pace(kind, quota), step);
            let decided = key.decide(now, Cost::from_micros(thousandths(quota.amount().micros(), share)));
            let usage = key.usage(now);
            prop_assert!(decided.is_admit() || key.usage(now) == usage);
            prop_assert!(key.peek(now, usage.remaining).is_admit());
            prop_assert!(!key.peek(now, usage.remaining.plus(Cost::from_micros(1))).is_admit());
            let end = now + nanos(usage.reset);
            prop_assert_eq!(key.usage(end).used, Cost::ZERO);
            prop_assert!(usage.reset.is_zero() || key.usage(end - 1).used > Cost::ZERO);
        }
    }

    #[test]
    fn many_at_once_equal_many_one_by_one(
        kind in kinds(),
        quota in quotas(),
        parts in prop::collection::vec(0..=300_u64, 1..12),
        later in 0..3_000_u64,
    ) {
        let kind = match kind {
            // Whoever comes one by one must wait; here only the sum counts.
            Kind::WarmUp { warm_up, cold_factor, .. } => Kind::WarmUp { warm_up, cold_factor, max_wait: Duration::MAX },
            other => other,
        };
        let Some(mut one_by_one) = key(kind, quota, START) else { return Ok(()) };
        let mut at_once = one_by_one.fresh(START);
        let parts: Vec<_> =
            parts.iter().map(|part| Cost::from_micros(thousandths(quota.amount().micros(), *part))).collect();
        let sum = parts.iter().fold(Cost::ZERO, |sum, part| sum.plus(*part));
        let all_fit = parts.iter().all(|part| one_by_one.decide(START, *part).is_admit());
        prop_assert_eq!(at_once.decide(START, sum).is_admit(), all_fit);
        if all_fit {
            let now = START + thousandths(pace(kind, quota), later);
            prop_assert_eq!(one_by_one.usage(now), at_once.usage(now));
            for share in [0, 1, 500, 1_000] {
                let cost = Cost::from_micros(thousandths(quota.amount().micros(), share));
                prop_assert_eq!(one_by_one.peek(now, cost), at_once.peek(now, cost));
            }
        }
    }

    #[test]
    fn a_refund_right_away_restores_the_same_answers_and_a_second_changes_nothing(
        kind in kinds(),
        quota in quotas(),
        walk in walks(),
        later in 0..3_000_u64,
    ) {
        let Some(mut key) = key(kind, quota, START) else { return Ok(()) };
        let mut untouched = key.fresh(START);
        let mut now = START;
        for (step, share) in walk {
            now += thousandths(pace(kind, quota), step);
            let cost = Cost::from_micros(thousandths(quota.amount().micros(), share));
            if share % 2 == 0 {
                prop_assert_eq!(key.decide(now, cost), untouched.decide(now, cost));
            } else if let Some(mut charge) = key.decide(now, cost).admitted() {
                key.settle(now, &mut charge, Cost::ZERO);
                key.settle(now, &mut charge, Cost::ZERO);
                key.settle(now, &mut charge, Cost::MAX);
            }
            for now in [now, now + thousandths(pace(kind, quota), later)] {
                prop_assert_eq!(key.usage(now), untouched.usage(now));
                prop_assert_eq!(key.peek(now, cost), untouched.peek(now, cost));
            }
        }
    }

    #[test]
    fn settling_to_less_or_more_right_away_equals_having_asked_for_that(
        kind in kinds(),
        quota in quotas(),
        asked in 0..=1_000_u64,
        true_share in 0..=1_000_u64,
        later in 0..3_000_u64,
    ) {
        let Some(mut settled) = key(kind, quota, START) else { return Ok(()) };
        let mut direct = settled.fresh(START);
        let share = |share| Cost::from_micros(thousandths(quota.amount().micros(), share));
        let mut charge = settled.decide(START, share(asked)).admitted().unwrap();
        settled.settle(START, &mut charge, share(true_share));
        prop_assert!(direct.decide(START, share(true_share)).is_admit());
        let now = START + thousandths(pace(kind, quota), later);
        prop_assert_eq!(settled.usage(now), direct.usage(now));
        prop_assert_eq!(settled.peek(now, Cost::ONE), direct.peek(now, Cost::ONE));
    }

    #[test]
    fn a_clock_that_goes_back_grants_nothing_and_locks_nobody_out(
        kind in kinds(),
        quota in quotas(),
        back in prop_oneof![0..2_000_u64, Just(3_600_000), 0..1_000_000_u64],
    ) {
        let Some(mut key) = key(kind, quota, START) else { return Ok(()) };
        let pace = match kind {
            Kind::Calendar(Period::Month, _) => 31 * pace(kind, quota),
            _ => pace(kind, quota),
        };
        prop_assert!(key.decide(START, quota.amount()).is_admit());
        let owed = key.usage(START).reset;
        let now = START.saturating_sub(pace.saturating_mul(back) / 1_000);
        if !matches!(kind, Kind::WarmUp { .. }) {
            prop_assert!(!key.peek(now, Cost::from_micros(1)).is_admit());
            prop_assert!(!key.decide(now, Cost::from_micros(1)).is_admit());
        } else {
            let before = key.peek(START, Cost::ONE);
            let _after = key.decide(now, Cost::ZERO);
            prop_assert!(before.is_admit() || !key.peek(now, Cost::ONE).is_admit());
        }
        // Two windows, and what was owed, after the new time (or the old, if it was only late).
        let again = now + 3 * pace + nanos(owed);
        prop_assert!(key.peek(again, quota.amount()).is_admit());
        prop_assert_eq!(key.usage(again).used, Cost::ZERO);
    }

    #[test]
    fn flapping_around_one_boundary_grants_at_most_one_new_window(
        kind in windows(),
        quota in quotas(),
        flips in prop::collection::vec(0..2_u64, 1..50),
    ) {
        let window = nanos(quota.window());
        let boundary = match kind {
            Kind::Calendar(..) => 1_704_067_200_000_000_000,
            _ => START.next_multiple_of(window),
        };
        let mut key = key(kind, quota, boundary - 1).unwrap();
        let mut sum = 0;
        for flip in flips {
            sum += u64::from(key.decide(boundary - flip, quota.amount()).is_admit());
        }
        prop_assert!(sum <= 2);
    }

    #[test]
    fn whoever_is_idle_answers_as_if_never_seen(kind in kinds(), quota in quotas(), walk in walks()) {
        let Some(mut key) = key(kind, quota, START) else { return Ok(()) };
        let mut now = START;
        for (step, share) in walk {
            now += thousandths(pace(kind, quota), step * 3);
            let fresh = key.fresh(now);
            let usage = key.usage(now);
            let is_alike = usage == fresh.usage(now);
            if key.is_idle(now) {
                prop_assert!(is_alike);
                for share in [0, 1, 500, 1_000, 1_001] {
                    let cost = Cost::from_micros(thousandths(quota.amount().micros(), share));
                    prop_assert_eq!(key.peek(now, cost), fresh.peek(now, cost));
                }
            } else if !matches!(kind, Kind::WarmUp { .. }) {
                prop_assert!(!is_alike);
            }
            let _taken = key.decide(now, Cost::from_micros(thousandths(quota.amount().micros(), share)));
        }
        let long_after = now + 100 * pace(kind, quota).max(60_000_000_000);
        prop_assert!(key.is_idle(long_after));
    }

    #[test]
    fn a_new_quota_keeps_the_units_consumed(
        kind in kinds(),
        quota in quotas(),
        other in quotas(),
        walk in walks(),
    ) {
        let Some(mut key) = pair(kind, quota, other, START) else { return Ok(()) };
        let mut now = START;
        for (step, share) in walk {
            now += thousandths(pace(kind, quota), step);
            let _taken = key.decide(now, Cost::from_micros(thousandths(quota.amount().micros(), share)));
        }
        let before = key.usage(now).used;
        key.carry(now);
        let after = key.usage(now).used;
        match kind {
            Kind::Fixed | Kind::Sliding(_) | Kind::Calendar(..) => prop_assert_eq!(after, before),
            Kind::Log if other.window() >= quota.window() => prop_assert_eq!(after, before),
            // A shorter window reaches less far back.
            Kind::Log => prop_assert!(after <= before),
            Kind::WarmUp { warm_up, max_wait, .. } => {
                // What is owed is whole nanoseconds, each of which may be worth several millionths.
                let nanosecond = other.amount().micros() / nanos(other.window()) + 1;
                prop_assert!(after <= before.plus(Cost::from_micros(nanosecond)));
                // Eight extents are the most that can be owed: the store of a warm-up twice as long and the longest wait,
                // in whole millionths.
                let extents = 8 * nanos(3 * warm_up + max_wait);
                let millionths = 100 * (nanos(other.window()) / other.amount().micros() + 1);
                let owed = nanos(key.usage(now).reset);
                prop_assert!(before <= after || owed + millionths >= extents, "{owed} of {extents}");
            }
        }
    }

    #[test]
    fn nothing_panics_whatever_comes_in_whatever_order(
        kind in kinds(),
        quota in prop_oneof![quotas(), wild_quotas()],
        other in prop_oneof![quotas(), wild_quotas()],
        steps in prop::collection::vec((wild(), wild(), wild(), 0..5_u8), 1..60),
    ) {
        let Some(mut key) = pair(kind, quota, other, START) else { return Ok(()) };
        let mut charges = Vec::new();
        for (now, cost, true_cost, what) in steps {
            let cost = Cost::from_micros(cost);
            let peeked = key.peek(now, cost);
            match what {
                0..=2 => {
                    let decided = key.decide(now, cost);
                    prop_assert_eq!(decided.is_admit(), peeked.is_admit());
                    charges.extend(decided.admitted());
                }
                3 => {
                    if let Some(mut charge) = charges.pop() {
                        key.settle(now, &mut charge, Cost::from_micros(true_cost));
                    }
                }
                _ => key.carry(now),
            }
            let usage = key.usage(now);
            prop_assert!(usage.remaining <= usage.limit);
            let _idle = key.is_idle(now);
        }
    }
}
