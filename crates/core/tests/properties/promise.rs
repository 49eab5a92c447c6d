//! What the rules of the family promise, in their own words.

use std::time::Duration;

use tidegate_core::rate::{DueRule, LeakyBucket, Schedule, Smooth, TokenBucket};
use tidegate_core::{Cost, Moment, Quota};

use crate::draw::share;
use crate::kept::{Kept, Plain, Shared, Tabled};

/// Any rule of the family.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Rule {
    TokenBucket(TokenBucket),
    LeakyBucket(LeakyBucket),
    Smooth(Smooth),
}

impl Rule {
    fn inner(&self) -> &dyn DueRule {
        match self {
            Self::TokenBucket(rule) => rule,
            Self::LeakyBucket(rule) => rule,
            Self::Smooth(rule) => rule,
        }
    }
}

impl DueRule for Rule {
    fn fine(&self) -> &Schedule {
        self.inner().fine()
    }

    fn packed(&self) -> Schedule {
        self.inner().packed()
    }
}

/// A rule and what it promises.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Promise {
    pub(crate) rule: Rule,
    /// Its rate, and as the burst what may be taken at once without borrowing.
    pub(crate) quota: Quota,
    /// Where requests borrow, the wait up to which they may: then a request does not count against itself.
    pub(crate) borrowing: Option<Duration>,
    /// How much may leave at once, where others wait.
    free: Option<Cost>,
}

impl Promise {
    pub(crate) fn token_bucket(quota: Quota) -> Self {
        Self { rule: Rule::TokenBucket(TokenBucket::new(quota)), quota, borrowing: None, free: None }
    }

    /// A shaper in which so much is free of delay; without it, a meter.
    pub(crate) fn leaky_bucket(quota: Quota, waiting: Cost, free: Option<Cost>) -> Option<Self> {
        let quota = Quota::new(quota.amount(), quota.window()).ok()?;
        let rule = LeakyBucket::new(quota, waiting).ok()?;
        let rule = match free {
            Some(free) => rule.with_delay_free(free).ok()?,
            None => rule.without_delay(),
        };
        let quota = quota.with_burst(waiting.plus(Cost::ONE)).ok()?;
        Some(Self { rule: Rule::LeakyBucket(rule), quota, borrowing: None, free })
    }

    pub(crate) fn smooth(quota: Quota, max_wait: Duration) -> Option<Self> {
        let rule = Rule::Smooth(Smooth::new(quota, max_wait).ok()?);
        Some(Self { rule, quota, borrowing: Some(max_wait), free: Some(quota.burst()) })
    }

    /// One key under this rule in each way there is to keep it.
    pub(crate) fn kept(&self) -> [Box<dyn Kept>; 3] {
        [Box::new(Plain::new(self)), Box::new(Shared::new(self)), Box::new(Tabled::new(self))]
    }

    /// What the rate grants in so many nanoseconds, in millionths of a unit.
    pub(crate) fn granted(&self, nanos: u128) -> u128 {
        nanos * u128::from(self.quota.amount().micros()) / self.quota.window().as_nanos()
    }

    /// The most that can be taken at once, in millionths of a unit.
    pub(crate) fn at_once(&self) -> u64 {
        let borrowed = self.granted(self.borrowing.unwrap_or_default().as_nanos());
        self.quota.burst().micros().saturating_add(u64::try_from(borrowed).unwrap_or(u64::MAX))
    }

    /// The nanoseconds in which the rate grants that.
    pub(crate) fn extent(&self) -> u64 {
        let extent = self.quota.lead() + self.borrowing.unwrap_or_default();
        u64::try_from(extent.as_nanos()).unwrap_or(u64::MAX)
    }

    /// Nobody waits longer.
    pub(crate) fn longest_wait(&self) -> Duration {
        self.borrowing.unwrap_or(self.quota.lead())
    }

    pub(crate) fn cost(&self, thousandths: u64) -> Cost {
        Cost::from_micros(share(self.at_once(), thousandths))
    }

    pub(crate) fn time(&self, thousandths: u64) -> Duration {
        Duration::from_nanos(share(self.extent(), thousandths))
    }

    /// What is admitted keeps to this.
    pub(crate) fn admissions(self) -> Envelope {
        Envelope { promise: self, at_once: self.at_once().into(), weighs_last: self.borrowing.is_none() }
    }

    /// What leaves, once it has waited, keeps to this.
    pub(crate) fn departures(self) -> Option<Envelope> {
        self.free.map(|free| Envelope { promise: self, at_once: free.micros().into(), weighs_last: false })
    }
}

/// That in no interval more passes than `at_once + rate · length`.
pub(crate) struct Envelope {
    promise: Promise,
    at_once: u128,
    /// Whether the last request of the interval counts, or only those that it finds before it.
    weighs_last: bool,
}

impl Envelope {
    /// Asserts it of requests in the order of their arrival: told moment, arrival, cost. An interval is as long as its
    /// last arrival comes after the earliest moment that was told in it: real time counts once, however often it is
    /// told. `slack` is what rounding makes of its length.
    pub(crate) fn assert_holds(&self, passed: &[(Moment, Moment, Cost)], slack: u128) {
        for first in 0..passed.len() {
            self.assert_holds_from_the_first(&passed[first..], slack);
        }
    }

    /// The same of those intervals only that begin with the first request.
    pub(crate) fn assert_holds_from_the_first(&self, passed: &[(Moment, Moment, Cost)], slack: u128) {
        let (mut before, mut earliest) = (0, Moment::from_nanos(u64::MAX));
        for (told, arrived, cost) in passed {
            let with_this = before + u128::from(cost.micros());
            let sum = if self.weighs_last { with_this } else { before };
            earliest = earliest.min(*told);
            let length = arrived.since(earliest).as_nanos() + slack;
            let allowed = self.at_once + self.promise.granted(length) + 1;
            assert!(sum <= allowed, "{sum} within {length} ns, {allowed} allowed by {:?}", self.promise);
            before = with_this;
        }
    }
}
