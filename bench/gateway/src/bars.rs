//! The bars: what this project promises about its gateway, and whether this run kept it.

/// A promise with what was measured; every one is an upper bound.
#[derive(Clone, Debug)]
pub(crate) struct Bar {
    pub(crate) promise: String,
    pub(crate) at_most: f64,
    pub(crate) measured: f64,
    pub(crate) unit: &'static str,
}

impl Bar {
    /// A number that could not be measured misses every bar.
    pub(crate) fn is_met(&self) -> bool {
        self.measured <= self.at_most
    }

    /// The bar as a row of a table.
    pub(crate) fn row(&self) -> String {
        let Self { promise, at_most, measured, unit } = self;
        let verdict = if self.is_met() { "met" } else { "**missed**" };
        format!("| {promise} | ≤ {at_most}{unit} | {measured:.2}{unit} | {verdict} |")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bar(measured: f64) -> Bar {
        Bar { promise: "speed".to_owned(), at_most: 1.15, measured, unit: "×" }
    }

    #[test]
    fn a_bar_is_met_at_its_bound_and_missed_beyond_it() {
        assert!(bar(1.15).is_met() && !bar(1.16).is_met() && !bar(f64::NAN).is_met());
    }

    #[test]
    fn a_row_names_promise_bound_measurement_and_verdict() {
        assert_eq!(bar(1.0).row(), "| speed | ≤ 1.15× | 1.00× | met |");
    }
}
