//! One key under any of the windowed algorithms, and what properties are tried with.

use std::time::Duration;

use proptest::prelude::*;
use tidegate_core::rate::{
    Algorithm, Calendar, ColdFactor, FixedWindow, Period, SlidingLog, SlidingWindow, UtcOffset, WarmUp,
};
use tidegate_core::{Charge, Cost, Moment, Quota, Usage, Verdict, WallTime};

/// One limiter with one key, whatever its algorithm and whatever it takes for time.
pub(crate) trait Key {
    fn decide(&mut self, now: u64, cost: Cost) -> Verdict<Charge>;
    fn peek(&self, now: u64, cost: Cost) -> Verdict<Duration>;
    fn settle(&mut self, now: u64, charge: &mut Charge, true_cost: Cost);
    fn usage(&self, now: u64) -> Usage;
    fn is_idle(&self, now: u64) -> bool;
    /// The same rule with a fresh state.
    fn fresh(&self, now: u64) -> Box<dyn Key>;
    /// Goes on under the other rule.
    fn carry(&mut self, now: u64);
}

pub(crate) struct Live<A: Algorithm> {
    rule: A,
    /// The rule that a new policy would bring.
    other: A,
    state: A::State,
    time: fn(u64) -> A::Time,
}

impl<A: Algorithm + Clone + 'static> Key for Live<A> {
    fn decide(&mut self, now: u64, cost: Cost) -> Verdict<Charge> {
        self.rule.decide(&mut self.state, (self.time)(now), cost)
    }

    fn peek(&self, now: u64, cost: Cost) -> Verdict<Duration> {
        self.rule.peek(&self.state, (self.time)(now), cost)
    }

    fn settle(&mut self, now: u64, charge: &mut Charge, true_cost: Cost) {
        self.rule.settle(&mut self.state, (self.time)(now), charge, true_cost);
    }

    fn usage(&self, now: u64) -> Usage {
        self.rule.usage(&self.state, (self.time)(now))
    }

    fn is_idle(&self, now: u64) -> bool {
        self.rule.is_idle(&self.state, (self.time)(now))
    }

    fn fresh(&self, now: u64) -> Box<dyn Key> {
        live([self.rule.clone(), self.other.clone()], now, self.time)
    }

    fn carry(&mut self, now: u64) {
        self.other.carry(&self.rule, &mut self.state, (self.time)(now));
        std::mem::swap(&mut self.rule, &mut self.other);
    }
}

pub(crate) fn live<A: Algorithm + Clone + 'static>(
    [rule, other]: [A; 2],
    now: u64,
    time: fn(u64) -> A::Time,
) -> Box<dyn Key> {
    let state = rule.fresh(time(now));
    Box::new(Live { rule, other, state, time })
}

/// A limiter as proptest draws it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    Fixed,
    Sliding(u32),
    Log,
    Calendar(Period, i16),
    WarmUp { warm_up: Duration, cold_factor: u32, max_wait: Duration },
}

/// The limiter for `quota`, which could become one for `other`. `None` where the settings contradict each
/// other, as a short warm-up and a small rate do.
pub(crate) fn pair(kind: Kind, quota: Quota, other: Quota, now: u64) -> Option<Box<dyn Key>> {
    let both = [quota, other];
    let moment = Moment::from_nanos;
    Some(match kind {
        Kind::Fixed => {
            live(both.map(|quota| FixedWindow::new(quota).expect("no burst is named")), now, moment)
        }
        Kind::Sliding(buckets) => {
            let [rule, other] = both.map(|quota| SlidingWindow::new(quota).expect("no burst is named"));
            let other = other.with_sub_buckets(65 - buckets).ok()?;
            live([rule.with_sub_buckets(buckets).ok()?, other], now, moment)
        }
        Kind::Log => {
            let [rule, other] = both.map(|quota| SlidingLog::new(quota).expect("no burst is named"));
            live([rule.with_capacity(256).ok()?, other], now, moment)
        }
        Kind::Calendar(period, minutes) => {
            let other_period = if period == Period::Day { Period::Month } else { Period::Day };
            let (offset, other_offset) =
                (UtcOffset::minutes(minutes).ok()?, UtcOffset::minutes(-minutes).ok()?);
            let rule = Calendar::new(quota.amount(), period, offset).ok()?;
            let other = Calendar::new(other.amount(), other_period, other_offset).ok()?;
            live([rule, other], now, WallTime::from_unix_nanos)
        }
        Kind::WarmUp { warm_up, cold_factor, max_wait } => {
            let cold_factor = ColdFactor::times(cold_factor).ok()?;
            let rule = WarmUp::new(quota, warm_up, cold_factor, max_wait).ok()?;
            let other = WarmUp::new(other, 2 * warm_up, ColdFactor::THREE, max_wait).ok()?;
            live([rule, other], now, moment)
        }
    })
}

pub(crate) fn key(kind: Kind, quota: Quota, now: u64) -> Option<Box<dyn Key>> {
    pair(kind, quota, quota, now)
}

/// Those whose answer is a matter of what is counted, not of what is owed.
pub(crate) fn windows() -> impl Strategy<Value = Kind> {
    prop_oneof![
        Just(Kind::Fixed),
        (1..=64_u32).prop_map(Kind::Sliding),
        Just(Kind::Sliding(1)),
        Just(Kind::Log),
        (prop_oneof![Just(Period::Day), Just(Period::Month)], -840..=840_i16)
            .prop_map(|(period, offset)| Kind::Calendar(period, offset)),
    ]
}

pub(crate) fn kinds() -> impl Strategy<Value = Kind> {
    let warm_ups =
        (1..=60_000_u64, 2..=1_000_u32, 0..=10_000_u64).prop_map(|(warm_up, cold_factor, max_wait)| {
            let (warm_up, max_wait) = (Duration::from_millis(warm_up), Duration::from_millis(max_wait));
            Kind::WarmUp { warm_up, cold_factor, max_wait }
        });
    prop_oneof![4 => windows(), 1 => warm_ups]
}

/// Quotas as operators write them: up to 20 units, in windows of up to 10 s that need not be round.
pub(crate) fn quotas() -> impl Strategy<Value = Quota> {
    (1..=20_000_000_u64, 1_000..=10_000_000_000_u64).prop_map(|(micros, nanos)| {
        Quota::new(Cost::from_micros(micros), Duration::from_nanos(nanos)).expect("drawn within its bounds")
    })
}

/// Any quota that exists.
pub(crate) fn wild_quotas() -> impl Strategy<Value = Quota> {
    (wild().prop_filter("a quota is not nothing", |micros| *micros > 0), 1_000..=400 * 86_400_000_000_000_u64)
        .prop_map(|(micros, nanos)| {
            Quota::new(Cost::from_micros(micros), Duration::from_nanos(nanos))
                .expect("drawn within its bounds")
        })
}

/// Any number, the ends often.
pub(crate) fn wild() -> impl Strategy<Value = u64> {
    prop_oneof![
        any::<u64>(),
        0..10_000_000_000_u64,
        (0..1_000_u64).prop_map(|back| u64::MAX - back),
        0..2_u64
    ]
}

/// The start of every walk: some time after the origin, so that a clock can be set back.
pub(crate) const START: u64 = 1_700_000_000_000_000_000;

/// Requests in order: how much later than the one before, in thousandths of the window, and the cost
/// in thousandths of the amount.
pub(crate) fn walks() -> impl Strategy<Value = Vec<(u64, u64)>> {
    prop::collection::vec((prop_oneof![Just(0), 0..100_u64, 0..2_500_u64], 0..=1_100_u64), 1..80)
}

pub(crate) fn thousandths(whole: u64, thousandths: u64) -> u64 {
    u64::try_from(u128::from(whole) * u128::from(thousandths) / 1_000).expect("shares are small")
}

pub(crate) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).expect("durations here are below 584 years")
}

/// What a kind's steps are measured in: its window, or a day for the calendar.
pub(crate) fn pace(kind: Kind, quota: Quota) -> u64 {
    match kind {
        Kind::Calendar(..) => 86_400_000_000_000,
        Kind::Fixed | Kind::Sliding(_) | Kind::Log | Kind::WarmUp { .. } => nanos(quota.window()),
    }
}

/// Walks a key and returns what it admitted, and when.
pub(crate) fn admitted(key: &mut dyn Key, pace: u64, amount: Cost, walk: &[(u64, u64)]) -> Vec<(u64, u64)> {
    let mut now = START;
    let mut admitted = Vec::new();
    for (step, share) in walk {
        now += thousandths(pace, *step);
        let cost = thousandths(amount.micros(), *share);
        if key.decide(now, Cost::from_micros(cost)).is_admit() {
            admitted.push((now, cost));
        }
    }
    admitted
}

/// The most that any stretch shorter than `length` saw.
pub(crate) fn most_within(admitted: &[(u64, u64)], length: u64) -> u64 {
    let from = |first: usize| {
        let start = admitted[first].0;
        admitted[first..].iter().take_while(|(at, _)| at - start < length).map(|(_, cost)| cost).sum()
    };
    (0..admitted.len()).map(from).max().unwrap_or(0)
}
