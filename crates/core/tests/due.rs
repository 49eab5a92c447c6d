//! Limiters that keep one due number, where threads come late, plans share a counter and clocks begin anywhere.

use std::time::Duration;

use tidegate_core::keyed::{DueTable, MaxKeys};
use tidegate_core::rate::{Algorithm, TokenBucket};
use tidegate_core::shell::AtomicDue;
use tidegate_core::{Cost, Moment, Quota, Retry};

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
    let (limiter, table) = (AtomicDue::new(at(0)), table());
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
    let (limiter, table, rule) = (AtomicDue::new(at(0)), table(), bucket(4, 4));
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
