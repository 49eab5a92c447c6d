use serde_json::Value;

use super::json::{decimal, millionths};

/// How many requests a line of the log stands for: itself, or as many as were left out for it on the average.
///
/// Where one in a hundred is written, each that is written stands for a hundred. In millionths, as a share need not be
/// one of a whole number: 30 % of requests stand for 3.333 333 each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StandsFor(u64);

impl StandsFor {
    /// For itself.
    pub const ONE: Self = Self(1_000_000);

    /// Of requests of which this share is written, in millionths.
    #[must_use]
    pub const fn of_share(millionths: u32) -> Self {
        if millionths == 0 { Self::ONE } else { Self(1_000_000_000_000 / millionths as u64) }
    }

    /// For so many, itself included.
    #[must_use]
    pub const fn of_count(count: u64) -> Self {
        Self(count.saturating_mul(1_000_000))
    }

    /// In millionths of a request.
    #[must_use]
    pub const fn micros(self) -> u64 {
        self.0
    }

    pub(super) fn json(self) -> Value {
        if self.0.is_multiple_of(1_000_000) { (self.0 / 1_000_000).into() } else { decimal(self.0) }
    }

    pub(super) fn read(value: &Value) -> Option<Self> {
        millionths(value).filter(|micros| *micros > 0).map(Self)
    }
}
