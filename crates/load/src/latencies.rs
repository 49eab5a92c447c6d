//! Latencies in microseconds, in histograms that take their memory when the first one comes.

use std::time::Duration;

use hdrhistogram::{Counter, Histogram};

use crate::plan::MAX_LATENCY;
use crate::report::Percentiles;

/// Latencies to so many digits, counted in `C`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Latencies<C: Counter, const DIGITS: u8>(Option<Histogram<C>>);

/// To three digits, in 180 KB.
pub(crate) type Fine = Latencies<u64, 3>;

/// To a sixteenth, in 2 KB.
pub(crate) type Coarse = Latencies<u32, 1>;

impl<C: Counter, const DIGITS: u8> Latencies<C, DIGITS> {
    pub(crate) fn record(&mut self, latency: Duration) {
        if self.0.is_none() {
            self.0 = Histogram::new_with_bounds(1, micros(MAX_LATENCY), DIGITS).ok();
        }
        if let Some(histogram) = &mut self.0 {
            histogram.saturating_record(micros(latency));
        }
    }

    /// The latency that this share of requests did not exceed.
    pub(crate) fn quantile(&self, quantile: f64) -> Option<Duration> {
        let histogram = self.0.as_ref()?;
        Some(Duration::from_micros(histogram.value_at_quantile(quantile).min(histogram.max())))
    }

    pub(crate) fn percentiles(&self) -> Option<Percentiles> {
        let histogram = self.0.as_ref()?;
        Some(Percentiles {
            count: histogram.len(),
            p50: self.quantile(0.5)?,
            p90: self.quantile(0.9)?,
            p99: self.quantile(0.99)?,
            p999: self.quantile(0.999)?,
            max: Duration::from_micros(histogram.max()),
        })
    }

    pub(crate) fn absorb(&mut self, other: &Self) {
        match (&mut self.0, &other.0) {
            (_, None) => {}
            (mine @ None, Some(more)) => *mine = Some(more.clone()),
            // Both have the same bounds, so there is always room.
            (Some(mine), Some(more)) => mine.add(more).unwrap_or_default(),
        }
    }
}

/// At least one: what is faster than the clock can tell took some time nevertheless.
pub(crate) fn micros(latency: Duration) -> u64 {
    u64::try_from(latency.as_micros()).unwrap_or(u64::MAX).max(1)
}
