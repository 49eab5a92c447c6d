//! The store of permits and the area under its price line, in whole nanoseconds.

use std::time::Duration;

use super::ColdFactor;
use crate::units::{Cost, Invalid, LONGEST, Quota, nanos_of};

/// The price line of one rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Store {
    quota: Quota,
    /// Nanoseconds.
    warm_up: u64,
    /// Millionths of a unit up to which permits have the steady price.
    threshold: u64,
    /// Millionths of a unit above the threshold.
    band: u64,
    /// Both together.
    full: u64,
    /// Nanoseconds that the band costs more than at the steady price.
    premium: u64,
}

/// Below this a level has forgotten its store long since; it starts again at zero, so that sums fit.
const LOWEST: i128 = -(1 << 64);

impl Store {
    pub(super) fn new(quota: &Quota, warm_up: Duration, cold_factor: ColdFactor) -> Result<Self, Invalid> {
        let invalid = |allowed| Err(Invalid::new("warm_up", format!("{warm_up:?}"), allowed));
        if warm_up.is_zero() || warm_up > LONGEST {
            return invalid("more than 0 and at most 400 days");
        }
        let warm_up_nanos = nanos_of(warm_up);
        // What the quota grants in the warm-up, W/s. Of it the threshold is a half, and the band two
        // parts in 1 + c.
        let granted = u128::from(quota.amount().micros()) * u128::from(warm_up_nanos);
        let window = u128::from(nanos_of(quota.window()));
        let one = u128::from(Cost::ONE.micros());
        let uncountable = "short enough for what the quota grants in it to be counted";
        let Ok(threshold) = u64::try_from(granted / (2 * window)) else {
            return invalid(uncountable);
        };
        // Divided first and multiplied by a million after: `granted` may have 119 bits.
        let (whole, part) = (2 * granted / window, 2 * granted % window);
        let band = (whole * one + part * one / window) / (one + cold_factor.micros());
        if band == 0 {
            return invalid("long enough for the quota to grant a millionth of a unit in it");
        }
        let band = u64::try_from(band).unwrap_or(u64::MAX);
        let Some(full) = threshold.checked_add(band) else {
            return invalid(uncountable);
        };
        let mut store = Self { quota: *quota, warm_up: warm_up_nanos, threshold, band, full, premium: 0 };
        let steady = store.worth(store.full()) - store.worth(i128::from(threshold));
        store.premium = u64::try_from(i128::from(warm_up_nanos) - steady).unwrap_or(0);
        Ok(store)
    }

    pub(super) const fn amount(&self) -> Cost {
        self.quota.amount()
    }

    pub(super) const fn window(&self) -> Duration {
        self.quota.window()
    }

    /// The level of a full store.
    pub(super) fn full(&self) -> i128 {
        i128::from(self.full)
    }

    /// What a full store holds.
    pub(super) const fn capacity(&self) -> Cost {
        Cost::from_micros(self.full)
    }

    /// What it takes to bring the level down by `cost`, in nanoseconds.
    pub(super) fn price(&self, level: i128, cost: Cost) -> u64 {
        let price = self.worth(level) - self.worth(level - i128::from(cost.micros()));
        u64::try_from(price).unwrap_or(u64::MAX)
    }

    /// The level after `cost` was taken.
    pub(super) fn lowered(&self, level: i128, cost: Cost) -> i128 {
        let lowered = level - i128::from(cost.micros());
        if lowered < LOWEST { 0 } else { lowered }
    }

    /// The level after `cost` was given back, and what that is worth in nanoseconds.
    pub(super) fn raised(&self, level: i128, cost: Cost) -> (i128, u64) {
        let raised = (level + i128::from(cost.micros())).min(self.full());
        let price = self.worth(raised) - self.worth(level);
        (raised, u64::try_from(price).unwrap_or(u64::MAX))
    }

    /// What is stored, and the rest earned, after `idle` nanoseconds more. A full store takes the whole
    /// warm-up to fill.
    pub(super) fn filled(&self, stored: u64, rest: u64, idle: u64) -> (u64, u64) {
        let full = u128::from(self.full);
        let warm_up = u128::from(self.warm_up);
        let earned = u128::from(idle.min(self.warm_up)) * full + u128::from(rest);
        let (earned, rest) = (earned / warm_up, earned % warm_up);
        let sum = u128::from(stored) + earned;
        if sum >= full {
            return (self.full, 0);
        }
        (u64::try_from(sum).unwrap_or(self.full), u64::try_from(rest).unwrap_or(0))
    }

    /// The level at which this store is as full as `other` is at `level`.
    pub(super) fn as_full_as(&self, other: &Self, level: i128) -> i128 {
        let level = u128::try_from(level).unwrap_or(0) * u128::from(self.full) / u128::from(other.full);
        i128::try_from(level).unwrap_or(i128::MAX).min(self.full())
    }

    /// The units that `nanos` grant at the steady rate, rounded up.
    pub(super) fn units_in(&self, nanos: u64) -> Cost {
        let earned = u128::from(nanos) * u128::from(self.amount().micros());
        let units = earned.div_ceil(u128::from(nanos_of(self.window())));
        Cost::from_micros(u64::try_from(units).unwrap_or(u64::MAX))
    }

    /// The units that `nanos` grant at the steady rate, rounded down.
    pub(super) fn granted_in(&self, nanos: u64) -> Cost {
        let earned = u128::from(nanos) * u128::from(self.amount().micros());
        let units = earned / u128::from(nanos_of(self.window()));
        Cost::from_micros(u64::try_from(units).unwrap_or(u64::MAX))
    }

    /// What `cost` is worth at the steady rate, in nanoseconds.
    pub(super) fn steady_price(&self, cost: Cost) -> u64 {
        self.price(0, cost)
    }

    /// The area under the price line from nothing to `level`; below zero, minus the area to there.
    ///
    /// It never falls as the level rises, since each of its roundings is of something that does not.
    fn worth(&self, level: i128) -> i128 {
        let (window, amount) = (u128::from(nanos_of(self.window())), u128::from(self.amount().micros()));
        let steady = level.unsigned_abs() * window;
        if level < 0 {
            // Away from zero, so that the rate is never exceeded, not even by a nanosecond.
            return -signed(steady.div_ceil(amount));
        }
        let band = u128::from(self.band);
        let above = level.unsigned_abs().saturating_sub(u128::from(self.threshold)).min(band);
        // premium × (above / band)², in two steps of which neither can overflow.
        let premium = above * u128::from(self.premium) / band * above / band;
        signed(steady / amount + premium)
    }
}

/// Nanoseconds as a signed number; none here has more than 121 bits.
fn signed(nanos: u128) -> i128 {
    i128::try_from(nanos).unwrap_or(i128::MAX)
}
