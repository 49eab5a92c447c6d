//! What must hold for retries whatever happens in whatever order.

use std::time::Duration;

use proptest::prelude::*;
use tidegate_core::retry::{
    Advice, Attempts, Backoff, BudgetRule, BudgetTerms, Delays, Failure, Jitter, RetryBudget, RetryRule,
    RetryTerms, RetryTokens, TokenRule,
};
use tidegate_core::{Moment, Ratio, Roll};

const START: Moment = Moment::from_nanos(1_790_000_000_000_000_000);

fn jitters() -> impl Strategy<Value = Jitter> {
    prop_oneof![Just(Jitter::None), Just(Jitter::Equal), Just(Jitter::Full), Just(Jitter::Decorrelated)]
}

fn rolls() -> impl Strategy<Value = Roll> {
    (0.0..1.0_f64).prop_filter_map("below 1", |value| Roll::new(value).ok())
}

fn durations() -> impl Strategy<Value = Duration> {
    prop_oneof![
        (1_000_u64..1_000_000_000).prop_map(Duration::from_nanos),
        (1_u64..30_000_000).prop_map(Duration::from_secs),
    ]
}

proptest! {
    #[test]
    fn a_wait_is_within_the_bounds_of_its_jitter(
        (base, more) in (durations(), durations()),
        jitter in jitters(),
        rolls in prop::collection::vec(rolls(), 1..80),
    ) {
        let cap = base.saturating_add(more).min(Duration::from_secs(400 * 86_400));
        let backoff = Backoff::new(base).unwrap().with_cap(cap).unwrap().with_jitter(jitter);
        let (mut delays, mut last) = (Delays::new(), base);
        for (n, roll) in rolls.into_iter().enumerate() {
            let wait = delays.next(&backoff, roll);
            let factor = 2_u32.checked_pow(u32::try_from(n).unwrap()).unwrap_or(u32::MAX);
            let whole = base.saturating_mul(factor).min(cap);
            let (least, most) = match jitter {
                Jitter::None => (whole, whole),
                Jitter::Equal => (whole / 2, whole),
                Jitter::Full => (Duration::ZERO, whole),
                Jitter::Decorrelated => (base, last.max(base).saturating_mul(3).min(cap)),
            };
            prop_assert!(least <= wait && wait <= most, "{:?} not from {:?} to {:?}", wait, least, most);
            last = wait;
        }
    }

    #[test]
    fn a_greater_roll_never_waits_shorter(jitter in jitters(), one in rolls(), other in rolls()) {
        let backoff = Backoff::new(Duration::from_millis(100)).unwrap().with_jitter(jitter);
        let wait = |roll| Delays::new().next(&backoff, roll);
        let (low, high) = if one <= other { (one, other) } else { (other, one) };
        prop_assert!(wait(low) <= wait(high));
    }

    /// Whenever a retry is granted, those of the last window, it included, are within the ratio of the
    /// requests of the last window and the reserve. Steps are in tenths of a bucket, also across many
    /// windows.
    #[test]
    fn a_budget_is_never_exceeded_in_any_window(
        millionths in 0_u32..=1_000_000,
        reserve_per_second in 0_u32..3,
        steps in prop::collection::vec((0_u64..3, prop_oneof![20 => 0_u64..30, 1 => 0_u64..3_000], 0_u8..12), 1..100),
    ) {
        let window = Duration::from_secs(10);
        let ratio = Ratio::new(f64::from(millionths) / 1e6).unwrap();
        let rule = BudgetRule::new(BudgetTerms { ratio, reserve_per_second, window }).unwrap();
        let budget = RetryBudget::new(rule, START);
        let (mut now, mut requests, mut retries) = (START, Vec::new(), Vec::new());
        for (_, wait, burst) in steps {
            now = now.plus(Duration::from_millis(100) * u32::try_from(wait).unwrap());
            for _ in 0..burst {
                budget.request(now);
                requests.push(now);
            }
            while budget.take(now).is_admit() {
                retries.push(now);
                let within = |moments: &[Moment]| {
                    u64::try_from(moments.iter().filter(|moment| now.since(**moment) <= window).count()).unwrap()
                };
                let granted = u64::from(millionths) * within(&requests) + 10_000_000 * u64::from(reserve_per_second);
                prop_assert!(within(&retries) * 1_000_000 <= granted);
            }
        }
        // And so over all time, with a reserve for each window begun.
        let windows = now.since(START).as_secs() / 10 + 2;
        let all = u64::from(millionths) * u64::try_from(requests.len()).unwrap()
            + 10_000_000 * u64::from(reserve_per_second) * windows;
        prop_assert!(u64::try_from(retries.len()).unwrap() * 1_000_000 <= all);
    }

    #[test]
    fn a_budget_that_is_due_is_granted(requests in 0_u32..2_000, percent in 1_u32..=100) {
        let ratio = Ratio::new(f64::from(percent) / 100.0).unwrap();
        let terms = BudgetTerms { ratio, reserve_per_second: 0, ..BudgetTerms::default() };
        let budget = RetryBudget::new(BudgetRule::new(terms).unwrap(), START);
        (0..requests).for_each(|_| budget.request(START));
        let granted = (0..=requests).filter(|_| budget.take(START).is_admit()).count();
        prop_assert_eq!(u32::try_from(granted).unwrap(), requests * percent / 100);
    }

    /// The clock may jump by hours, ahead and back: what was spent may be forgotten then, but the reserve
    /// is never lost for longer than a window and a bucket.
    #[test]
    fn a_clock_that_jumps_never_locks_a_budget(jumps in prop::collection::vec(0_u64..10_000, 1..20)) {
        let terms = BudgetTerms { ratio: Ratio::ZERO, reserve_per_second: 1, ..BudgetTerms::default() };
        let budget = RetryBudget::new(BudgetRule::new(terms).unwrap(), START);
        let mut now = START;
        for jump in jumps {
            now = START.plus(Duration::from_secs(jump));
            while budget.take(now).is_admit() {}
        }
        // A little back is within the window, and waits until the clock has caught up.
        prop_assert!(budget.take(now.plus(Duration::from_secs(22))).is_admit());
    }

    #[test]
    fn a_request_never_has_more_attempts_or_time_than_allowed(
        attempts in 1_u32..10,
        total in 0_u64..20_000,
        steps in prop::collection::vec((0_u64..3_000, rolls(), 0_u64..3_000), 1..20),
    ) {
        let total = Duration::from_millis(total);
        let rule = RetryRule::new(RetryTerms { attempts, total, ..RetryTerms::default() }).unwrap();
        let mut request = Attempts::begin(START);
        let (mut now, mut made) = (START, 1);
        for (took, roll, named) in steps {
            now = now.plus(Duration::from_millis(took));
            let advice = if named % 2 == 0 { Advice::None } else { Advice::After(Duration::from_millis(named)) };
            let next = rule.next(&mut request, now, Failure::Transient(advice), roll);
            let Some(wait) = next.admitted() else { continue };
            prop_assert!(named % 2 == 0 || wait >= Duration::from_millis(named), "sooner than the server said");
            now = now.plus(wait);
            made += 1;
            prop_assert!(made <= attempts && now.since(START) <= total);
        }
        prop_assert_eq!(request.made(), made);
    }

    #[test]
    fn tokens_stay_within_their_bounds(most in 1_u32..=1_000, ratio in 1_u32..5_000, events in prop::collection::vec(any::<bool>(), 0..200)) {
        let rule = TokenRule::new(most).unwrap().with_thousandths_per_success(ratio).unwrap();
        let tokens = RetryTokens::new(rule);
        let mut expected = i64::from(most) * 1_000;
        for is_success in events {
            if is_success { tokens.succeeded() } else { tokens.failed() }
            let change = if is_success { i64::from(ratio) } else { -1_000 };
            expected = (expected + change).clamp(0, i64::from(most) * 1_000);
            prop_assert_eq!(i64::try_from(tokens.thousandths()).unwrap(), expected);
            prop_assert_eq!(tokens.may_retry(), expected * 2 > i64::from(most) * 1_000);
        }
    }
}
