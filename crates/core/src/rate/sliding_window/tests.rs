use super::*;

const SECOND: u64 = 1_000_000_000;

fn at(millis: u64) -> Moment {
    Moment::from_nanos(millis * 1_000_000)
}

fn hundred_a_minute(buckets: u32) -> SlidingWindow {
    let quota = Quota::per_minute(Cost::of(100)).unwrap();
    SlidingWindow::new(quota).unwrap().with_sub_buckets(buckets).unwrap()
}

/// 80 in the minute before `at(60_000)`, 30 in the one that begins there.
fn worked_example(rule: &SlidingWindow) -> BucketCounts {
    let mut state = rule.fresh(at(0));
    state.take(Cost::of(80));
    rule.advance(&mut state, at(60_000));
    state.take(Cost::of(30));
    state
}

fn refused_for(millis: u64) -> Verdict<Duration> {
    Verdict::refuse(Reason::QuotaSpent, Retry::After(Duration::from_millis(millis)))
}

/// Sends one request a millisecond from `from` until `until`, and returns when the admitted ones came.
fn flood(rule: &SlidingWindow, state: &mut BucketCounts, from: u64, until: u64) -> Vec<u64> {
    (from..until).filter(|millis| rule.decide(state, at(*millis), Cost::ONE).is_admit()).collect()
}

/// The most that were admitted in any stretch of `length` milliseconds.
fn most_within(admitted: &[u64], length: u64) -> usize {
    (0..admitted.len())
        .map(|first| admitted[first..].iter().take_while(|at| **at - admitted[first] < length).count())
        .max()
        .unwrap()
}

#[test]
fn the_worked_example_comes_out_as_written() {
    let rule = hundred_a_minute(1);
    let state = worked_example(&rule);
    let admit = Verdict::Admit(Duration::ZERO);
    for (millis, ten, eleven) in [
        (60_000, refused_for(15_000), refused_for(15_750)),
        (75_000, admit, refused_for(750)),
        (75_750, admit, admit),
    ] {
        assert_eq!(rule.peek(&state, at(millis), Cost::of(10)), ten);
        assert_eq!(rule.peek(&state, at(millis), Cost::of(11)), eleven);
    }
    let usage = rule.usage(&state, at(75_000));
    assert_eq!((usage.used, usage.remaining), (Cost::of(90), Cost::of(10)));
    assert_eq!(usage.reset, Duration::from_secs(105));
}

#[test]
fn a_retry_may_lie_in_the_next_window() {
    let rule = hundred_a_minute(1);
    let mut state = rule.fresh(at(0));
    assert!(rule.decide(&mut state, at(30_000), Cost::of(100)).is_admit());
    // In the next minute the 100 decay by one every 600 ms.
    assert_eq!(rule.peek(&state, at(30_000), Cost::ONE), refused_for(30_600));
}

#[test]
fn a_flood_after_a_burst_gets_the_decay_and_no_second_burst() {
    let rule = hundred_a_minute(1);
    let mut state = rule.fresh(at(0));
    let admitted = flood(&rule, &mut state, 59_800, 200_000);
    assert_eq!(most_within(&admitted, 200), 100);
    assert_eq!(most_within(&admitted, 60_000), 199);
    for length in [1, 600, 6_000, 30_000, 60_000, 120_000] {
        let bound = 100 + 100 * usize::try_from(length).unwrap() / 60_000;
        assert!(most_within(&admitted, length) <= bound, "{length} ms");
    }
}

#[test]
fn sub_buckets_hold_stretches_just_short_of_the_window_to_the_amount() {
    for buckets in [2, 6, 10, 60] {
        let rule = hundred_a_minute(buckets);
        let mut state = rule.fresh(at(0));
        let admitted = flood(&rule, &mut state, 59_800, 200_000);
        let bucket = 60_000 / u64::from(buckets);
        assert_eq!(most_within(&admitted, 60_000 - bucket), 100, "{buckets} buckets");
    }
}

#[test]
fn an_even_stream_is_estimated_to_within_one_request() {
    for buckets in [1, 7, 64] {
        let rule = hundred_a_minute(buckets);
        let mut state = rule.fresh(at(0));
        for number in 0..1_000 {
            let now = at(1_200 * number);
            assert!(rule.decide(&mut state, now, Cost::ONE).is_admit());
            let true_count = Cost::of(u32::try_from((number + 1).min(50)).unwrap());
            let used = rule.usage(&state, now).used;
            let error = used.minus(true_count).max(true_count.minus(used));
            assert!(error <= Cost::ONE, "{buckets} buckets, request {number}: {used}");
        }
    }
}

#[test]
fn an_even_stream_of_the_whole_amount_loses_at_most_one_request_a_window() {
    let rule = hundred_a_minute(1);
    let mut state = rule.fresh(at(0));
    for window in 0..10 {
        let requests = (0..100).map(|number| at(60_000 * window + 600 * number));
        let refused = requests.filter(|now| !rule.decide(&mut state, *now, Cost::ONE).is_admit()).count();
        assert!(refused <= 1, "{refused} refused in window {window}");
    }
}

#[test]
fn the_error_is_at_most_the_content_of_one_bucket() {
    // All at the start of a window and then quiet: an exact log is empty one window later.
    for buckets in [1, 6] {
        let rule = hundred_a_minute(buckets);
        let mut state = rule.fresh(at(0));
        assert!(rule.decide(&mut state, at(0), Cost::of(100)).is_admit());
        assert_eq!(rule.usage(&state, at(60_000)).used, Cost::of(100));
        let bucket = 60_000 / u64::from(buckets);
        assert!(rule.is_idle(&state, at(60_000 + bucket)), "{buckets} buckets");
        assert!(!rule.is_idle(&state, at(60_000 + bucket - 1)), "{buckets} buckets");
    }
}

#[test]
fn buckets_that_are_no_whole_nanoseconds_stay_exact() {
    let quota = Quota::new(Cost::of(3), Duration::from_nanos(1_000)).unwrap();
    let rule = SlidingWindow::new(quota).unwrap().with_sub_buckets(7).unwrap();
    let mut state = rule.fresh(Moment::ORIGIN);
    assert!(rule.decide(&mut state, Moment::ORIGIN, Cost::of(3)).is_admit());
    // The bucket of the three leaves between 1000 ns and 8/7 of that, a third of the way at 1047.6.
    assert_eq!(
        rule.peek(&state, Moment::ORIGIN, Cost::ONE),
        Verdict::refuse(Reason::QuotaSpent, Retry::After(Duration::from_nanos(1_048)))
    );
    assert_eq!(rule.usage(&state, Moment::ORIGIN).reset, Duration::from_nanos(1_143));
}

#[test]
fn the_last_nanosecond_of_a_window_is_not_overlooked() {
    let quota = Quota::new(Cost::of(1_000), Duration::from_nanos(1_000)).unwrap();
    let rule = SlidingWindow::new(quota).unwrap();
    let mut state = rule.fresh(Moment::ORIGIN);
    assert!(rule.decide(&mut state, Moment::ORIGIN, Cost::of(1_000)).is_admit());
    // One of the thousand may still count, and does so at 1999 ns.
    assert_eq!(
        rule.peek(&state, Moment::ORIGIN, Cost::of(999)),
        Verdict::refuse(Reason::QuotaSpent, Retry::After(Duration::from_nanos(1_999)))
    );
}

#[test]
fn a_refund_counts_while_its_bucket_does() {
    let rule = hundred_a_minute(1);
    let mut state = rule.fresh(at(0));
    let mut first = rule.decide(&mut state, at(0), Cost::of(40)).admitted().unwrap();
    let mut second = rule.decide(&mut state, at(0), Cost::of(40)).admitted().unwrap();
    rule.refund(&mut state, at(90_000), &mut first);
    assert_eq!(rule.usage(&state, at(90_000)).used, Cost::of(20));
    assert!(rule.decide(&mut state, at(120_000), Cost::of(10)).is_admit());
    rule.refund(&mut state, at(120_000), &mut second);
    assert_eq!(rule.usage(&state, at(120_000)).used, Cost::of(10));
}

#[test]
fn a_debt_however_large_is_forgotten_after_two_windows() {
    let rule = hundred_a_minute(1);
    let mut state = rule.fresh(at(0));
    let mut charge = rule.decide(&mut state, at(0), Cost::ONE).admitted().unwrap();
    rule.settle(&mut state, at(1), &mut charge, Cost::MAX);
    assert!(!rule.peek(&state, at(119_999), Cost::ONE).is_admit());
    assert!(rule.is_idle(&state, at(120_000)));
}

#[test]
fn moments_flipping_around_a_boundary_grant_nothing() {
    let rule = hundred_a_minute(1);
    let mut state = rule.fresh(at(59_999));
    assert!(rule.decide(&mut state, at(59_999), Cost::of(100)).is_admit());
    for _ in 0..10 {
        assert!(!rule.decide(&mut state, at(60_000), Cost::ONE).is_admit());
        assert!(!rule.decide(&mut state, at(59_999), Cost::ONE).is_admit());
    }
}

#[test]
fn a_clock_set_back_neither_grants_anew_nor_locks_out() {
    for buckets in [1, 6] {
        let rule = hundred_a_minute(buckets);
        let mut state = rule.fresh(at(7_200_000));
        assert!(rule.decide(&mut state, at(7_200_000), Cost::of(100)).is_admit());
        assert!(!rule.peek(&state, at(3_600_000), Cost::ONE).is_admit());
        assert!(!rule.decide(&mut state, at(3_600_000), Cost::ONE).is_admit());
        assert!(rule.is_idle(&state, at(3_600_000 + 120_000)));
    }
}

#[test]
fn a_new_quota_keeps_what_was_consumed() {
    let before = hundred_a_minute(1);
    let mut state = worked_example(&before);
    let larger = SlidingWindow::new(Quota::per_minute(Cost::of(200)).unwrap()).unwrap();
    larger.carry(&before, &mut state, at(75_000));
    assert_eq!(larger.usage(&state, at(75_000)).remaining, Cost::of(110));

    let finer = larger.clone().with_sub_buckets(6).unwrap();
    finer.carry(&larger, &mut state, at(75_000));
    assert_eq!(finer.usage(&state, at(75_000)).used, Cost::of(90));

    let hourly = SlidingWindow::new(Quota::per_hour(Cost::of(200)).unwrap()).unwrap();
    hourly.carry(&finer, &mut state, at(75_000));
    assert_eq!(hourly.usage(&state, at(75_000)).used, Cost::of(90));
}

#[test]
fn a_named_burst_and_impossible_bucket_counts_are_refused() {
    let quota = Quota::per_second(Cost::of(3)).unwrap();
    let burst = quota.with_burst(Cost::of(5)).unwrap();
    assert_eq!(SlidingWindow::new(burst).unwrap_err().field, "burst");
    for buckets in [0, 65] {
        let problem = SlidingWindow::new(quota).unwrap().with_sub_buckets(buckets).unwrap_err();
        assert_eq!((problem.field, problem.allowed), ("buckets", "from 1 to 64"));
    }
}

#[test]
fn the_largest_numbers_there_are_do_not_overflow() {
    let quota = Quota::new(Cost::MAX, Duration::from_secs(400 * 86_400)).unwrap();
    let rule = SlidingWindow::new(quota).unwrap().with_sub_buckets(64).unwrap();
    let mut state = rule.fresh(Moment::ORIGIN);
    for step in 0..200 {
        let now = Moment::from_nanos(step * 540_000 * SECOND);
        let mut charge =
            rule.decide(&mut state, now, Cost::ZERO).admitted().unwrap_or(Charge::new(Cost::ZERO, 0));
        rule.settle(&mut state, now, &mut charge, Cost::MAX);
        assert!(!rule.peek(&state, now, Cost::MAX).is_admit());
    }
    assert!(rule.is_idle(&state, Moment::from_nanos(u64::MAX)));
}

#[test]
fn a_ring_of_buckets_comes_with_the_first_cost_and_stays_with_the_cell() {
    let rule = hundred_a_minute(6);
    let length = |state: &BucketCounts| state.slots().len();
    let mut state = rule.fresh(at(0));
    assert!(rule.peek(&state, at(0), Cost::of(100)).is_admit() && rule.is_idle(&state, at(0)));
    assert!(rule.decide(&mut state, at(70_000), Cost::ZERO).is_admit());
    assert_eq!((rule.usage(&state, at(70_000)).used, length(&state)), (Cost::ZERO, 0));
    assert!(rule.decide(&mut state, at(70_000), Cost::of(60)).is_admit());
    assert_eq!(length(&state) * 8, rule.most_heap());
    rule.renew(&mut state, at(75_000));
    assert_eq!((rule.usage(&state, at(75_000)).used, length(&state)), (Cost::ZERO, 7));
    assert!(rule.decide(&mut state, at(75_000), Cost::of(100)).is_admit());
    for mut state in [state, rule.fresh(at(0))] {
        hundred_a_minute(1).renew(&mut state, at(75_000));
        assert_eq!((length(&state), hundred_a_minute(1).most_heap()), (2, 0));
    }
}

#[test]
fn a_clock_set_back_leaves_a_ring_without_memory_as_it_is() {
    let rule = hundred_a_minute(6);
    let mut state = rule.fresh(at(7_200_000));
    assert!(rule.decide(&mut state, at(0), Cost::of(100)).is_admit());
    assert!(!rule.decide(&mut state, at(0), Cost::ONE).is_admit());
}
