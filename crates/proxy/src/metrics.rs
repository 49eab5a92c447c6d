//! Families of metrics: name, kind, labels and help, declared beside what they count.
//!
//! A count that operators are to see needs two things: a [`MetricFamily`], and a place where [`Gateway::metrics`] fills
//! it. The page for Prometheus, its reference and its checks take everything else from there.
//!
//! Labels come from the policy and from closed sets, never from callers, so the number of series is bounded.
//!
//! [`Gateway::metrics`]: crate::Gateway::metrics

mod gateway;

use std::time::Duration;

/// What is written once about a metric.
#[derive(Debug, PartialEq, Eq)]
pub struct MetricFamily {
    /// Its name, with its unit.
    pub name: &'static str,
    /// What its numbers are.
    pub kind: MetricKind,
    /// The names of its labels, in the order of the values of a sample.
    pub labels: &'static [&'static str],
    /// What it says, in one sentence.
    pub help: &'static str,
}

/// What the numbers of a family are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    /// They only grow, from the start of the process.
    Counter,
    /// They are as they are now.
    Gauge,
    /// They are lengths of time, counted in steps.
    Histogram,
}

impl MetricKind {
    /// As the text format of Prometheus writes it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

impl MetricFamily {
    /// A family of counters.
    #[must_use]
    pub const fn counter(name: &'static str, labels: &'static [&'static str], help: &'static str) -> Self {
        Self { name, kind: MetricKind::Counter, labels, help }
    }

    /// A family of gauges.
    #[must_use]
    pub const fn gauge(name: &'static str, labels: &'static [&'static str], help: &'static str) -> Self {
        Self { name, kind: MetricKind::Gauge, labels, help }
    }

    /// A family of histograms.
    #[must_use]
    pub const fn histogram(name: &'static str, labels: &'static [&'static str], help: &'static str) -> Self {
        Self { name, kind: MetricKind::Histogram, labels, help }
    }
}

/// A family with what was measured.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasuredFamily {
    /// What it is.
    pub family: &'static MetricFamily,
    /// Its samples; each has a value for every label of the family, in the same order.
    pub samples: Vec<(Vec<String>, MetricValue)>,
}

/// One value of a metric.
#[derive(Clone, Debug, PartialEq)]
pub enum MetricValue {
    /// How many.
    Count(u64),
    /// How much.
    Measure(f64),
    /// How long, of many.
    Spread(Histogram),
}

/// Lengths of time, counted in steps.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Histogram {
    /// Counts by upper bound, each for itself and in rising order; what was longer than all stands in `beyond`.
    pub steps: Vec<(Duration, u64)>,
    /// How many were longer than the last bound.
    pub beyond: u64,
    /// All of them together.
    pub total: Duration,
}

impl Histogram {
    /// How many were counted.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.steps.iter().map(|(_, count)| count).sum::<u64>() + self.beyond
    }

    /// Adds another one with the same bounds, or any to an empty one.
    pub fn add(&mut self, other: &Self) {
        if self.steps.is_empty() {
            *self = other.clone();
            return;
        }
        for ((_, count), (_, more)) in self.steps.iter_mut().zip(&other.steps) {
            *count = count.saturating_add(*more);
        }
        self.beyond = self.beyond.saturating_add(other.beyond);
        self.total = self.total.saturating_add(other.total);
    }

    /// Takes away what there was before.
    pub fn remove(&mut self, earlier: &Self) {
        for ((_, count), (_, less)) in self.steps.iter_mut().zip(&earlier.steps) {
            *count = count.saturating_sub(*less);
        }
        self.beyond = self.beyond.saturating_sub(earlier.beyond);
        self.total = self.total.saturating_sub(earlier.total);
    }

    /// The bound that so many of a thousand stay below; none when there are none, or it lies beyond all bounds.
    #[must_use]
    pub fn below(&self, per_mille: u64) -> Option<Duration> {
        let wanted = u128::from(self.count()) * u128::from(per_mille);
        let mut counted = 0;
        let mut steps = self.steps.iter().filter(|_| wanted > 0);
        steps
            .find(|(_, count)| {
                counted += u128::from(*count) * 1000;
                counted >= wanted
            })
            .map(|(bound, _)| *bound)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_histogram_has_no_middle() {
        assert_eq!(Histogram::default().below(500), None);
    }
}
