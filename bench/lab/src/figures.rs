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
    /// The quartiles of `rounds`, the nearest round each. Of an even number the median is the mean of the two in the middle:
    /// the larger of them would make the worse of two rounds the usual one.
    pub fn of(rounds: impl IntoIterator<Item = f64>) -> Self {
        let mut rounds: Vec<f64> = rounds.into_iter().collect();
        rounds.sort_by(f64::total_cmp);
        let last = rounds.len().saturating_sub(1);
        let at = |place: usize| rounds.get(place).copied().unwrap_or(f64::NAN);
        let nearest = |quarter: usize| at((last * quarter + 2) / 4);
        let median = f64::midpoint(at(last / 2), at(last.div_ceil(2)));
        Self { lower: nearest(1), median, upper: nearest(3) }
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
    fn the_median_of_an_even_number_is_between_the_two_in_the_middle() {
        assert_eq!(Figure::of([3.0, 1.0]), Figure { lower: 1.0, median: 2.0, upper: 3.0 });
        assert_eq!(Figure::of([7.0, 1.0, 900.0, 2.0]), Figure { lower: 2.0, median: 4.5, upper: 7.0 });
    }

    #[test]
    fn what_never_happened_in_one_of_two_rounds_has_no_usual_value() {
        assert!(Figure::of([0.5, f64::INFINITY]).median.is_infinite());
        assert!(Figure::of([0.5, f64::NAN]).median.is_nan() && Figure::of([]).median.is_nan());
    }

    #[test]
    fn a_table_shows_the_median_with_its_quartiles() {
        let figure = Figure { lower: 1.9, median: 2.0, upper: 2.1 };
        assert_eq!([figure.spanned(2, "×"), figure.spanned(0, "")], ["2.00×, 1.90–2.10", "2, 2–2"]);
    }
}
