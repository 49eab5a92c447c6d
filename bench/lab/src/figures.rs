//! Medians and quartiles: what is left of many noisy rounds.

/// A series of rounds in three numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figure {
    /// A quarter of the rounds is below.
    pub lower: f64,
    /// Half of them are.
    pub median: f64,
    /// Three quarters are.
    pub upper: f64,
}

impl Figure {
    /// The quartiles of `rounds`, the nearest round each; nothing is interpolated.
    pub fn of(rounds: impl IntoIterator<Item = f64>) -> Self {
        let mut rounds: Vec<f64> = rounds.into_iter().collect();
        rounds.sort_by(f64::total_cmp);
        let at = |quarter: usize| {
            let last = rounds.len().saturating_sub(1);
            rounds.get((last * quarter + 2) / 4).copied().unwrap_or(f64::NAN)
        };
        Self { lower: at(1), median: at(2), upper: at(3) }
    }

    /// Median and quartiles for a table: `2.00×, 1.90–2.10`.
    pub fn spanned(self, decimals: usize, unit: &str) -> String {
        let Self { lower, median, upper } = self;
        format!("{median:.decimals$}{unit}, {lower:.decimals$}–{upper:.decimals$}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_outlier_does_not_move_the_figure() {
        let figure = Figure::of([5.0, 1.0, 2.0, 900.0, 3.0]);
        assert_eq!(figure, Figure { lower: 2.0, median: 3.0, upper: 5.0 });
    }

    #[test]
    fn a_table_shows_the_median_with_its_quartiles() {
        let figure = Figure { lower: 1.9, median: 2.0, upper: 2.1 };
        assert_eq!([figure.spanned(2, "×"), figure.spanned(0, "")], ["2.00×, 1.90–2.10", "2, 2–2"]);
    }
}
