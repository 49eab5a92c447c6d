use super::*;

fn at(millis: u64) -> Moment {
    Moment::from_nanos(millis * 1_000_000)
}

fn three_a_second() -> SlidingLog {
    SlidingLog::new(Quota::per_second(Cost::of(3)).unwrap()).unwrap()
}

fn refused_for(millis: u64) -> Verdict<Duration> {
    Verdict::refuse(Reason::QuotaSpent, Retry::After(Duration::from_millis(millis)))
}

#[test]
fn the_worked_example_comes_out_as_written() {
    let rule = three_a_second();
    let mut state = rule.fresh(at(0));
    assert!(rule.decide(&mut state, at(0), Cost::ONE).is_admit());
    assert!(rule.decide(&mut state, at(400), Cost::ONE).is_admit());
    assert_eq!(rule.peek(&state, at(400), Cost::of(2)), refused_for(600));
    assert_eq!(rule.peek(&state, at(999), Cost::of(2)), refused_for(1));
    assert_eq!(rule.peek(&state, at(1_000), Cost::of(2)), Verdict::Admit(Duration::ZERO));
    let usage = rule.usage(&state, at(1_000));
    assert_eq!((usage.used, usage.remaining), (Cost::ONE, Cost::of(2)));
    assert_eq!(usage.reset, Duration::from_millis(400));
}

#[test]
fn a_full_log_merges_its_oldest_into_the_later_and_errs_towards_no() {
    let rule = three_a_second().with_capacity(2).unwrap();
    let mut state = rule.fresh(at(0));
    for millis in [0, 100, 200] {
        assert!(rule.decide(&mut state, at(millis), Cost::ONE).is_admit());
    }
    // The one of 0 ms counts as if it had come at 100 ms, and so leaves 100 ms late, never early.
    assert_eq!(rule.peek(&state, at(900), Cost::ONE), refused_for(200));
    assert_eq!(rule.usage(&state, at(1_099)).used, Cost::of(3));
    assert_eq!(rule.usage(&state, at(1_100)).used, Cost::ONE);
}

#[test]
fn a_log_of_one_place_still_counts_everything() {
    let rule = three_a_second().with_capacity(1).unwrap();
    let mut state = rule.fresh(at(0));
    for millis in [0, 400, 800] {
        assert!(rule.decide(&mut state, at(millis), Cost::ONE).is_admit());
    }
    assert_eq!(rule.peek(&state, at(800), Cost::ONE), refused_for(1_000));
}

#[test]
fn requests_of_one_moment_share_a_place() {
    let rule = three_a_second().with_capacity(2).unwrap();
    let mut state = rule.fresh(at(0));
    for _ in 0..2 {
        assert!(rule.decide(&mut state, at(0), Cost::ONE).is_admit());
    }
    assert!(rule.decide(&mut state, at(500), Cost::ONE).is_admit());
    assert_eq!(rule.peek(&state, at(500), Cost::ONE), refused_for(500));
}

#[test]
fn a_refund_counts_while_its_entry_does() {
    let rule = three_a_second();
    let mut state = rule.fresh(at(0));
    let mut first = rule.decide(&mut state, at(0), Cost::ONE).admitted().unwrap();
    let mut second = rule.decide(&mut state, at(400), Cost::of(2)).admitted().unwrap();
    rule.refund(&mut state, at(1_000), &mut first);
    assert_eq!(rule.usage(&state, at(1_000)).used, Cost::of(2));
    rule.settle(&mut state, at(1_000), &mut second, Cost::ONE);
    assert_eq!(rule.usage(&state, at(1_000)).used, Cost::ONE);
}

#[test]
fn a_refund_reaches_an_entry_that_was_merged() {
    let rule = three_a_second().with_capacity(2).unwrap();
    let mut state = rule.fresh(at(0));
    let mut first = rule.decide(&mut state, at(0), Cost::ONE).admitted().unwrap();
    for millis in [100, 200] {
        assert!(rule.decide(&mut state, at(millis), Cost::ONE).is_admit());
    }
    rule.refund(&mut state, at(300), &mut first);
    assert_eq!(rule.usage(&state, at(300)).used, Cost::of(2));
}

#[test]
fn a_larger_true_cost_is_owed_for_one_window() {
    let rule = three_a_second();
    let mut state = rule.fresh(at(0));
    let mut charge = rule.decide(&mut state, at(0), Cost::ONE).admitted().unwrap();
    rule.settle(&mut state, at(700), &mut charge, Cost::MAX);
    assert_eq!(rule.peek(&state, at(700), Cost::ZERO), refused_for(1_000));
    assert!(rule.is_idle(&state, at(1_700)));
}

#[test]
fn late_moments_count_as_the_latest() {
    let rule = three_a_second();
    let mut state = rule.fresh(at(0));
    assert!(rule.decide(&mut state, at(1_000), Cost::ONE).is_admit());
    assert!(rule.decide(&mut state, at(900), Cost::of(2)).is_admit());
    assert_eq!(rule.peek(&state, at(900), Cost::ONE), refused_for(1_100));
    assert_eq!(rule.peek(&state, at(1_999), Cost::ONE), refused_for(1));
    assert_eq!(rule.usage(&state, at(1_000)).reset, Duration::from_secs(1));
}

#[test]
fn a_charge_from_before_the_clock_was_set_back_is_not_given_back() {
    let rule = three_a_second();
    let mut state = rule.fresh(at(3_600_000));
    let mut charge = rule.decide(&mut state, at(3_600_000), Cost::of(3)).admitted().unwrap();
    rule.refund(&mut state, at(0), &mut charge);
    assert_eq!(rule.usage(&state, at(0)).used, Cost::of(3));
}

#[test]
fn a_clock_set_back_neither_grants_anew_nor_locks_out() {
    let rule = three_a_second();
    let mut state = rule.fresh(at(3_600_000));
    assert!(rule.decide(&mut state, at(3_600_000), Cost::of(3)).is_admit());
    assert_eq!(rule.peek(&state, at(0), Cost::ONE), refused_for(1_000));
    assert!(!rule.decide(&mut state, at(0), Cost::ONE).is_admit());
    assert!(!rule.decide(&mut state, at(999), Cost::ONE).is_admit());
    assert!(rule.decide(&mut state, at(1_000), Cost::of(3)).is_admit());
}

#[test]
fn a_new_quota_keeps_what_its_window_still_reaches() {
    let before = three_a_second();
    let mut state = before.fresh(at(0));
    for millis in [0, 400, 800] {
        assert!(before.decide(&mut state, at(millis), Cost::ONE).is_admit());
    }
    let wider = SlidingLog::new(Quota::per_minute(Cost::of(10)).unwrap()).unwrap();
    wider.carry(&before, &mut state, at(900));
    assert_eq!(wider.usage(&state, at(900)).remaining, Cost::of(7));

    let smaller = wider.clone().with_capacity(2).unwrap();
    smaller.carry(&wider, &mut state, at(900));
    assert_eq!(smaller.usage(&state, at(900)).remaining, Cost::of(7));
    assert_eq!(smaller.peek(&state, at(900), Cost::of(8)), refused_for(59_500));
}

#[test]
fn capacity_follows_the_amount_within_bounds() {
    let capacity = |amount| SlidingLog::new(Quota::per_second(amount).unwrap()).unwrap().capacity;
    assert_eq!(capacity("0.5".parse().unwrap()), 1);
    assert_eq!(capacity(Cost::of(30)), 30);
    assert_eq!(capacity(Cost::MAX), 4_096);
    for capacity in [0, 65_537] {
        assert_eq!(three_a_second().with_capacity(capacity).unwrap_err().field, "capacity");
    }
}

fn ten_a_second() -> SlidingLog {
    SlidingLog::new(Quota::per_second(Cost::of(10)).unwrap()).unwrap()
}

#[test]
fn a_ring_comes_with_the_first_entry_and_doubles_up_to_the_capacity() {
    for (rule, expected) in
        [(ten_a_second(), &[4, 4, 4, 4, 8, 8, 8, 8, 10, 10][..]), (three_a_second(), &[3, 3, 3])]
    {
        let mut state = rule.fresh(at(0));
        assert!(rule.peek(&state, at(0), Cost::ONE).is_admit());
        assert_eq!((rule.usage(&state, at(0)).used, state.entries.len()), (Cost::ZERO, 0));
        for (millis, places) in (0..).zip(expected) {
            assert!(rule.decide(&mut state, at(millis), Cost::ONE).is_admit());
            assert_eq!(state.entries.len(), *places);
        }
        assert!(!rule.decide(&mut state, at(999), Cost::ONE).is_admit());
        assert!(rule.decide(&mut state, at(1_000), Cost::ONE).is_admit());
        assert_eq!(state.entries.len() * size_of::<Entry>(), rule.most_heap());
    }
}

#[test]
fn a_ring_that_has_come_round_grows_without_losing_an_entry() {
    let rule = ten_a_second();
    let mut state = rule.fresh(at(0));
    for millis in [0, 100, 200, 1_050, 1_060, 1_070, 1_080] {
        assert!(rule.decide(&mut state, at(millis), Cost::ONE).is_admit());
    }
    assert_eq!((state.entries.len(), state.first), (8, 0));
    // Of 100 and 200 ms, and of the four after.
    assert_eq!(rule.usage(&state, at(1_080)).used, Cost::of(6));
    for (millis, used) in [(1_100, 5), (1_200, 4), (2_050, 3), (2_080, 0)] {
        assert_eq!(rule.usage(&state, at(millis)).used, Cost::of(used));
    }
}

#[test]
fn who_gets_a_cell_that_was_used_finds_its_ring_in_it() {
    let rule = ten_a_second();
    let mut state = rule.fresh(at(0));
    for millis in 0..6 {
        assert!(rule.decide(&mut state, at(millis), Cost::ONE).is_admit());
    }
    rule.renew(&mut state, at(9_000));
    assert_eq!((state.entries.len(), rule.usage(&state, at(9_000)).used), (8, Cost::ZERO));
    assert!(rule.is_idle(&state, at(9_000)) && rule.decide(&mut state, at(9_000), Cost::of(10)).is_admit());
    // A rule with fewer places gives back those beyond them.
    three_a_second().renew(&mut state, at(9_000));
    assert_eq!(state.entries.len(), 0);
}
