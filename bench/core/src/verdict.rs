//! The bars: what this project promises about its decisions, and whether this run kept it.

/// A promise with what was measured.
#[derive(Clone, Debug)]
pub(crate) struct Bar {
    pub(crate) promise: String,
    pub(crate) measured: f64,
    pub(crate) unit: &'static str,
    pub(crate) bound: Bound,
}

/// Which side of the bar is the good one.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Bound {
    AtLeast(f64),
    AtMost(f64),
}

impl Bar {
    /// A number that could not be measured misses every bar.
    pub(crate) fn is_met(&self) -> bool {
        match self.bound {
            Bound::AtLeast(bound) => self.measured >= bound,
            Bound::AtMost(bound) => self.measured <= bound,
        }
    }

    /// The bar as a row of a table.
    pub(crate) fn row(&self) -> String {
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
