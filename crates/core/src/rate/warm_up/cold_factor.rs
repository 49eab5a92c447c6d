use std::str::FromStr;

use crate::units::{Cost, Invalid};

/// How many times the steady price the coldest permit costs, to six decimals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ColdFactor {
    micros: u64,
}

const ALLOWED: &str = "a number above 1 and up to 1000 with at most six decimals";

impl ColdFactor {
    /// Guava's and Sentinel's: a cold service starts at a third of its rate.
    pub const THREE: Self = Self { micros: 3_000_000 };

    /// This many times the steady price.
    ///
    /// # Errors
    /// When it is not from 2 to 1000.
    pub fn times(times: u32) -> Result<Self, Invalid> {
        Self::from_micros(Cost::of(times).micros()).ok_or_else(|| Invalid::new("cold_factor", times, ALLOWED))
    }

    pub(super) fn micros(self) -> u128 {
        u128::from(self.micros)
    }

    fn from_micros(micros: u64) -> Option<Self> {
        (micros > Cost::ONE.micros() && micros <= Cost::of(1_000).micros()).then_some(Self { micros })
    }
}

impl FromStr for ColdFactor {
    type Err = Invalid;

    /// Reads a decimal such as `3` or `1.5` exactly.
    fn from_str(text: &str) -> Result<Self, Invalid> {
        let number = text.parse::<Cost>().ok();
        number
            .and_then(|number| Self::from_micros(number.micros()))
            .ok_or_else(|| Invalid::new("cold_factor", text, ALLOWED))
    }
}
