//! What must hold for every sequence of moments and costs, for the limiters that keep one due number.

use std::time::Duration;

use proptest::prelude::*;
use tidegate_core::keyed::{DueTable, MaxKeys};
use tidegate_core::rate::{Algorithm, Due, LeakyBucket, Smooth, TokenBucket};
use tidegate_core::shell::AtomicDue;
use tidegate_core::{Charge, Cost, Moment, Quota, Reason, Retry, Verdict};

/// Quotas of every kind: odd rates, fractions, long and short windows, small and large bursts.
fn quotas() -> impl Strategy<Value = Quota> {
    let windows = prop_oneof![
        Just(Duration::from_millis(1)),
        Just(Duration::from_secs(1)),
        Just(Duration::from_secs(60)),
        Just(Duration::from_secs(86_400)),
        (1_000_u64..10_000_000_000).prop_map(Duration::from_nanos),
    ];
    let amounts = prop_oneof![
        (1_u32..2_000).prop_map(Cost::of),
        (1_u64..5_000_000).prop_map(Cost::from_micros),
        (1_u64..1_000_000_000).prop_map(Cost::from_micros),
    ];
    (amounts, windows, 1_u64..5_000).prop_filter_map("too long", |(amount, window, thousandths)| {
        let burst = Cost::from_micros((amount.micros() / 1_000 * thousandths).max(1_000));
        Quota::new(amount, window).and_then(|quota| quota.with_burst(burst)).ok()
    })
}

/// Quotas, costs and moments as far apart as they can be.
fn wild_quotas() -> impl Strategy<Value = Quota> {
    let amounts = || {
        prop_oneof![
            Just(Cost::from_micros(1)),
            Just(Cost::ONE),
            Just(Cost::MAX),
            wild().prop_map(Cost::from_micros)
        ]
    };
    let longest = 400 * 86_400_000_000_000_u64;
    let windows =
        prop_oneof![Just(1_000), Just(longest), 1_000..longest, (10_u32..54).prop_map(|bits| 1 << bits)];
    (amounts(), windows, prop::option::of(amounts())).prop_filter_map(
        "too long",
        |(amount, window, burst)| {
            let quota = Quota::new(amount, Duration::from_nanos(window)).ok()?;
            burst.map_or(Some(quota), |burst| quota.with_burst(burst).ok())
        },
    )
}

/// Numbers of every size, and those next to the ends.
fn wild() -> impl Strategy<Value = u64> {
    prop_oneof![
        any::<u64>(),
        (any::<u64>(), 0_u32..64).prop_map(|(number, bits)| number >> bits),
        0_u64..3,
        (u64::MAX - 3)..
    ]
}

/// Steps between requests and costs, both as thousandths of the quota's lead and burst.
fn traffic() -> impl Strategy<Value = Vec<(u64, u64)>> {
    prop::collection::vec((0_u64..400, 0_u64..700), 1..60)
}

fn share(whole: u64, thousandths: u64) -> u64 {
    u64::try_from(u128::from(whole) * u128::from(thousandths) / 1_000).unwrap_or(u64::MAX)
}

fn lead_nanos(quota: &Quota) -> u64 {
    u64::try_from(quota.lead().as_nanos()).unwrap_or(u64::MAX)
}

fn start() -> Moment {
    Moment::from_nanos(1_790_000_000_000_000_000) // a driver's origin is 1970, so moments are this large
}

/// Asserts that in every interval no more than burst + rate · length was admitted. `slack` is the length of
/// a tick: the clock is read in whole ticks, so an interval may look longer by one.
fn assert_within_envelope(quota: &Quota, admitted: &[(Moment, Cost)], slack: u128) {
    for first in 0..admitted.len() {
        let mut sum = 0;
        for (moment, cost) in &admitted[first..] {
            sum += u128::from(cost.micros());
            let length = moment.since(admitted[first].0).as_nanos() + slack;
            let granted = length * u128::from(quota.amount().micros()) / quota.window().as_nanos() + 1;
            let allowed = u128::from(quota.burst().micros()) + granted;
            assert!(sum <= allowed, "{sum} admitted in {length} ns, {allowed} allowed");
        }
    }
}

/// Nanoseconds by which a thread may come late.
const SLACK: u64 = 1 << 36;

/// Requests that arrive in this order: when, by how much earlier a clock they were told, and at what cost. When and
/// cost as thousandths of the quota's lead and burst; most threads that come late do so by very much or very little.
fn late_traffic() -> impl Strategy<Value = Vec<(u64, u64, u64)>> {
    let lateness = prop_oneof![3 => Just(0), 1 => 0..SLACK, 2 => (0_u32..36).prop_map(|bits| 1 << bits)];
    prop::collection::vec((0_u64..400, lateness, 0_u64..1_001), 1..60)
}

/// Asserts that of what arrived in any order, no more was admitted than burst + rate · length, where an interval is as
/// long as its last arrival comes after the earliest moment that was told in it: real time counts once, however
/// often it is told. Told moment, arrival, cost.
fn assert_within_real_time(quota: &Quota, admitted: &[(Moment, Moment, Cost)], slack: u128) {
    for first in 0..admitted.len() {
        let (mut sum, mut earliest) = (0, admitted[first].0);
        for (told, arrived, cost) in &admitted[first..] {
            sum += u128::from(cost.micros());
            earliest = earliest.min(*told);
            let length = arrived.since(earliest).as_nanos() + slack;
            let granted = length * u128::from(quota.amount().micros()) / quota.window().as_nanos() + 1;
            let allowed = u128::from(quota.burst().micros()) + granted;
            assert!(sum <= allowed, "{sum} admitted in {length} ns, {allowed} allowed");
        }
    }
}

/// What a quota grants in a century, in millionths: what takes longer to drain may read as no more than that.
fn century(quota: &Quota) -> u128 {
    u128::from(quota.amount().micros()) * 100 * 365 * 86_400_000_000_000 / quota.window().as_nanos()
}

/// The ticks of a table: at least this fine.
fn packed_tick(quota: &Quota) -> u128 {
    (u128::from(lead_nanos(quota)) / (1 << 27)).max(1)
}

proptest! {
    #[test]
    fn a_token_bucket_never_admits_above_its_envelope(quota in quotas(), traffic in traffic()) {
        let rule = TokenBucket::new(quota);
        let mut now = start();
        let mut state = rule.fresh(now);
        let mut admitted = Vec::new();
        for (step, cost) in traffic {
            now = now.plus(Duration::from_nanos(share(lead_nanos(&quota), step)));
            let cost = Cost::from_micros(share(quota.burst().micros(), cost));
            if rule.decide(&mut state, now, cost).is_admit() {
                admitted.push((now, cost));
            }
        }
        assert_within_envelope(&quota, &admitted, 1);
    }

    #[test]
    fn a_table_never_admits_above_the_envelope_of_its_ticks(quota in quotas(), traffic in traffic()) {
        let table = DueTable::new(MaxKeys::new(10).unwrap(), 7);
        let rule = table.enrol(&TokenBucket::new(quota)).unwrap();
        let key = table.key("caller");
        let mut now = start();
        let mut admitted = Vec::new();
        for (step, cost) in traffic {
            now = now.plus(Duration::from_nanos(share(lead_nanos(&quota), step)));
            let cost = Cost::from_micros(share(quota.burst().micros(), cost));
            if table.decide(&rule, key, now, cost).is_admit() {
                admitted.push((now, cost));
            }
        }
        assert_within_envelope(&quota, &admitted, packed_tick(&quota));
    }

    #[test]
    fn retry_is_exact_to_the_nanosecond(quota in quotas(), traffic in traffic(), packed: bool) {
        let limiter = AtomicDue::new();
        let table = DueTable::new(MaxKeys::new(10).unwrap(), 7);
        let rules = (limiter.enrol(&TokenBucket::new(quota)).unwrap(), table.enrol(&TokenBucket::new(quota)).unwrap());
        let key = table.key("caller");
        let ask = |now, cost, take: bool| match (packed, take) {
            (true, true) => table.decide(&rules.1, key, now, cost).map(|charge| charge.wait()),
            (true, false) => table.peek(&rules.1, key, now, cost),
            (false, true) => limiter.decide(&rules.0, now, cost).map(|charge| charge.wait()),
            (false, false) => limiter.peek(&rules.0, now, cost),
        };
        let mut now = start();
        for (step, cost) in traffic {
            now = now.plus(Duration::from_nanos(share(lead_nanos(&quota), step) / 8));
            let cost = Cost::from_micros(share(quota.burst().micros(), cost));
            let Verdict::Refuse(refusal) = ask(now, cost, true) else { continue };
            let Retry::After(wait) = refusal.retry else { panic!("{cost} fits a burst of {}", quota.burst()) };
            prop_assert!(!wait.is_zero());
            now = now.plus(wait);
            let too_early = Moment::from_nanos(now.nanos() - 1);
            prop_assert!(!ask(too_early, cost, false).is_admit(), "admitted a nanosecond before {wait:?}");
            prop_assert!(ask(now, cost, false).is_admit(), "refused again after {wait:?}");
        }
    }

    #[test]
    fn n_at_once_equal_n_by_one(quota in quotas(), count in 1_u32..50, before in 0_u64..1_000) {
        let rule = TokenBucket::new(quota);
        let mut by_one = rule.fresh(start());
        let spent = Cost::from_micros(share(quota.burst().micros(), before));
        let _ = rule.decide(&mut by_one, start(), spent);
        let mut at_once = by_one;
        let single = (0..count).all(|_| rule.decide(&mut by_one, start(), Cost::ONE).is_admit());
        let together = rule.decide(&mut at_once, start(), Cost::of(count)).is_admit();
        if u128::from(quota.amount().micros()) <= quota.window().as_nanos() * 1_000 {
            // Whole units are whole grains as long as the clock grants less than one a nanosecond.
            prop_assert_eq!(single, together);
            prop_assert!(!together || by_one == at_once);
        } else {
            prop_assert!(together || !single);
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
    fn a_refund_restores_what_was(quota in quotas(), traffic in traffic(), cost in 0_u64..1_000) {
        let rule = TokenBucket::new(quota);
        let mut now = start();
        let mut state = rule.fresh(now);
        for (step, cost) in traffic {
            now = now.plus(Duration::from_nanos(share(lead_nanos(&quota), step)));
            let _ = rule.decide(&mut state, now, Cost::from_micros(share(quota.burst().micros(), cost)));
        }
        let before = rule.usage(&state, now);
        let cost = Cost::from_micros(share(quota.burst().micros(), cost));
        if let Verdict::Admit(mut charge) = rule.decide(&mut state, now, cost) {
            rule.refund(&mut state, now, &mut charge);
            prop_assert_eq!(rule.usage(&state, now), before);
            rule.refund(&mut state, now, &mut charge);
            prop_assert_eq!(rule.usage(&state, now), before, "the second refund is a no-op");
        }
    }

    #[test]
    fn settling_never_grants_more_than_the_true_costs_allow(
        quota in quotas(),
        requests in prop::collection::vec((0_u64..300, 1_u64..900, 0_u64..900, 0_u64..600), 1..40),
    ) {
        // Whatever is estimated and settled later: counting true costs only, the envelope of the quota
        // plus what was admitted beyond its estimate holds.
        let rule = TokenBucket::new(quota);
        let mut now = start();
        let mut state = rule.fresh(now);
        let mut open: Vec<(u64, Charge, Cost)> = Vec::new();
        let mut spent: Vec<(Moment, Cost)> = Vec::new();
        for (step, estimate, true_cost, delay) in requests {
            now = now.plus(Duration::from_nanos(share(lead_nanos(&quota), step)));
            let (due, later): (Vec<_>, Vec<_>) = open.into_iter().partition(|(at, ..)| *at <= now.nanos());
            open = later;
            for (_, mut charge, true_cost) in due {
                rule.settle(&mut state, now, &mut charge, true_cost);
            }
            let estimate = Cost::from_micros(share(quota.burst().micros(), estimate).max(1));
            if let Verdict::Admit(charge) = rule.decide(&mut state, now, estimate) {
                let smaller = Cost::from_micros(share(estimate.micros(), true_cost));
                spent.push((now, smaller));
                open.push((now.plus(Duration::from_nanos(share(lead_nanos(&quota), delay))).nanos(), charge, smaller));
            }
        }
        assert_within_envelope(&quota, &spent, 1);
    }

    #[test]
    fn a_clock_that_goes_back_or_jumps_gives_no_free_burst_and_no_lock_out(
        quota in quotas(),
        jumps in prop::collection::vec((-3_600_000_000_000_i64..3_600_000_000_000, 0_u64..1_000), 1..40),
    ) {
        let lead = lead_nanos(&quota);
        let rule = TokenBucket::new(quota);
        let table = DueTable::new(MaxKeys::new(10).unwrap(), 7);
        let packed = table.enrol(&rule).unwrap();
        let limiter = AtomicDue::new();
        let fine = limiter.enrol(&rule).unwrap();
        let key = table.key("caller");
        let mut state = rule.fresh(start());
        let mut now = start();
        let (mut forward, mut in_state, mut in_limiter, mut in_table) = (0_u128, 0_u128, 0_u128, 0_u128);
        for (jump, cost) in jumps {
            let next = Moment::from_nanos(now.nanos().saturating_add_signed(jump));
            forward += next.since(now).as_nanos();
            now = next;
            let cost = Cost::from_micros(share(quota.burst().micros(), cost).max(1));
            in_state += rule.decide(&mut state, now, cost).admitted().map_or(0, |c| u128::from(c.cost().micros()));
            in_limiter += limiter.decide(&fine, now, cost).admitted().map_or(0, |c| u128::from(c.cost().micros()));
            in_table += table.decide(&packed, key, now, cost).admitted().map_or(0, |c| u128::from(c.cost().micros()));
            // Nobody is locked out: the slack and eight times the lead is the longest any wrong clock can cost.
            let soon = now.plus(Duration::from_nanos(lead.saturating_mul(8) + SLACK + 2_200_000_000));
            prop_assert!(rule.peek(&state, soon, cost).is_admit());
            prop_assert!(limiter.peek(&fine, soon, cost).is_admit());
        }
        let ticks = packed_tick(&quota);
        let granted = |slack: u128| (forward + slack) * u128::from(quota.amount().micros()) / quota.window().as_nanos();
        prop_assert!(in_state <= u128::from(quota.burst().micros()) + granted(41) + 1);
        prop_assert!(in_limiter <= u128::from(quota.burst().micros()) + granted(41) + 1);
        prop_assert!(in_table <= u128::from(quota.burst().micros()) + granted(41 * ticks) + 1);
        let soon = now.plus(Duration::from_nanos(lead.saturating_mul(8) + SLACK + 2_200_000_000));
        prop_assert!(table.decide(&packed, key, soon, Cost::from_micros(1)).is_admit());
    }

    #[test]
    fn threads_that_come_late_are_granted_no_time_twice(quota in quotas(), traffic in late_traffic()) {
        let rule = TokenBucket::new(quota);
        let (limiter, table) = (AtomicDue::new(), DueTable::new(MaxKeys::new(10).unwrap(), 7));
        let (fine, packed) = (limiter.enrol(&rule).unwrap(), table.enrol(&rule).unwrap());
        let key = table.key("caller");
        let mut arrived = start();
        let mut state = rule.fresh(start());
        let mut admitted = [(); 3].map(|()| Vec::new());
        for (step, late, cost) in traffic {
            arrived = arrived.plus(Duration::from_nanos(share(lead_nanos(&quota), step)));
            let told = Moment::from_nanos(arrived.nanos() - late);
            let cost = Cost::from_micros(share(quota.burst().micros(), cost).max(1));
            let answers = [
                rule.decide(&mut state, told, cost),
                limiter.decide(&fine, told, cost),
                table.decide(&packed, key, told, cost),
            ];
            for (answer, admitted) in answers.into_iter().zip(&mut admitted) {
                admitted.extend(answer.is_admit().then_some((told, arrived, cost)));
            }
        }
        for (admitted, slack) in admitted.iter().zip([1, 1, packed_tick(&quota)]) {
            assert_within_real_time(&quota, admitted, slack);
        }
    }

    #[test]
    fn a_cost_above_the_burst_is_refused_for_ever_and_only_that(quota in quotas(), extra in 1_u64..1_000_000_000) {
        let rule = TokenBucket::new(quota);
        let state = rule.fresh(start());
        let cost = quota.burst().plus(Cost::from_micros(extra.max(quota.burst().micros())));
        let refusal = rule.peek(&state, start(), cost).refusal().unwrap();
        prop_assert_eq!((refusal.reason, refusal.retry), (Reason::CostAboveBurst, Retry::Never));
        prop_assert!(rule.peek(&state, start(), quota.burst()).is_admit());
    }

    #[test]
    fn a_table_answers_as_the_plain_rule_does_when_ticks_are_nanoseconds(
        rate in prop::sample::select(vec![200_u32, 250, 500, 1_000]),
        burst in 1_u32..10,
        traffic in prop::collection::vec((0_u64..25_000_000, 1_u32..4), 1..80),
    ) {
        let quota = Quota::per_second(Cost::of(rate)).unwrap().with_burst(Cost::of(burst)).unwrap();
        let rule = TokenBucket::new(quota);
        let table = DueTable::new(MaxKeys::new(10).unwrap(), 7);
        let packed = table.enrol(&rule).unwrap();
        let key = table.key("caller");
        let mut now = start();
        let mut state = rule.fresh(now);
        for (step, cost) in traffic {
            now = now.plus(Duration::from_nanos(step));
            let plain = rule.decide(&mut state, now, Cost::of(cost)).refusal();
            prop_assert_eq!(table.decide(&packed, key, now, Cost::of(cost)).refusal(), plain);
            prop_assert_eq!(table.usage(&packed, key, now), rule.usage(&state, now));
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
                let consumed = u128::from(consumed).min(century(&quotas[plan]));
                prop_assert!(u128::from(used.micros()) >= consumed, "{used} of {consumed}");
            }
        }
    }

    #[test]
    fn a_new_quota_keeps_what_was_consumed(before in quotas(), after in quotas(), spent in 1_u64..1_000) {
        let (old, new) = (TokenBucket::new(before), TokenBucket::new(after));
        let limiter = AtomicDue::new();
        let table = DueTable::new(MaxKeys::new(10).unwrap(), 7);
        let key = table.key("caller");
        let cost = Cost::from_micros(share(before.burst().micros(), spent).max(1));
        let fine = (limiter.enrol(&old).unwrap(), limiter.enrol(&new).unwrap());
        let packed = (table.enrol(&old).unwrap(), table.enrol(&new).unwrap());
        let _ = limiter.decide(&fine.0, start(), cost);
        let _ = table.decide(&packed.0, key, start(), cost);
        let owed = cost.micros().min(u64::try_from(century(&after)).unwrap_or(u64::MAX));
        let grain = |quota: &Quota, ticks: u64| quota.burst().micros().div_ceil(lead_nanos(quota).max(1)) * ticks + 2;
        let used = limiter.usage(&fine.1, start()).used.micros();
        let is_owed = |used: u64, tolerance| used + tolerance >= owed && used <= cost.micros() + tolerance;
        prop_assert!(is_owed(used, grain(&before, 10) + grain(&after, 80)), "{used} of {owed}");
        let coarse = |quota: &Quota| quota.burst().micros() / (1 << 23) + 2;
        let used = table.usage(&packed.1, key, start()).used.micros();
        prop_assert!(is_owed(used, grain(&before, 10) + grain(&after, 80) + coarse(&before) + 8 * coarse(&after)), "{used} of {owed}");
    }
}

/// Asks a rule and its shell the same, step by step: how much later or earlier, what cost, and what it is settled to if it
/// is, in thousandths of lead, burst and cost.
fn answers_alike<R>(rule: &R, quota: &Quota, steps: &[(i64, u64, Option<u64>)]) -> Result<(), TestCaseError>
where
    R: Algorithm<Time = Moment, State = Due> + tidegate_core::rate::DueRule,
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
    R: Algorithm<Time = Moment, State = Due> + tidegate_core::rate::DueRule,
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
