use super::*;

fn at(millis: u64) -> Moment {
    Moment::from_nanos(millis * 1_000_000)
}

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// 2 a second, warm after 4 s, three times the price when cold: threshold 4, full 8.
fn rule(max_wait: Duration) -> WarmUp {
    let quota = Quota::per_second(Cost::of(2)).unwrap();
    WarmUp::new(quota, Duration::from_secs(4), ColdFactor::THREE, max_wait).unwrap()
}

fn waits<const N: usize>(rule: &WarmUp, state: &mut Warmth, calls: [(u64, u32); N]) -> [u64; N] {
    calls.map(|(now, units)| {
        let charge = rule.decide(state, at(now), Cost::of(units)).admitted().unwrap();
        u64::try_from(charge.wait().as_micros()).unwrap()
    })
}

#[test]
fn the_worked_example_comes_out_as_written() {
    let rule = rule(Duration::from_secs(60));
    let mut state = rule.fresh(at(0));
    let due = [0, 1_375, 2_500, 3_375, 4_000, 4_500];
    for (number, due) in due.into_iter().enumerate() {
        let charge = rule.decide(&mut state, at(0), Cost::ONE).admitted().unwrap();
        assert_eq!(charge.wait(), millis(due));
        assert_eq!(state.level, i128::from(7_000_000 - 1_000_000 * u64::try_from(number).unwrap()));
    }
}

#[test]
fn a_large_request_is_granted_at_once_and_the_next_pays() {
    let rule = rule(Duration::from_secs(60));
    let mut state = rule.fresh(at(0));
    assert_eq!(waits(&rule, &mut state, [(0, 4), (0, 6), (0, 1)]), [0, 4_000_000, 7_000_000]);
}

#[test]
fn idleness_makes_the_next_requests_slower() {
    let rule = rule(Duration::from_secs(60));
    let mut state = rule.fresh(at(0));
    assert_eq!(waits(&rule, &mut state, [(0, 8)]), [0]);
    // All is paid at 6 s; the store fills at 2 a second, so at 9 s it holds 6: two above the threshold.
    assert_eq!(waits(&rule, &mut state, [(9_000, 1), (9_000, 1), (9_000, 1)]), [0, 875_000, 1_500_000]);
    // Cold again, as at first.
    assert_eq!(waits(&rule, &mut state, [(60_000, 1), (60_000, 1)]), [0, 1_375_000]);
}

#[test]
fn who_would_wait_too_long_is_refused_and_told_when() {
    let rule = rule(Duration::from_secs(1));
    let mut state = rule.fresh(at(0));
    assert!(rule.decide(&mut state, at(0), Cost::ONE).is_admit());
    let refused = Verdict::refuse(Reason::WaitTooLong, Retry::After(millis(375)));
    assert_eq!(rule.peek(&state, at(0), Cost::ONE), refused);
    let just_before = Moment::from_nanos(at(375).nanos() - 1);
    assert!(!rule.peek(&state, just_before, Cost::ONE).is_admit());
    assert_eq!(rule.peek(&state, at(375), Cost::ONE), Verdict::Admit(Duration::from_secs(1)));
}

#[test]
fn what_takes_over_400_days_to_grant_never_fits() {
    let quota = Quota::per_day(Cost::ONE).unwrap();
    let rule = WarmUp::new(quota, Duration::from_secs(4), ColdFactor::THREE, Duration::MAX).unwrap();
    let state = rule.fresh(at(0));
    assert!(rule.peek(&state, at(0), Cost::of(400)).is_admit());
    assert_eq!(
        rule.peek(&state, at(0), Cost::of(401)),
        Verdict::refuse(Reason::CostAboveBurst, Retry::Never)
    );
}

#[test]
fn a_refund_gives_back_what_is_still_owed() {
    let rule = rule(Duration::from_secs(60));
    let mut state = rule.fresh(at(0));
    let before = state;
    let mut charge = rule.decide(&mut state, at(0), Cost::of(8)).admitted().unwrap();
    rule.refund(&mut state, at(0), &mut charge);
    assert_eq!(state, before);
    let mut charge = rule.decide(&mut state, at(0), Cost::of(8)).admitted().unwrap();

    // The eight cost 6 s, of which two have passed.
    rule.refund(&mut state, at(2_000), &mut charge);
    assert_eq!(rule.usage(&state, at(2_000)).used, Cost::ZERO);
}

#[test]
fn a_refund_after_its_price_was_paid_gives_nothing() {
    let rule = rule(Duration::from_secs(60));
    let mut state = rule.fresh(at(0));
    let mut early = rule.decide(&mut state, at(0), Cost::ONE).admitted().unwrap();
    assert_eq!(waits(&rule, &mut state, [(2_000, 4)]), [0]);
    let before = state;
    rule.refund(&mut state, at(2_000), &mut early);
    assert_eq!(state, before);
}

#[test]
fn a_larger_true_cost_is_owed() {
    let rule = rule(Duration::from_secs(60));
    let mut state = rule.fresh(at(0));
    let mut charge = rule.decide(&mut state, at(0), Cost::ONE).admitted().unwrap();
    rule.settle(&mut state, at(0), &mut charge, Cost::of(4));
    assert_eq!(rule.usage(&state, at(0)).reset, Duration::from_secs(4));
}

#[test]
fn a_request_costs_at_most_a_full_store_and_what_the_longest_wait_grants() {
    let rule = rule(Duration::from_secs(2));
    let mut state = rule.fresh(at(0));
    let never = Verdict::refuse(Reason::CostAboveBurst, Retry::Never);
    assert_eq!(rule.peek(&state, at(0), Cost::of(13)), never);
    assert!(rule.decide(&mut state, at(0), Cost::of(12)).is_admit());
    // It takes 8 s, of which the next may wait for two.
    assert!(!rule.peek(&state, at(5_999), Cost::ONE).is_admit());
    assert!(rule.peek(&state, at(6_000), Cost::ONE).is_admit());
}

#[test]
fn a_request_of_one_amount_fits_however_short_the_warm_up() {
    let quota = Quota::per_minute(Cost::ONE).unwrap();
    let rule = WarmUp::new(quota, Duration::from_secs(4), ColdFactor::THREE, Duration::ZERO).unwrap();
    assert!(rule.peek(&rule.fresh(at(0)), at(0), Cost::ONE).is_admit());
    assert!(!rule.peek(&rule.fresh(at(0)), at(0), Cost::of(2)).is_admit());
}

#[test]
fn no_key_is_locked_out_for_longer_than_eight_extents() {
    // The extent is 8 s.
    let rule = rule(Duration::from_secs(2));
    let mut state = rule.fresh(at(0));
    for true_cost in [Cost::of(1_000), Cost::MAX, Cost::MAX] {
        let mut charge = Charge::new(Cost::ONE, 0);
        rule.settle(&mut state, at(0), &mut charge, true_cost);
        assert!(rule.usage(&state, at(0)).reset <= Duration::from_secs(64));
    }
    assert!(!rule.peek(&state, at(61_999), Cost::ONE).is_admit());
    assert!(rule.peek(&state, at(62_000), Cost::ONE).is_admit());
    // Nor when the debt passes to a slower rule, or the clock is set back.
    let quota = Quota::per_second(Cost::ONE).unwrap();
    let second = Duration::from_secs(1);
    let slower = WarmUp::new(quota, second, ColdFactor::THREE, second).unwrap();
    slower.carry(&rule, &mut state, at(0));
    // 1.5 s for a full store, and one more.
    assert_eq!(slower.usage(&state, at(0)).reset, Duration::from_secs(20));
}

#[test]
fn a_debt_beyond_counting_ends_within_eight_extents() {
    let quota = Quota::per_day(Cost::ONE).unwrap();
    let rule = WarmUp::new(quota, Duration::from_secs(4), ColdFactor::THREE, Duration::MAX).unwrap();
    let mut state = rule.fresh(at(0));
    let mut charge = rule.decide(&mut state, at(0), Cost::ZERO).admitted().unwrap();
    rule.settle(&mut state, at(0), &mut charge, Cost::MAX);
    assert!(rule.usage(&state, at(0)).reset <= 8 * (LONGEST + Duration::from_secs(6)));
}

#[test]
fn prices_that_are_no_whole_nanoseconds_are_rounded_up_once() {
    // Threshold 1.5 and full 3.5, which cost 1.5 s; then a third of a second each.
    let quota = Quota::per_second(Cost::of(3)).unwrap();
    let second = Duration::from_secs(1);
    let rule = WarmUp::new(quota, second, ColdFactor::times(2).unwrap(), Duration::MAX).unwrap();
    let mut state = rule.fresh(at(0));
    assert!(rule.decide(&mut state, at(0), "3.5".parse().unwrap()).is_admit());
    for owed in [1_833_333_334, 2_166_666_667, 2_500_000_000] {
        assert!(rule.decide(&mut state, at(0), Cost::ONE).is_admit());
        assert_eq!(rule.usage(&state, at(0)).reset, Duration::from_nanos(owed));
    }
}

#[test]
fn a_late_moment_counts_as_the_latest() {
    let rule = rule(Duration::from_secs(1));
    let mut state = rule.fresh(at(10_000));
    assert!(rule.decide(&mut state, at(10_000), Cost::of(4)).is_admit());
    let refused = rule.peek(&state, at(9_900), Cost::ONE).refusal().unwrap();
    assert_eq!(refused.retry, Retry::After(millis(3_100)));
}

#[test]
fn a_clock_set_back_keeps_debt_and_warmth() {
    let rule = rule(Duration::from_secs(1));
    let mut state = rule.fresh(at(3_600_000));
    assert!(rule.decide(&mut state, at(3_600_000), Cost::of(4)).is_admit());
    let refused = rule.decide(&mut state, at(0), Cost::ONE).refusal().unwrap();
    assert_eq!(refused.retry, Retry::After(Duration::from_secs(3)));
    assert_eq!(waits(&rule, &mut state, [(3_000, 1)]), [1_000_000]);
}

#[test]
fn a_new_rule_keeps_the_debt_in_units_and_the_share_of_warmth() {
    let before = rule(Duration::from_secs(60));
    let mut state = before.fresh(at(0));
    assert_eq!(waits(&before, &mut state, [(0, 4)]), [0]);
    let quota = Quota::per_second(Cost::of(4)).unwrap();
    let after =
        WarmUp::new(quota, Duration::from_secs(4), ColdFactor::THREE, Duration::from_secs(60)).unwrap();
    // 4 s at 2 a second are 8 units, which at 4 a second take 2 s; half of 8 becomes half of 16.
    after.carry(&before, &mut state, at(0));
    assert_eq!(after.usage(&state, at(0)).reset, Duration::from_secs(2));
    assert_eq!(state.level, 8_000_000);
}

#[test]
fn impossible_settings_are_refused_with_field_value_and_what_is_allowed() {
    let quota = Quota::per_second(Cost::of(2)).unwrap();
    let new = |quota, warm_up| {
        WarmUp::new(quota, warm_up, ColdFactor::THREE, Duration::ZERO).unwrap_err().to_string()
    };
    assert_eq!(new(quota, Duration::ZERO), "warm_up is 0ns, but must be more than 0 and at most 400 days");
    assert_eq!(
        new(Quota::per_day(Cost::ONE).unwrap(), Duration::from_nanos(1)),
        "warm_up is 1ns, but must be long enough for the quota to grant a millionth of a unit in it"
    );
    assert_eq!(
        new(Quota::per_second(Cost::MAX).unwrap(), Duration::from_secs(4)),
        "warm_up is 4s, but must be short enough for what the quota grants in it to be counted"
    );
    let burst = quota.with_burst(Cost::of(9)).unwrap();
    assert_eq!(
        new(burst, Duration::from_secs(4)),
        "burst is 9, but must be left out: this algorithm has none"
    );
}

#[test]
fn cold_factors_lie_above_one_and_up_to_a_thousand() {
    assert_eq!("3".parse::<ColdFactor>().unwrap(), ColdFactor::THREE);
    assert!("1.000001".parse::<ColdFactor>().is_ok() && ColdFactor::times(1_000).is_ok());
    for text in ["1", "0.5", "1000.1", "-3", "NaN", ""] {
        let problem = text.parse::<ColdFactor>().unwrap_err();
        assert_eq!((problem.field, problem.value.as_str()), ("cold_factor", text));
    }
    assert!(ColdFactor::times(1).is_err() && ColdFactor::times(1_001).is_err());
}
