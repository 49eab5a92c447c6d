use super::Invalid;

/// A share between 0 and 1, both included.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Ratio(f64);

impl Ratio {
    /// None of it.
    pub const ZERO: Self = Self(0.0);
    /// All of it.
    pub const ONE: Self = Self(1.0);

    /// The share `value`.
    ///
    /// # Errors
    /// When the value is not a number from 0 to 1.
    pub fn new(value: f64) -> Result<Self, Invalid> {
        if (0.0..=1.0).contains(&value) {
            Ok(Self(value))
        } else {
            Err(Invalid::new("ratio", value, "from 0 to 1"))
        }
    }

    /// The share as a number.
    #[must_use]
    pub const fn value(self) -> f64 {
        self.0
    }
}

/// A number in `[0, 1)` that the driver drew. Chance is told, like time, so a test can choose it.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Roll(f64);

impl Roll {
    /// The roll `value`.
    ///
    /// # Errors
    /// When the value is not a number in `[0, 1)`.
    pub fn new(value: f64) -> Result<Self, Invalid> {
        if (0.0..1.0).contains(&value) {
            Ok(Self(value))
        } else {
            Err(Invalid::new("roll", value, "at least 0 and below 1"))
        }
    }

    /// The roll as a number.
    #[must_use]
    pub const fn value(self) -> f64 {
        self.0
    }

    /// Whether something of this probability happens with this roll: always for one, never for zero.
    #[must_use]
    pub fn hits(self, probability: Ratio) -> bool {
        self.0 < probability.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_shares_from_zero_to_one_exist() {
        for value in [-0.1, 1.1, f64::NAN, f64::INFINITY] {
            assert_eq!(Ratio::new(value).unwrap_err().field, "ratio");
            assert_eq!(Roll::new(value).unwrap_err().field, "roll");
        }
        assert!(Ratio::new(1.0).is_ok() && Roll::new(1.0).is_err());
    }

    #[test]
    fn what_is_certain_always_hits_and_what_is_impossible_never() {
        for value in [0.0, 0.5, 0.999_999] {
            let roll = Roll::new(value).unwrap();
            assert!(roll.hits(Ratio::ONE) && !roll.hits(Ratio::ZERO));
        }
    }
}
