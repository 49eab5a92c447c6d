//! Our retry budget.

use std::time::Duration;

use tidegate_core::retry::{BudgetRule, BudgetTerms, RetryBudget};
use tidegate_core::{Invalid, Moment, Ratio};

use super::driven::Mechanism;
use super::now;
use crate::contender::Mode;

/// Counts a request and takes a retry for it.
pub(crate) struct Retried(RetryBudget);

impl Retried {
    pub(crate) fn new(mode: Mode) -> Result<Self, Invalid> {
        // A retry for each request, or none for any.
        let (ratio, reserve_per_second) = match mode {
            Mode::Admitting => (Ratio::ONE, 1_000),
            Mode::Refusing => (Ratio::ZERO, 0),
        };
        let terms = BudgetTerms { ratio, reserve_per_second, window: Duration::from_secs(10) };
        Ok(Self(RetryBudget::new(BudgetRule::new(terms)?, now())))
    }
}

impl Mechanism for Retried {
    #[inline]
    fn serve(&self, mut clock: impl FnMut() -> Moment) -> bool {
        let now = clock();
        self.0.request(now);
        self.0.take(now).is_admit()
    }
}
