//! One sample a second, and the rates between samples.
//!
//! Counts since the start say little about now, and a rate that is measured from one question to the next depends on
//! who asks. So the counts are written down every second, for a minute, and everybody is told the difference between
//! the last sample and the one ten seconds before it.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tidegate_core::Moment;
use tidegate_policy::gate::RuleRefusals;

use super::station::{Attempts, Histogram, Station};

/// How many samples are kept: a minute of them, and where it began.
const KEPT: usize = 61;

/// The stretch that rates are about.
pub(super) const OVER: Duration = Duration::from_secs(10);

/// Counts at one moment.
#[derive(Clone, Debug)]
pub(super) struct Sample {
    pub(super) at: Moment,
    pub(super) admitted: u64,
    pub(super) refused: u64,
    pub(super) rules: Vec<RuleRefusals>,
    pub(super) attempts: Vec<Attempts>,
    /// Of all routes.
    pub(super) durations: Histogram,
}

impl Sample {
    pub(super) fn of(station: &dyn Station) -> Self {
        let figures = station.figures();
        let mut durations = Histogram::default();
        for one in &figures.durations {
            durations.add(&one.histogram);
        }
        Self {
            at: station.now().moment,
            admitted: figures.requests.iter().map(|requests| requests.admitted).sum(),
            refused: figures.requests.iter().map(|requests| requests.refused).sum(),
            rules: station.gate().refusals(),
            attempts: figures.attempts,
            durations,
        }
    }
}

/// The samples of the last minute.
#[derive(Debug, Default)]
pub(super) struct Pulse(Mutex<VecDeque<Sample>>);

impl Pulse {
    pub(super) fn take(&self, sample: Sample) {
        let mut samples = self.samples();
        if samples.len() >= KEPT {
            samples.pop_front();
        }
        samples.push_back(sample);
    }

    /// What happened between the last sample and the one ten seconds before, or the first.
    pub(super) fn rates(&self) -> Rates {
        let samples = self.samples();
        let Some(last) = samples.back() else { return Rates::default() };
        let is_within = |sample: &&Sample| last.at.since(sample.at) <= OVER;
        let first = samples.iter().find(is_within).unwrap_or(last);
        Rates::between(first, last)
    }

    fn samples(&self) -> MutexGuard<'_, VecDeque<Sample>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What happened in a stretch of time.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Rates {
    pub(super) over: Duration,
    pub(super) admitted: u64,
    pub(super) refused: u64,
    pub(super) rules: Vec<RuleRefusals>,
    pub(super) upstreams: Vec<UpstreamRate>,
    pub(super) durations: Histogram,
}

/// What was asked of an upstream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct UpstreamRate {
    pub(super) upstream: String,
    pub(super) attempts: u64,
    pub(super) failures: u64,
}

impl Rates {
    fn between(first: &Sample, last: &Sample) -> Self {
        let rules = last.rules.iter().map(|now| {
            let then = first.rules.iter().find(|then| then.rule == now.rule);
            let less = |now: u64, then: Option<u64>| now.saturating_sub(then.unwrap_or_default());
            RuleRefusals {
                rule: now.rule.clone(),
                refused: less(now.refused, then.map(|then| then.refused)),
                shadow_refused: less(now.shadow_refused, then.map(|then| then.shadow_refused)),
                overflowed: less(now.overflowed, then.map(|then| then.overflowed)),
            }
        });
        let mut durations = last.durations.clone();
        durations.remove(&first.durations);
        Self {
            over: last.at.since(first.at),
            admitted: last.admitted.saturating_sub(first.admitted),
            refused: last.refused.saturating_sub(first.refused),
            rules: rules.collect(),
            upstreams: upstreams(&first.attempts, &last.attempts),
            durations,
        }
    }

    /// So many in this stretch are so many a second.
    #[expect(clippy::cast_precision_loss, reason = "for people, who read three digits")]
    pub(super) fn a_second(&self, count: u64) -> f64 {
        if self.over.is_zero() { 0.0 } else { count as f64 / self.over.as_secs_f64() }
    }
}

fn upstreams(first: &[Attempts], last: &[Attempts]) -> Vec<UpstreamRate> {
    let mut rates: Vec<UpstreamRate> = Vec::new();
    for now in last {
        let is_same = |then: &&Attempts| then.upstream == now.upstream && then.outcome == now.outcome;
        let before = first.iter().find(is_same).map_or(0, |then| then.count);
        let count = now.count.saturating_sub(before);
        if rates.last().is_none_or(|rate| rate.upstream != now.upstream) {
            rates.push(UpstreamRate { upstream: now.upstream.clone(), attempts: 0, failures: 0 });
        }
        if let Some(rate) = rates.last_mut() {
            rate.attempts += count;
            rate.failures += if now.is_failure { count } else { 0 };
        }
    }
    rates
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(second: u64, admitted: u64) -> Sample {
        let refused = admitted / 4;
        let rule = |rule: &str, refused| RuleRefusals {
            rule: rule.to_owned(),
            refused,
            shadow_refused: 0,
            overflowed: 0,
        };
        let attempts = |outcome, is_failure, count| Attempts {
            upstream: "orders".to_owned(),
            outcome,
            is_failure,
            count,
        };
        Sample {
            at: Moment::from_nanos(second * 1_000_000_000),
            admitted,
            refused,
            rules: vec![rule("per_key", refused)],
            attempts: vec![attempts("ok", false, admitted), attempts("connect", true, second)],
            durations: Histogram {
                steps: vec![(Duration::from_millis(1), admitted), (Duration::from_millis(10), admitted / 10)],
                ..Histogram::default()
            },
        }
    }

    #[test]
    fn rates_are_about_the_last_ten_seconds() {
        let pulse = Pulse::default();
        assert_eq!(pulse.rates(), Rates::default());
        for second in 0..200 {
            pulse.take(sample(second, second * 100 * u64::from(second >= 100)));
        }
        let rates = pulse.rates();
        assert_eq!((rates.over, rates.admitted, rates.refused), (OVER, 1000, 250));
        assert_eq!(rates.rules[0].refused, 250);
        let orders = UpstreamRate { upstream: "orders".to_owned(), attempts: 1010, failures: 10 };
        assert_eq!(rates.upstreams, [orders]);
        assert!((rates.a_second(rates.admitted) - 100.0).abs() < 1e-9);
        assert_eq!(rates.durations.below(500), Some(Duration::from_millis(1)));
        assert_eq!(rates.durations.below(990), Some(Duration::from_millis(10)));
        assert_eq!(pulse.samples().len(), KEPT);
    }

    #[test]
    fn a_rule_that_is_new_counts_from_nothing() {
        let (mut first, last) = (sample(1, 100), sample(2, 200));
        first.rules.clear();
        assert_eq!(Rates::between(&first, &last).rules[0].refused, 50);
    }
}
