use std::time::Duration;

use super::moment::nanos_of;
use super::{Cost, Invalid};

/// Cost allowed per length of time, and how much of it may be taken at once.
///
/// ```
/// use tidegate_core::{Cost, Quota};
///
/// let quota = Quota::per_second(Cost::of(5))?.with_burst(Cost::of(20))?;
/// assert_eq!(quota.lead().as_secs(), 4); // an empty bucket of 20 fills in 4 seconds
///
/// let problem = Quota::per_second(Cost::ZERO).unwrap_err();
/// assert_eq!(problem.to_string(), "amount is 0, but must be more than 0");
/// # Ok::<(), tidegate_core::Invalid>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Quota {
    amount: Cost,
    window: Duration,
    burst: Option<Cost>,
}

/// Windows and leads end at 400 days: room for a year's quota, while eight leads still count as
/// nanoseconds in 60 bits, which the limiters with one number a key rely on.
pub(crate) const LONGEST: Duration = Duration::from_secs(400 * 86_400);

impl Quota {
    /// `amount` per `window`; all of it may be taken at once unless a burst is set.
    ///
    /// # Errors
    /// When the amount is zero, or the window is not between 1 µs and 400 days.
    pub fn new(amount: Cost, window: Duration) -> Result<Self, Invalid> {
        if amount == Cost::ZERO {
            return Err(Invalid::new("amount", amount, "more than 0"));
        }
        if window < Duration::from_micros(1) || window > LONGEST {
            return Err(Invalid::new("window", format!("{window:?}"), "from 1 microsecond to 400 days"));
        }
        Ok(Self { amount, window, burst: None })
    }

    /// `amount` per second.
    ///
    /// # Errors
    /// When the amount is zero.
    pub fn per_second(amount: Cost) -> Result<Self, Invalid> {
        Self::new(amount, Duration::from_secs(1))
    }

    /// `amount` per minute.
    ///
    /// # Errors
    /// When the amount is zero.
    pub fn per_minute(amount: Cost) -> Result<Self, Invalid> {
        Self::new(amount, Duration::from_secs(60))
    }

    /// `amount` per hour.
    ///
    /// # Errors
    /// When the amount is zero.
    pub fn per_hour(amount: Cost) -> Result<Self, Invalid> {
        Self::new(amount, Duration::from_secs(3_600))
    }

    /// `amount` per 24 hours.
    ///
    /// # Errors
    /// When the amount is zero.
    pub fn per_day(amount: Cost) -> Result<Self, Invalid> {
        Self::new(amount, Duration::from_secs(86_400))
    }

    /// The same quota, of which `burst` may be taken at once.
    ///
    /// # Errors
    /// When the burst is zero, or would take longer than 400 days to fill.
    pub fn with_burst(self, burst: Cost) -> Result<Self, Invalid> {
        if burst == Cost::ZERO {
            return Err(Invalid::new("burst", burst, "more than 0"));
        }
        let quota = Self { burst: Some(burst), ..self };
        if quota.lead_nanos() > u128::from(nanos_of(LONGEST)) {
            return Err(Invalid::new("burst", burst, "small enough to fill within 400 days"));
        }
        Ok(quota)
    }

    /// What is allowed per window.
    #[must_use]
    pub const fn amount(&self) -> Cost {
        self.amount
    }

    /// The length of time the amount is for.
    #[must_use]
    pub const fn window(&self) -> Duration {
        self.window
    }

    /// What may be taken at once: the burst that was set, or the whole amount.
    #[must_use]
    pub fn burst(&self) -> Cost {
        self.burst.unwrap_or(self.amount)
    }

    /// The burst, if one was set. Windows have none and refuse a quota that names one.
    #[must_use]
    pub const fn explicit_burst(&self) -> Option<Cost> {
        self.burst
    }

    /// The time in which the quota grants its whole burst.
    #[must_use]
    pub fn lead(&self) -> Duration {
        if self.burst.is_none() {
            return self.window;
        }
        Duration::from_nanos(u64::try_from(self.lead_nanos()).unwrap_or(u64::MAX))
    }

    fn lead_nanos(&self) -> u128 {
        let nanos = u128::from(nanos_of(self.window));
        (u128::from(self.burst().micros()) * nanos).div_ceil(u128::from(self.amount.micros()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(result: Result<Quota, Invalid>) -> String {
        result.unwrap_err().to_string()
    }

    #[test]
    fn impossible_quotas_are_refused_with_field_value_and_what_is_allowed() {
        let one = Cost::ONE;
        assert_eq!(problem(Quota::per_day(Cost::ZERO)), "amount is 0, but must be more than 0");
        assert_eq!(
            problem(Quota::new(one, Duration::ZERO)),
            "window is 0ns, but must be from 1 microsecond to 400 days"
        );
        assert_eq!(
            problem(Quota::new(one, Duration::from_secs(401 * 86_400))),
            "window is 34646400s, but must be from 1 microsecond to 400 days"
        );
        let daily = Quota::per_day(one).unwrap();
        assert_eq!(problem(daily.with_burst(Cost::ZERO)), "burst is 0, but must be more than 0");
        assert_eq!(
            problem(daily.with_burst(Cost::of(401))),
            "burst is 401, but must be small enough to fill within 400 days"
        );
    }
}
