use std::fmt;
use std::str::FromStr;

use super::Invalid;

/// How much a request takes: requests, bytes, CPU seconds, tokens.
///
/// Counted in millionths of a unit and never in floating point, so a hundred charges of 0.01 are
/// exactly one.
///
/// ```
/// use tidegate_core::Cost;
///
/// let slice: Cost = "0.01".parse()?;
/// let sum = (0..100).fold(Cost::ZERO, |sum, _| sum.plus(slice));
/// assert_eq!(sum, Cost::ONE);
/// # Ok::<(), tidegate_core::Invalid>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cost(u64);

/// Millionths in one unit.
const MICROS: u64 = 1_000_000;

const ALLOWED: &str = "a number from 0 to 18446744073709 with at most six decimals";

impl Cost {
    /// Nothing at all.
    pub const ZERO: Self = Self(0);
    /// One unit.
    pub const ONE: Self = Self(MICROS);
    /// The largest cost there is, about 18 million million units.
    pub const MAX: Self = Self(u64::MAX);

    /// This many whole units.
    #[must_use]
    pub const fn of(units: u32) -> Self {
        Self(units as u64 * MICROS)
    }

    /// This many whole units, from a number that may be too large.
    ///
    /// # Errors
    /// When the units do not fit 64 bits of millionths.
    pub fn units(units: u64) -> Result<Self, Invalid> {
        units.checked_mul(MICROS).map(Self).ok_or_else(|| Invalid::new("cost", units, ALLOWED))
    }

    /// This many millionths of a unit.
    #[must_use]
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros)
    }

    /// The cost in millionths of a unit.
    #[must_use]
    pub const fn micros(self) -> u64 {
        self.0
    }

    /// The whole units in it, leaving a fraction out.
    #[must_use]
    pub const fn whole(self) -> u64 {
        self.0 / MICROS
    }

    /// The sum, or the largest cost there is.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// What is left after `other`, or nothing.
    #[must_use]
    pub const fn minus(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// One of `parts` equal parts, rounded up; all of it when there is nothing to share.
    pub(crate) const fn divided(self, parts: u32) -> Self {
        if parts <= 1 { self } else { Self(self.0.div_ceil(parts as u64)) }
    }

    /// This cost so many times, or the largest cost there is.
    pub(crate) const fn times(self, times: u32) -> Self {
        Self(self.0.saturating_mul(times as u64))
    }
}

impl FromStr for Cost {
    type Err = Invalid;

    /// Reads a decimal such as `12` or `0.01` exactly.
    fn from_str(text: &str) -> Result<Self, Invalid> {
        let invalid = || Invalid::new("cost", text, ALLOWED);
        let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
        let is_digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        if !is_digits(whole) || !is_digits(fraction) || fraction.len() > 6 {
            return Err(invalid());
        }
        let whole: u64 = whole.parse().map_err(|_| invalid())?;
        let fraction: u64 = format!("{fraction:0<6}").parse().map_err(|_| invalid())?;
        whole
            .checked_mul(MICROS)
            .and_then(|micros| micros.checked_add(fraction))
            .map(Self)
            .ok_or_else(invalid)
    }
}

impl fmt::Display for Cost {
    /// Writes `12` or `0.01`; what it writes can be read back.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, fraction) = (self.0 / MICROS, self.0 % MICROS);
        if fraction == 0 {
            return write!(f, "{whole}");
        }
        let digits = format!("{fraction:06}");
        write!(f, "{whole}.{}", digits.trim_end_matches('0'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_read_and_written_exactly() {
        for (text, micros) in
            [("0", 0), ("1", 1_000_000), ("0.01", 10_000), ("2.5", 2_500_000), ("0.000001", 1)]
        {
            let cost: Cost = text.parse().unwrap();
            assert_eq!(cost.micros(), micros);
            assert_eq!(cost.to_string(), text);
        }
    }

    #[test]
    fn what_is_no_cost_is_refused_with_its_text() {
        for text in ["", "-1", "+1", "1.", ".5", "1e3", "0.0000001", "18446744073710", "NaN"] {
            let problem = text.parse::<Cost>().unwrap_err();
            assert_eq!((problem.field, problem.value.as_str()), ("cost", text));
        }
        assert!(Cost::units(u64::MAX).is_err());
    }
}
