use crate::units::Ratio;

/// What went through a service in one tick.
///
/// Its [`error`](Self::error) is how far demand is above what could be served, as a logarithm: 0 when they
/// are equal, `ln 2 = 0.69` at twice as much, `−0.69` at half. What could be served is what was, if
/// all places had been busy. What waits is demand too, or a queue once filled would stand for ever.
///
/// | entered | waiting | served | busy | error                                |
/// |---------|---------|--------|------|--------------------------------------|
/// | 500     | 0       | 500    | 0.60 | ln 0.60 = −0.51: room for more       |
/// | 500     | 10      | 490    | 1    | ln 520/500 = 0.04                    |
/// | 1000    | 90      | 490    | 1    | ln 1100/500 = 0.79                   |
/// | 1       | 1       | 0      | 1    | ln 12/10 = 0.18: too few to tell     |
///
/// Ten are added to both sides of the fraction: where a tick sees three requests, one more or less is
/// chance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Flow {
    /// Requests admitted to wait or to be served.
    pub entered: u64,
    /// Requests that began to be served.
    pub served: u64,
    /// Requests that wait at the end of the tick.
    pub waiting: u64,
    /// The share of places that were busy, averaged over the tick.
    pub busy: Ratio,
}

/// Where a tick sees this many requests, half of them more or less is noise.
const GRACE: u64 = 10;

/// Places that were never busy say no more than those busy a tenth of the time: there is room.
const LEAST_BUSY: f64 = 0.1;

impl Flow {
    /// Demand over what could be served, as a logarithm.
    #[expect(clippy::cast_precision_loss, reason = "counts of a tick")]
    #[must_use]
    pub fn error(&self) -> f64 {
        let demand = self.entered.saturating_add(self.waiting).saturating_add(GRACE);
        let served = self.served.saturating_add(GRACE);
        (demand as f64 / served as f64).ln() + self.busy.value().max(LEAST_BUSY).ln()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_as_in_the_example() {
        let error = |entered, waiting, served, busy| {
            Flow { entered, served, waiting, busy: Ratio::new(busy).unwrap() }.error()
        };
        let rounded = |error: f64| format!("{error:.2}");
        assert_eq!(rounded(error(500, 0, 500, 0.6)), "-0.51");
        assert_eq!(rounded(error(500, 10, 490, 1.0)), "0.04");
        assert_eq!(rounded(error(1_000, 90, 490, 1.0)), "0.79");
        assert_eq!(rounded(error(1, 1, 0, 1.0)), "0.18");
        assert!(error(0, 0, 0, 0.0).is_finite() && error(u64::MAX, u64::MAX, 0, 1.0).is_finite());
    }
}
