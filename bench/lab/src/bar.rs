//! The bars: what this project promises, and whether a run kept it.

/// A promise with what was measured.
#[derive(Clone, Debug)]
pub struct Bar {
    /// What is promised, in words.
    pub promise: String,
    /// What was measured; not a number where nothing was.
    pub measured: f64,
    /// What stands behind both numbers.
    pub unit: &'static str,
    /// What is promised, as a number.
    pub bound: Bound,
}

/// Which side of the bar is the good one.
#[derive(Clone, Copy, Debug)]
pub enum Bound {
    /// From this on.
    AtLeast(f64),
    /// Up to this.
    AtMost(f64),
}

impl Bar {
    /// A number that could not be measured misses every bar.
    pub fn is_met(&self) -> bool {
        match self.bound {
            Bound::AtLeast(bound) => self.measured >= bound,
            Bound::AtMost(bound) => self.measured <= bound,
        }
    }

    /// The bar as a row of a table.
    pub fn row(&self) -> String {
        let (sign, bound) = match self.bound {
            Bound::AtLeast(bound) => ("≥", bound),
            Bound::AtMost(bound) => ("≤", bound),
        };
        let verdict = if self.is_met() { "met" } else { "**missed**" };
        format!(
            "| {} | {sign} {bound}{unit} | {:.2}{unit} | {verdict} |",
            self.promise,
            self.measured,
            unit = self.unit
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bar(measured: f64, bound: Bound) -> Bar {
        Bar { promise: "speed".to_owned(), measured, unit: "×", bound }
    }

    #[test]
    fn a_bar_is_met_at_its_bound_and_missed_beyond_it() {
        assert!(bar(2.5, Bound::AtLeast(2.5)).is_met() && bar(20.0, Bound::AtMost(20.0)).is_met());
        assert!(!bar(2.49, Bound::AtLeast(2.5)).is_met() && !bar(20.1, Bound::AtMost(20.0)).is_met());
    }

    #[test]
    fn what_could_not_be_measured_is_missed() {
        assert!(!bar(f64::NAN, Bound::AtLeast(1.0)).is_met() && !bar(f64::NAN, Bound::AtMost(1.0)).is_met());
    }

    #[test]
    fn a_row_names_promise_bound_measurement_and_verdict() {
        assert_eq!(bar(3.0, Bound::AtLeast(2.5)).row(), "| speed | ≥ 2.5× | 3.00× | met |");
    }
}
