//! Limiters that keep one due number, where threads come late, plans share a counter and clocks begin anywhere.

use std::time::Duration;

use tidegate_core::keyed::{DueTable, MaxKeys};
use tidegate_core::rate::{Algorithm, Smooth, TokenBucket};
use tidegate_core::shell::AtomicDue;
use tidegate_core::{Cost, Moment, Quota, Retry, Verdict};

fn at(millis: u64) -> Moment {
    Moment::from_nanos(1_790_000_000_000_000_000).plus(Duration::from_millis(millis))
}

fn bucket(rate: u32, burst: u32) -> TokenBucket {
    let quota = Quota::per_second(Cost::of(rate)).and_then(|quota| quota.with_burst(Cost::of(burst)));
    TokenBucket::new(quota.expect("a positive rate and burst"))
}

fn table() -> DueTable {
    DueTable::new(MaxKeys::new(10).expect("ten keys"), 7)
}

/// How much of what is asked for at these moments passes, one by one: of the plain rule, the shared limiter, the table.
fn passes(rule: TokenBucket, asks: &[(Moment, u32)]) -> [u32; 3] {
    let (limiter, table) = (AtomicDue::new(), table());
    let (fine, packed) =
        (limiter.enrol(&rule).expect("room for a rule"), table.enrol(&rule).expect("room for a rule"));
    let key = table.key("caller");
    let mut state = rule.fresh(asks[0].0);
    let mut passed = [0; 3];
    for &(now, units) in asks {
        for _ in 0..units {
            passed[0] += u32::from(rule.decide(&mut state, now, Cost::ONE).is_admit());
            passed[1] += u32::from(limiter.decide(&fine, now, Cost::ONE).is_admit());
            passed[2] += u32::from(table.decide(&packed, key, now, Cost::ONE).is_admit());
        }
    }
    passed
}

#[test]
fn a_thread_that_comes_late_makes_no_new_burst() {
    for (rate, burst) in [(1_000, 1), (1_000, 10), (10, 10), (1, 100)] {
        for late in [5, 30, 200, 900, 5_000, 30_000, 60_000] {
            let now = 3_600_000;
            let asks = [(at(now), burst), (at(now - late), 1), (at(now), burst)];
            assert_eq!(passes(bucket(rate, burst), &asks), [burst; 3], "{late} ms late, {burst} at {rate}/s");
        }
    }
}

#[test]
fn a_thread_that_comes_late_after_a_group_was_tidied_makes_no_new_burst() {
    // The group is tidied at the second moment, and the third lies before that.
    for late in [5, 900, 5_000, 60_000] {
        let asks = [(at(0), 10), (at(3_600_000), 10), (at(3_600_000 - late), 1), (at(3_600_000), 10)];
        assert_eq!(passes(bucket(1_000, 10), &asks), [20; 3], "{late} ms late");
    }
}

#[test]
fn a_clock_set_back_an_hour_gives_no_burst_and_refuses_for_no_longer_than_a_full_bucket() {
    let asks = [(at(7_200_000), 4), (at(3_600_000), 4), (at(3_601_000), 8)];
    assert_eq!(passes(bucket(4, 4), &asks), [8; 3]);
}

#[test]
fn a_clock_set_back_half_a_minute_is_waited_out_as_the_refusal_says() {
    let (limiter, table, rule) = (AtomicDue::new(), table(), bucket(4, 4));
    let (fine, packed) = (limiter.enrol(&rule).unwrap(), table.enrol(&rule).unwrap());
    let key = table.key("caller");
    assert!(limiter.decide(&fine, at(60_000), Cost::of(4)).is_admit());
    assert!(table.decide(&packed, key, at(60_000), Cost::of(4)).is_admit());
    let expected = Retry::After(Duration::from_millis(30_250));
    assert_eq!(limiter.decide(&fine, at(30_000), Cost::ONE).refusal().unwrap().retry, expected);
    let Retry::After(wait) = table.decide(&packed, key, at(30_000), Cost::ONE).refusal().unwrap().retry
    else {
        panic!("one fits a burst of four")
    };
    assert!(wait.abs_diff(Duration::from_millis(30_250)) < Duration::from_millis(2), "{wait:?}");
    assert!(limiter.decide(&fine, at(60_250), Cost::ONE).is_admit());
    assert!(table.decide(&packed, key, at(60_250), Cost::ONE).is_admit());
}

#[test]
fn a_late_thread_is_answered_as_in_the_example() {
    let rule = bucket(1_000, 1);
    let mut state = rule.fresh(at(0));
    assert!(rule.decide(&mut state, at(50), Cost::ONE).is_admit());
    for (told, wait) in [(10, 41), (50, 1)] {
        let refusal = rule.decide(&mut state, at(told), Cost::ONE).refusal().unwrap();
        assert_eq!(refusal.retry, Retry::After(Duration::from_millis(wait)));
    }
}

#[test]
fn a_late_settlement_loses_nothing_of_what_was_consumed() {
    let (limiter, table, rule) = (AtomicDue::new(), table(), bucket(1_000, 10));
    let (fine, packed) = (limiter.enrol(&rule).unwrap(), table.enrol(&rule).unwrap());
    let key = table.key("caller");
    for (true_cost, late) in [(4, 200), (5, 200), (4, 40), (8, 40)] {
        limiter.reset();
        table.reset(&packed, key, at(0));
        let (now, late) = (at(true_cost * 100_000), at(true_cost * 100_000 - late));
        let true_cost = Cost::of(u32::try_from(true_cost).unwrap());
        let mut charge = limiter.decide(&fine, now, Cost::of(5)).admitted().unwrap();
        let mut packed_charge = table.decide(&packed, key, now, Cost::of(5)).admitted().unwrap();
        assert!(limiter.decide(&fine, now, Cost::of(2)).is_admit());
        assert!(table.decide(&packed, key, now, Cost::of(2)).is_admit());
        limiter.settle(&fine, late, &mut charge, true_cost);
        table.settle(&packed, key, late, &mut packed_charge, true_cost);
        assert_eq!(limiter.usage(&fine, now).used, true_cost.plus(Cost::of(2)));
        assert_eq!(table.usage(&packed, key, now).used, true_cost.plus(Cost::of(2)));
    }
}

#[test]
fn a_late_refund_does_not_give_back_what_the_clock_has_granted_since() {
    let (limiter, rule) = (AtomicDue::new(), bucket(1_000, 10));
    let fine = limiter.enrol(&rule).unwrap();
    let mut charge = limiter.decide(&fine, at(0), Cost::of(10)).admitted().unwrap();
    assert!(limiter.decide(&fine, at(500), Cost::of(10)).is_admit());
    limiter.refund(&fine, at(0), &mut charge);
    assert_eq!(limiter.usage(&fine, at(500)).used, Cost::of(10));
}

#[test]
fn a_settlement_that_comes_later_than_any_debt_lasts_takes_nothing_more() {
    let (limiter, table, rule) = (AtomicDue::new(), table(), bucket(1_000, 10));
    let (fine, packed) = (limiter.enrol(&rule).unwrap(), table.enrol(&rule).unwrap());
    let key = table.key("caller");
    // A table that begins later knows that the settlement is late.
    assert_eq!(table.usage(&packed, key, at(0)).used, Cost::ZERO);
    let mut charge = limiter.decide(&fine, at(200), Cost::of(5)).admitted().unwrap();
    let mut slot = table.decide(&packed, key, at(200), Cost::of(5)).admitted().unwrap();
    // Eight times ten units drain in 80 ms.
    limiter.settle(&fine, at(0), &mut charge, Cost::of(8));
    table.settle(&packed, key, at(0), &mut slot, Cost::of(8));
    assert_eq!(limiter.usage(&fine, at(200)).used, Cost::of(5));
    assert_eq!(table.usage(&packed, key, at(200)).used, Cost::of(5));
}

#[test]
fn two_settlements_that_overtake_each_other_leave_no_more_debt_than_one() {
    let (limiter, table, rule) = (AtomicDue::new(), table(), bucket(10, 10));
    let (fine, packed) = (limiter.enrol(&rule).unwrap(), table.enrol(&rule).unwrap());
    let key = table.key("caller");
    let mut state = rule.fresh(at(0));
    let mut plain = [(); 2].map(|()| rule.decide(&mut state, at(0), Cost::ONE).admitted().unwrap());
    let mut charges = [(); 2].map(|()| limiter.decide(&fine, at(0), Cost::ONE).admitted().unwrap());
    let mut slots = [(); 2].map(|()| table.decide(&packed, key, at(0), Cost::ONE).admitted().unwrap());
    for (index, now) in [at(10), Moment::from_nanos(at(10).nanos() - 1_000)].into_iter().enumerate() {
        rule.settle(&mut state, now, &mut plain[index], Cost::of(1_000));
        limiter.settle(&fine, now, &mut charges[index], Cost::of(1_000));
        table.settle(&packed, key, now, &mut slots[index], Cost::of(1_000));
    }
    let usages =
        [rule.usage(&state, at(10)), limiter.usage(&fine, at(10)), table.usage(&packed, key, at(10))];
    for usage in usages {
        assert!(usage.reset.abs_diff(Duration::from_secs(8)) < Duration::from_millis(1), "{usage:?}");
    }
}

#[test]
fn a_rule_that_is_replaced_a_little_late_leaves_its_heir_no_more_debt_than_the_heir_allows() {
    let (limiter, table, rules) = (AtomicDue::new(), table(), [bucket(10, 10), bucket(10, 1)]);
    let [fine, heir] = rules.map(|rule| limiter.enrol(&rule).unwrap());
    let [packed, packed_heir] = rules.map(|rule| table.enrol(&rule).unwrap());
    let key = table.key("caller");
    let mut state = rules[0].fresh(at(0));
    let mut plain = rules[0].decide(&mut state, at(0), Cost::ONE).admitted().unwrap();
    let mut charge = limiter.decide(&fine, at(0), Cost::ONE).admitted().unwrap();
    let mut slot = table.decide(&packed, key, at(0), Cost::ONE).admitted().unwrap();
    rules[0].settle(&mut state, at(10), &mut plain, Cost::of(1_000));
    limiter.settle(&fine, at(10), &mut charge, Cost::of(1_000));
    table.settle(&packed, key, at(10), &mut slot, Cost::of(1_000));
    let late = Moment::from_nanos(at(10).nanos() - 1_000);
    rules[1].carry(&rules[0], &mut state, late);
    limiter.retire(fine, &heir, late);
    table.retire(packed, &packed_heir, late);
    let usages = [
        rules[1].usage(&state, at(10)),
        limiter.usage(&heir, at(10)),
        table.usage(&packed_heir, key, at(10)),
    ];
    for usage in usages {
        assert!(usage.reset.abs_diff(Duration::from_millis(800)) < Duration::from_millis(1), "{usage:?}");
    }
}

/// Takes `cost` at these two moments, refunds the first at the third, and says how much more of it passes at the last:
/// of the plain rule, the shared limiter, the table.
fn passes_after_refund(rule: TokenBucket, cost: u32, [first, second, refund, last]: [Moment; 4]) -> [u32; 3] {
    let (limiter, table) = (AtomicDue::new(), table());
    let (fine, packed) =
        (limiter.enrol(&rule).expect("room for a rule"), table.enrol(&rule).expect("room for a rule"));
    let key = table.key("caller");
    let mut state = rule.fresh(first);
    let mut taken = [first, second].map(|now| {
        let plain = rule.decide(&mut state, now, Cost::of(cost)).admitted().expect("a full bucket");
        let shared = limiter.decide(&fine, now, Cost::of(cost)).admitted().expect("a full bucket");
        let slot = table.decide(&packed, key, now, Cost::of(cost)).admitted().expect("a full bucket");
        [plain, shared, slot]
    });
    let [plain, shared, slot] = &mut taken[0];
    rule.refund(&mut state, refund, plain);
    limiter.refund(&fine, refund, shared);
    table.refund(&packed, key, refund, slot);
    let mut passed = [0; 3];
    for _ in 0..cost {
        passed[0] += u32::from(rule.decide(&mut state, last, Cost::ONE).is_admit());
        passed[1] += u32::from(limiter.decide(&fine, last, Cost::ONE).is_admit());
        passed[2] += u32::from(table.decide(&packed, key, last, Cost::ONE).is_admit());
    }
    passed
}

#[test]
fn a_refund_that_comes_a_little_late_gives_back_nothing_that_the_clock_has_granted_since() {
    for later in [10, 20, 50, 80, 200] {
        let moments = [at(0), at(later), at(0), at(later)];
        assert_eq!(passes_after_refund(bucket(1_000, 10), 10, moments), [0; 3], "{later} ms late");
    }
}

#[test]
fn a_charge_of_before_the_clock_was_set_back_gives_nothing_back() {
    let moments = [at(3_600_000), at(3_605_000), at(5_000), at(5_000)];
    assert_eq!(passes_after_refund(bucket(10, 10), 10, moments), [0; 3]);
}

#[test]
fn a_key_without_debt_gets_back_what_it_borrowed() {
    let one = Quota::per_second(Cost::ONE).expect("a positive rate");
    let rule = Smooth::new(one, Duration::from_secs(9)).expect("ten seconds");
    let (limiter, table) = (AtomicDue::new(), table());
    let (fine, packed) = (limiter.enrol(&rule).unwrap(), table.enrol(&rule).unwrap());
    let key = table.key("caller");
    let mut charges = [9, 10].map(|cost| limiter.decide(&fine, at(0), Cost::of(cost)).admitted().unwrap());
    let mut slots = [9, 10].map(|cost| table.decide(&packed, key, at(0), Cost::of(cost)).admitted().unwrap());
    limiter.refund(&fine, at(0), &mut charges[0]);
    table.refund(&packed, key, at(0), &mut slots[0]);
    for used in [limiter.usage(&fine, at(0)).used, table.usage(&packed, key, at(0)).used] {
        assert!(used.micros().abs_diff(10_000_000) < 100, "{used}");
    }
}

#[test]
fn a_charge_gives_back_nothing_of_what_a_faster_plan_has_granted_and_consumed_since() {
    let (limiter, table) = (AtomicDue::new(), table());
    let daily = TokenBucket::new(Quota::per_day(Cost::of(1_000)).unwrap());
    let plans = [daily, bucket(1_000, 1_000)];
    let fine = plans.map(|rule| limiter.enrol(&rule).unwrap());
    let packed = plans.map(|rule| table.enrol(&rule).unwrap());
    let key = table.key("caller");
    let mut charge = limiter.decide(&fine[0], at(0), Cost::of(999)).admitted().unwrap();
    let mut slot = table.decide(&packed[0], key, at(0), Cost::of(999)).admitted().unwrap();
    // Under the faster plan all of it is granted anew within a second, and a little more for rounding.
    for (now, cost) in [(0, 1), (1_001, 1_000)] {
        assert!(limiter.decide(&fine[1], at(now), Cost::of(cost)).is_admit());
        assert!(table.decide(&packed[1], key, at(now), Cost::of(cost)).is_admit());
    }
    limiter.refund(&fine[0], at(1_001), &mut charge);
    table.refund(&packed[0], key, at(1_001), &mut slot);
    assert!(!limiter.decide(&fine[1], at(1_001), Cost::ONE).is_admit());
    assert!(!table.decide(&packed[1], key, at(1_001), Cost::ONE).is_admit());
}

#[test]
fn a_charge_of_a_smaller_plan_owes_more_but_gives_nothing_back_of_what_the_larger_consumed() {
    let (limiter, table) = (AtomicDue::new(), table());
    let (small, large) = (bucket(10, 10), bucket(1_000, 1_000));
    let fine = [small, large].map(|rule| limiter.enrol(&rule).unwrap());
    let packed = [small, large].map(|rule| table.enrol(&rule).unwrap());
    let key = table.key("caller");
    for (true_cost, counted) in [(0, 1), (1, 1), (3, 3)] {
        let true_cost = Cost::of(true_cost);
        limiter.reset();
        table.reset(&packed[0], key, at(0));
        let mut charge = limiter.decide(&fine[0], at(0), Cost::ONE).admitted().unwrap();
        let mut packed_charge = table.decide(&packed[0], key, at(0), Cost::ONE).admitted().unwrap();
        assert!(limiter.decide(&fine[1], at(0), Cost::of(500)).is_admit());
        assert!(table.decide(&packed[1], key, at(0), Cost::of(500)).is_admit());
        limiter.settle(&fine[0], at(0), &mut charge, true_cost);
        table.settle(&packed[0], key, at(0), &mut packed_charge, true_cost);
        let expected = Cost::of(500 + counted).micros();
        for used in [limiter.usage(&fine[1], at(0)).used, table.usage(&packed[1], key, at(0)).used] {
            assert!(used.micros().abs_diff(expected) < 100, "{used}");
        }
    }
}

#[test]
fn a_refusal_of_a_smaller_plan_says_when_what_the_larger_consumed_has_drained() {
    let (limiter, table) = (AtomicDue::new(), table());
    let (small, large) = (bucket(10, 10), bucket(1_000, 1_000));
    let fine = [small, large].map(|rule| limiter.enrol(&rule).unwrap());
    let packed = [small, large].map(|rule| table.enrol(&rule).unwrap());
    let key = table.key("caller");
    assert!(limiter.decide(&fine[1], at(0), Cost::of(500)).is_admit());
    assert!(table.decide(&packed[1], key, at(0), Cost::of(500)).is_admit());
    let refusals =
        [limiter.decide(&fine[0], at(0), Cost::ONE), table.decide(&packed[0], key, at(0), Cost::ONE)];
    for refusal in refusals {
        let Verdict::Refuse(refusal) = refusal else { panic!("500 are more than 10") };
        // 491 must drain at 10 a second.
        let Retry::After(wait) = refusal.retry else { panic!("one fits ten") };
        assert!(wait.abs_diff(Duration::from_millis(49_100)) < Duration::from_millis(1), "{wait:?}");
    }
    assert_eq!(limiter.usage(&fine[1], at(0)).used, Cost::of(500));
    assert!(!table.decide(&packed[1], key, at(0), Cost::of(501)).is_admit());
}

#[test]
fn a_limiter_may_be_used_with_moments_however_large_and_far_apart() {
    let (limiter, rule) = (AtomicDue::new(), bucket(5, 3));
    let fine = limiter.enrol(&rule).unwrap();
    let (year, mut now) = (365 * 86_400_000_000_000_u64, Moment::ORIGIN);
    for step in [0, 1, 17, 17, 3, 1, 9, 17, 17, 2, 17, 17, 17, 17, 17] {
        now = Moment::from_nanos(now.nanos() + step * year).plus(Duration::from_secs(1));
        assert!(limiter.decide(&fine, now, Cost::of(3)).is_admit(), "{now:?}");
        let retry = limiter.decide(&fine, now, Cost::ONE).refusal().unwrap().retry;
        assert_eq!(retry, Retry::After(Duration::from_millis(200)));
    }
}

#[test]
fn a_limiter_never_used_is_fresh_at_every_moment() {
    let rule = bucket(5, 3);
    for bits in 0..64 {
        for now in [(1 << bits) - 1, 1 << bits, (1 << bits) + 1] {
            let limiter = AtomicDue::new();
            let fine = limiter.enrol(&rule).unwrap();
            let now = Moment::from_nanos(now);
            assert_eq!(limiter.usage(&fine, now).used, Cost::ZERO);
            assert!(limiter.decide(&fine, now, Cost::of(3)).is_admit(), "{now:?}");
            assert!(!limiter.decide(&fine, now, Cost::ONE).is_admit(), "{now:?}");
        }
    }
}

#[test]
fn a_charge_of_before_a_reset_is_not_given_back_from_what_others_took_since() {
    let (limiter, table, rule) = (AtomicDue::new(), table(), bucket(10, 10));
    let (fine, packed) = (limiter.enrol(&rule).unwrap(), table.enrol(&rule).unwrap());
    let (key, other) = (table.key("caller"), table.key("other"));
    let mut first = limiter.decide(&fine, at(0), Cost::of(10)).admitted().unwrap();
    let mut packed_first = table.decide(&packed, key, at(0), Cost::of(10)).admitted().unwrap();
    let mut others = table.decide(&packed, other, at(0), Cost::of(10)).admitted().unwrap();
    limiter.reset();
    table.reset(&packed, key, at(0));
    let mut second = limiter.decide(&fine, at(0), Cost::of(10)).admitted().unwrap();
    let mut packed_second = table.decide(&packed, key, at(0), Cost::of(10)).admitted().unwrap();
    limiter.refund(&fine, at(0), &mut first);
    table.refund(&packed, key, at(0), &mut packed_first);
    assert!(!limiter.decide(&fine, at(0), Cost::ONE).is_admit());
    assert!(!table.decide(&packed, key, at(0), Cost::ONE).is_admit());
    // What was taken since, and what other keys took, is given back.
    limiter.refund(&fine, at(0), &mut second);
    table.refund(&packed, key, at(0), &mut packed_second);
    table.refund(&packed, other, at(0), &mut others);
    assert!(limiter.decide(&fine, at(0), Cost::of(10)).is_admit());
    assert!(table.decide(&packed, key, at(0), Cost::of(10)).is_admit());
    assert!(table.decide(&packed, other, at(0), Cost::of(10)).is_admit());
}

#[test]
fn a_reset_is_not_forgotten_however_many_follow() {
    let (limiter, table) = (AtomicDue::new(), table());
    let daily = TokenBucket::new(Quota::per_day(Cost::of(1_000)).unwrap());
    let (fine, packed) = (limiter.enrol(&daily).unwrap(), table.enrol(&daily).unwrap());
    let key = table.key("ann");
    let mut charge = limiter.decide(&fine, at(0), Cost::of(1_000)).admitted().unwrap();
    let mut slot = table.decide(&packed, key, at(0), Cost::of(1_000)).admitted().unwrap();
    limiter.reset();
    table.reset(&packed, key, at(0));
    for other in 1..2_048 {
        limiter.reset();
        table.reset(&packed, table.key(&other), at(0));
    }
    assert!(limiter.decide(&fine, at(0), Cost::of(1_000)).is_admit());
    assert!(table.decide(&packed, key, at(0), Cost::of(1_000)).is_admit());
    limiter.refund(&fine, at(0), &mut charge);
    table.refund(&packed, key, at(0), &mut slot);
    assert!(!limiter.decide(&fine, at(0), Cost::ONE).is_admit());
    assert!(!table.decide(&packed, key, at(0), Cost::ONE).is_admit());
}

#[test]
fn what_is_taken_at_the_origin_can_be_given_back_to_the_grain() {
    let (limiter, rule) = (AtomicDue::new(), bucket(5, 3));
    let fine = limiter.enrol(&rule).unwrap();
    for cost in [Cost::ZERO, Cost::of(3)] {
        let mut charge = limiter.decide(&fine, Moment::ORIGIN, cost).admitted().unwrap();
        limiter.refund(&fine, Moment::ORIGIN, &mut charge);
        assert_eq!(limiter.usage(&fine, Moment::ORIGIN).used, Cost::ZERO);
    }
}
