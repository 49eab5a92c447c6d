//! The plain rule, the counter that threads share and the table answer alike, also when rules meet in one of them.

use std::time::Duration;

use proptest::prelude::*;
use tidegate_core::keyed::{DueTable, MaxKeys};
use tidegate_core::rate::{Algorithm, Due, DueRule, LeakyBucket, Smooth, TokenBucket};
use tidegate_core::shell::AtomicDue;
use tidegate_core::{Cost, Moment, Quota, Verdict};

use crate::draw::{lead_nanos, promises, quotas, share, start, wild, wild_quotas};
use crate::promise::Promise;

/// What a rule grants in a century, in millionths: what takes longer to drain may read as no more than that.
fn century(promise: &Promise) -> u128 {
    promise.granted(100 * 365 * 86_400_000_000_000)
}

proptest! {
    #[test]
    fn a_table_answers_as_the_plain_rule_does_when_ticks_are_nanoseconds(
        rate in prop::sample::select(vec![200_u32, 250, 500, 1_000]),
        burst in 1_u32..10,
        max_wait in 0_u64..15_000_000,
        traffic in prop::collection::vec((0_u64..25_000_000, 1_u32..4), 1..80),
    ) {
        let quota = Quota::per_second(Cost::of(rate)).unwrap().with_burst(Cost::of(burst)).unwrap();
        let rules = [
            Some(Promise::token_bucket(quota)),
            Promise::leaky_bucket(quota, Cost::of(burst), None),
            Promise::leaky_bucket(quota, Cost::of(burst), Some(Cost::of(burst / 2))),
            Promise::smooth(quota, Duration::from_nanos(max_wait)),
        ];
        for rule in rules {
            let [mut plain, _, mut table] = rule.unwrap().kept();
            let mut now = start();
            for &(step, cost) in &traffic {
                now = now.plus(Duration::from_nanos(step));
                let verdicts = [&mut plain, &mut table].map(|key| key.decide(now, Cost::of(cost)));
                let [told, packed] = verdicts.map(|verdict| verdict.map(|charge| charge.wait()));
                prop_assert_eq!(packed, told);
                prop_assert_eq!(table.usage(now), plain.usage(now));
            }
        }
    }

    #[test]
    fn a_shared_counter_answers_as_the_plain_rule_does(
        quota in quotas(),
        waiting in 0_u64..2_000,
        max_wait in 0_u64..2_000,
        steps in prop::collection::vec((-300_i64..700, 0_u64..1_200, prop::option::of(0_u64..4_000)), 1..60),
    ) {
        let flat = Quota::new(quota.amount(), quota.window()).unwrap();
        answers_alike(&TokenBucket::new(quota), &quota, &steps)?;
        if let Ok(rule) = LeakyBucket::new(flat, Cost::from_micros(share(quota.burst().micros(), waiting))) {
            answers_alike(&rule, &quota, &steps)?;
        }
        if let Ok(rule) = Smooth::new(quota, Duration::from_nanos(share(lead_nanos(&quota), max_wait))) {
            answers_alike(&rule, &quota, &steps)?;
        }
    }

    #[test]
    fn nothing_panics_whatever_the_moments_and_costs(
        quotas in (prop_oneof![quotas(), wild_quotas()], wild_quotas()).prop_map(|(one, other)| [one, other]),
        waiting in [wild(), wild()],
        max_wait in [wild(), wild()],
        steps in prop::collection::vec((wild(), wild(), wild()), 1..40),
    ) {
        let flat = quotas.map(|quota| Quota::new(quota.amount(), quota.window()).unwrap());
        exercise(&quotas.map(TokenBucket::new), &steps);
        let leaky = [0, 1].map(|rule| LeakyBucket::new(flat[rule], Cost::from_micros(waiting[rule])));
        if let [Ok(one), Ok(other)] = leaky {
            exercise(&[one, other], &steps);
        }
        let smooth = [0, 1].map(|rule| Smooth::new(quotas[rule], Duration::from_nanos(max_wait[rule])));
        if let [Ok(one), Ok(other)] = smooth {
            exercise(&[one, other], &steps);
        }
    }

    #[test]
    fn plans_that_share_a_counter_forget_nothing_of_each_other(
        quotas in [quotas(), quotas()],
        steps in prop::collection::vec((0..2_usize, 1_u64..1_000, prop::option::of((0..2_usize, 0_u64..1_000))), 1..20),
    ) {
        let (limiter, table) = (AtomicDue::new(), DueTable::new(MaxKeys::new(10).unwrap(), 7));
        let fine = quotas.map(|quota| limiter.enrol(&TokenBucket::new(quota)).unwrap());
        let packed = quotas.map(|quota| table.enrol(&TokenBucket::new(quota)).unwrap());
        let key = table.key("caller");
        let mut consumed = [0_u64; 2];
        for &(plan, cost, settled) in &steps {
            let cost = Cost::from_micros(share(quotas[plan].burst().micros(), cost).max(1));
            let settled = settled.map(|(plan, part)| (plan, Cost::from_micros(share(cost.micros(), part))));
            let true_cost = settled.map_or(cost, |(_, true_cost)| true_cost).micros();
            if let Verdict::Admit(mut charge) = limiter.decide(&fine[plan], start(), cost) {
                consumed[0] += true_cost;
                if let Some((plan, true_cost)) = settled {
                    limiter.settle(&fine[plan], start(), &mut charge, true_cost);
                }
            }
            if let Verdict::Admit(mut charge) = table.decide(&packed[plan], key, start(), cost) {
                consumed[1] += true_cost;
                if let Some((plan, true_cost)) = settled {
                    table.settle(&packed[plan], key, start(), &mut charge, true_cost);
                }
            }
        }
        for plan in 0..2 {
            let used = [limiter.usage(&fine[plan], start()).used, table.usage(&packed[plan], key, start()).used];
            for (used, consumed) in used.into_iter().zip(consumed) {
                let consumed = u128::from(consumed).min(century(&Promise::token_bucket(quotas[plan])));
                prop_assert!(u128::from(used.micros()) >= consumed, "{used} of {consumed}");
            }
        }
    }

    #[test]
    fn a_new_rule_keeps_what_was_consumed(before in promises(), after in promises(), spent in 1_u64..1_000) {
        let limiter = AtomicDue::new();
        let table = DueTable::new(MaxKeys::new(10).unwrap(), 7);
        let key = table.key("caller");
        let cost = before.cost(spent).max(Cost::from_micros(1));
        let fine = [before, after].map(|promise| limiter.enrol(&promise.rule).unwrap());
        let packed = [before, after].map(|promise| table.enrol(&promise.rule).unwrap());
        let _ = limiter.decide(&fine[0], start(), cost);
        let _ = table.decide(&packed[0], key, start(), cost);
        let owed = u128::from(cost.micros()).min(century(&after));
        let is_owed = |used: u64, tolerance| {
            let used = u128::from(used);
            used + tolerance >= owed && used <= u128::from(cost.micros()) + tolerance
        };
        let grain = |promise: &Promise, ticks| (promise.granted(1) + 1) * ticks + 2;
        let used = limiter.usage(&fine[1], start()).used.micros();
        let tolerance = grain(&before, 10) + grain(&after, 80);
        prop_assert!(is_owed(used, tolerance), "{used} of {owed}");
        let coarse = |promise: &Promise| u128::from(promise.at_once() >> 23) + 2;
        let used = table.usage(&packed[1], key, start()).used.micros();
        prop_assert!(is_owed(used, tolerance + coarse(&before) + 8 * coarse(&after)), "{used} of {owed}");
    }
}

/// Asks a rule and its shell the same, step by step: how much later or earlier, what cost, and what it is settled to if it
/// is, in thousandths of lead, burst and cost.
fn answers_alike<R>(rule: &R, quota: &Quota, steps: &[(i64, u64, Option<u64>)]) -> Result<(), TestCaseError>
where
    R: Algorithm<Time = Moment, State = Due> + DueRule,
{
    let limiter = AtomicDue::new();
    let enrolled = limiter.enrol(rule).expect("room for a rule");
    let mut state = rule.fresh(Moment::ORIGIN);
    let mut now = start();
    for &(step, cost, settled) in steps {
        let length = i64::try_from(share(lead_nanos(quota), step.unsigned_abs())).unwrap_or(i64::MAX);
        now = Moment::from_nanos(now.nanos().saturating_add_signed(length.saturating_mul(step.signum())));
        let cost = Cost::from_micros(share(quota.burst().micros(), cost));
        let (plain, shared) = (rule.decide(&mut state, now, cost), limiter.decide(&enrolled, now, cost));
        match (plain, shared) {
            (Verdict::Admit(mut plain), Verdict::Admit(mut shared)) => {
                prop_assert_eq!((plain.cost(), plain.wait()), (shared.cost(), shared.wait()));
                if let Some(settled) = settled {
                    let true_cost = Cost::from_micros(share(cost.micros(), settled));
                    rule.settle(&mut state, now, &mut plain, true_cost);
                    limiter.settle(&enrolled, now, &mut shared, true_cost);
                }
            }
            (Verdict::Refuse(plain), Verdict::Refuse(shared)) => prop_assert_eq!(plain, shared),
            (plain, shared) => prop_assert!(false, "{plain:?}, but {shared:?}"),
        }
        prop_assert_eq!(limiter.usage(&enrolled, now), rule.usage(&state, now));
    }
    Ok(())
}

/// Runs two rules in turn, their shell and their table over anything.
fn exercise<R>(rules: &[R; 2], steps: &[(u64, u64, u64)])
where
    R: Algorithm<Time = Moment, State = Due> + DueRule,
{
    let limiter = AtomicDue::new();
    let table = DueTable::new(MaxKeys::new(10).expect("ten keys"), 7);
    let fine = rules.each_ref().map(|rule| limiter.enrol(rule).expect("two rules"));
    let packed = rules.each_ref().map(|rule| table.enrol(rule).expect("two rules"));
    let mut state = rules[0].fresh(Moment::ORIGIN);
    for (step, &(now, cost, true_cost)) in steps.iter().enumerate() {
        let (now, cost, true_cost) =
            (Moment::from_nanos(now), Cost::from_micros(cost), Cost::from_micros(true_cost));
        let key = table.key(&(cost.micros() % 5));
        // The rule that decides, and the one that settles.
        let (one, other) = (step % 2, step / 2 % 2);
        let rule = &rules[one];
        if let Verdict::Admit(mut charge) = rule.decide(&mut state, now, cost) {
            rule.settle(&mut state, now, &mut charge, true_cost);
        }
        if let Verdict::Admit(mut charge) = limiter.decide(&fine[one], now, cost) {
            limiter.settle(&fine[other], now, &mut charge, true_cost);
        }
        if let Verdict::Admit(mut charge) = table.decide(&packed[one], key, now, cost) {
            table.settle(&packed[other], key, now, &mut charge, true_cost);
        }
        for rule in 0..2 {
            let _ = (limiter.usage(&fine[rule], now), table.usage(&packed[rule], key, now));
            let _ =
                (limiter.peek(&fine[rule], now, true_cost), table.peek(&packed[rule], key, now, true_cost));
        }
        let _ = (rule.usage(&state, now), rule.peek(&state, now, true_cost), rule.is_idle(&state, now));
        table.each(now, |_| ());
        rules[1 - one].carry(rule, &mut state, now);
    }
    let [last, heir] = fine;
    let now = Moment::from_nanos(steps[0].0);
    limiter.retire(last, &heir, now);
    let [last, heir] = packed;
    table.retire(last, &heir, now);
}
