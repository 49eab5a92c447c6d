//! Quotas, rules and traffic as proptest draws them.

use std::time::Duration;

use proptest::prelude::*;
use tidegate_core::{Cost, Moment, Quota};

use crate::promise::Promise;

/// Quotas of every kind: odd rates, fractions, long and short windows, small and large bursts.
pub(crate) fn quotas() -> impl Strategy<Value = Quota> {
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
pub(crate) fn wild_quotas() -> impl Strategy<Value = Quota> {
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
pub(crate) fn wild() -> impl Strategy<Value = u64> {
    prop_oneof![
        any::<u64>(),
        (any::<u64>(), 0_u32..64).prop_map(|(number, bits)| number >> bits),
        0_u64..3,
        (u64::MAX - 3)..
    ]
}
/// Rules of every algorithm of the family.
pub(crate) fn promises() -> impl Strategy<Value = Promise> {
    let free = prop_oneof![Just(None), Just(Some(0)), (0_u64..1_001).prop_map(Some)];
    prop_oneof![
        quotas().prop_map(Promise::token_bucket),
        (quotas(), 0_u64..2_000, free).prop_filter_map("too long", |(quota, waiting, free)| {
            let waiting = share(quota.burst().micros(), waiting);
            let free = free.map(|free| Cost::from_micros(share(waiting, free)));
            Promise::leaky_bucket(quota, Cost::from_micros(waiting), free)
        }),
        (quotas(), 0_u64..2_000).prop_filter_map("too long", |(quota, max_wait)| {
            Promise::smooth(quota, Duration::from_nanos(share(lead_nanos(&quota), max_wait)))
        }),
    ]
}

/// Steps between requests and costs, both as thousandths of what a rule grants at once.
pub(crate) fn traffic() -> impl Strategy<Value = Vec<(u64, u64)>> {
    prop::collection::vec((0_u64..400, 0_u64..700), 1..60)
}

/// Nanoseconds by which a thread may come late.
pub(crate) const SLACK: u64 = 1 << 36;

/// Requests that arrive in this order: when, by how much earlier a clock they were told, and at what cost. When and
/// cost as thousandths of what a rule grants at once; most threads that come late do so by very much or very little.
pub(crate) fn late_traffic() -> impl Strategy<Value = Vec<(u64, u64, u64)>> {
    let lateness = prop_oneof![3 => Just(0), 1 => 0..SLACK, 2 => (0_u32..36).prop_map(|bits| 1 << bits)];
    prop::collection::vec((0_u64..400, lateness, 0_u64..1_001), 1..60)
}

/// Jumps of the clock in nanoseconds, what passes besides and costs, both as thousandths of what a rule grants at once.
/// A jump forward by an hour grants so much that nobody could tell a free burst; half of the time there is none.
pub(crate) fn jumps() -> impl Strategy<Value = Vec<(i64, u64, u64)>> {
    let hour = 3_600_000_000_000_i64;
    let jumps = |latest| prop::collection::vec((-hour..latest, 0_u64..200, 0_u64..1_000), 1..40);
    prop_oneof![jumps(1), jumps(hour)]
}

pub(crate) fn share(whole: u64, thousandths: u64) -> u64 {
    u64::try_from(u128::from(whole) * u128::from(thousandths) / 1_000).unwrap_or(u64::MAX)
}

pub(crate) fn lead_nanos(quota: &Quota) -> u64 {
    u64::try_from(quota.lead().as_nanos()).unwrap_or(u64::MAX)
}

pub(crate) fn start() -> Moment {
    Moment::from_nanos(1_790_000_000_000_000_000) // a driver's origin is 1970, so moments are this large
}
