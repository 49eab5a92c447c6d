//! A quota's own clock: time counted in what it grants.
//!
//! A limiter of 3 a second owes a request every 333 333 333⅓ ns. Rounded to whole nanoseconds, a year
//! of it drifts by 31 requests' worth of thirds; in floating point, sums depend on their order. So we
//! do not turn costs into time. We turn time into cost, and compare costs, which are whole numbers.
//!
//! The clock ticks every 2^shift ns and counts **grains**: small equal parts of a unit, chosen so that
//! a tick grants at most one. 3 a second with ticks of 1 ns: a unit is worth 333 333 333⅓ ticks, so it
//! is cut into 333 000 000 grains (a multiple of a million, so that millionths of a unit are whole grains
//! too) and a tick grants 0.999 grains:
//!
//! | tick        | granted grains | units |
//! |-------------|----------------|-------|
//! | 333 333 333 | 332 999 999    | 0     |
//! | 333 333 334 | 333 000 000    | 1     |
//! | 666 666 667 | 666 000 000    | 2     |
//! | 10^9        | 999 000 000    | 3     |
//!
//! Costs add up exactly whatever their order, and the rate is exact for ever; the only rounding is the
//! reading of the clock, which grants a grain at the first tick at which it is fully earned.

use std::time::Duration;

use crate::units::{Cost, Moment, Quota, nanos_of};

/// The number of ticks by which reading a clock divides without a division.
const BINARY: u64 = 1 << 63;

/// The bits of [`Stretch::upper`] behind the point. Before it there is room for the ten ticks or so that a grain
/// takes at most.
const STRETCH_BITS: u32 = 59;

/// Up to so many nanoseconds, 292 years, a moment is found without a division: moments are counted from 1970.
const NEAR: u64 = 1 << 63;

/// Far more grains than a quota ever holds, and few enough to be added to what a key is ahead.
const TOO_MANY: u64 = 1 << 62;

/// `ticks / earned` in 2^-123, in two words, too small by one or two of them: the way back without a division. One word
/// would be wrong by several ticks after nine years.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stretch {
    upper: u64,
    lower: u64,
}

/// The clock that turns moments into grains granted and back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pace {
    /// A tick is 2^shift nanoseconds.
    shift: u32,
    /// `earned` grains in `ticks` ticks, in lowest terms: at most one grain a tick.
    earned: u64,
    ticks: u64,
    /// `earned / ticks` in 2^-63, rounded down: a division we do once instead of at every reading. Nothing
    /// else is needed where `ticks` is [`BINARY`].
    slope: u64,
    stretch: Stretch,
    /// Grains per millionth of a unit, as a fraction.
    grains: u64,
    per_micros: u64,
    /// The grains of one unit, since most requests cost one.
    one: u64,
}

impl Pace {
    /// The clock of `quota` with ticks of a nanosecond, exact for ever.
    pub(crate) fn fine(quota: &Quota) -> Self {
        let pace = Self::new(quota, 0, power_of_ten_from);
        if pace.earned == pace.ticks { Self { earned: BINARY, ticks: BINARY, ..pace } } else { pace }
    }

    /// The clock of `quota` with ticks of 2^shift ns. What a tick earns is rounded up to a fraction of 2^63, so
    /// that reading the clock is one multiplication; that grants a grain a tick too early now and then, and
    /// never more than one grain in all. Where a tick grants units, a grain is the fewest whole ones that take a tick:
    /// at most two ticks' worth.
    pub(crate) fn packed(quota: &Quota, shift: u32) -> Self {
        let pace = Self::new(quota, shift, |fewest| fewest);
        let slope = narrow((u128::from(pace.earned) << 63).div_ceil(u128::from(pace.ticks)));
        Self { earned: slope, slope, ticks: BINARY, stretch: Stretch::new(slope, BINARY), ..pace }
    }

    /// The clock in which a grain is as many units as `coarsen` makes of the fewest that take a tick.
    fn new(quota: &Quota, shift: u32, coarsen: impl Fn(u128) -> u128) -> Self {
        let micros_per_unit = u128::from(Cost::ONE.micros());
        // A unit is worth `worth / share` ticks.
        let worth = u128::from(nanos_of(quota.window())) * micros_per_unit;
        let share = u128::from(quota.amount().micros()) << shift;
        let (grains, units) = match worth / share {
            ticks @ 1_000_000.. => (ticks - ticks % 1_000_000, 1),
            ticks @ 1_000.. => (ticks - ticks % 1_000, 1),
            ticks @ 1.. => (ticks, 1),
            0 => (1, coarsen(share.div_ceil(worth))),
        };
        let (earned, ticks) = lowest_terms(grains * share, worth * units);
        let slope = narrow((u128::from(earned) << 63) / u128::from(ticks));
        let (grains, per_micros) = if grains.is_multiple_of(micros_per_unit) {
            (grains / micros_per_unit, 1)
        } else {
            (grains, micros_per_unit * units)
        };
        let (grains, per_micros) = (narrow(grains), narrow(per_micros));
        let stretch = Stretch::new(earned, ticks);
        let pace = Self { shift, earned, ticks, slope, stretch, grains, per_micros, one: 0 };
        Self { one: pace.grains_exactly(Cost::ONE), ..pace }
    }

    /// The length of a tick, as a power of two of nanoseconds.
    pub(crate) const fn shift(&self) -> u32 {
        self.shift
    }

    /// The grains `cost` takes, rounded up where a grain is more than a millionth of a unit. More than any
    /// quota holds read as [`TOO_MANY`].
    #[inline]
    pub(crate) fn grains(&self, cost: Cost) -> u64 {
        if cost == Cost::ONE { self.one } else { self.grains_exactly(cost) }
    }

    #[inline(never)]
    fn grains_exactly(&self, cost: Cost) -> u64 {
        let product = u128::from(cost.micros()) * u128::from(self.grains);
        let grains = if self.per_micros == 1 { product } else { product.div_ceil(self.per_micros.into()) };
        narrow(grains).min(TOO_MANY)
    }

    /// The cost that `grains` are worth, rounded up.
    pub(crate) fn cost(&self, grains: u64) -> Cost {
        let micros = (u128::from(grains) * u128::from(self.per_micros)).div_ceil(u128::from(self.grains));
        Cost::from_micros(narrow(micros))
    }

    /// The grains granted from the origin to `now`: `now · earned / ticks`, rounded down.
    #[inline]
    pub(crate) fn granted(&self, now: Moment) -> u64 {
        self.granted_by(now.nanos() >> self.shift)
    }

    /// The grains granted up to a tick.
    #[inline]
    fn granted_by(&self, tick: u64) -> u64 {
        let estimate = self.sloped(tick);
        if self.ticks == BINARY {
            return estimate;
        }
        // The slope was rounded down, by less than one grain in 2^63 ticks, so the estimate is right or
        // one too low. Whether the next grain is earned already can be told exactly.
        let next = u128::from(estimate) + 1;
        let is_earned = next * u128::from(self.ticks) <= u128::from(tick) * u128::from(self.earned);
        estimate + u64::from(is_earned)
    }

    /// The grains granted by a fine clock, whose ticks are nanoseconds.
    #[inline]
    pub(crate) fn granted_fine(&self, now: Moment) -> u64 {
        debug_assert_eq!(self.shift, 0, "a packed clock has longer ticks");
        // A grain a tick, as with all quotas that grant a unit every so many milliseconds.
        if self.earned == self.ticks { now.nanos() } else { self.granted_by(now.nanos()) }
    }

    /// The grains granted by a packed clock, which needs no more than its slope.
    #[inline]
    pub(crate) fn granted_packed(&self, now: Moment) -> u64 {
        self.sloped(now.nanos() >> self.shift)
    }

    #[inline]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a tick earns at most one grain, so ticks bound grains"
    )]
    fn sloped(&self, tick: u64) -> u64 {
        ((u128::from(tick) * u128::from(self.slope)) >> 63) as u64
    }

    /// How long after `now` the clock first has granted `grains`: exact to the nanosecond.
    #[inline(always)]
    pub(crate) fn until(&self, now: Moment, grains: u64) -> Duration {
        let then = match self.stretch.tick_before(grains) {
            before if before < NEAR >> self.shift => self.tick_after(before, grains) << self.shift,
            _ => self.nanos_of(grains),
        };
        Duration::from_nanos(then.saturating_sub(now.nanos()))
    }

    /// The first tick that has granted `grains`: it comes next after `before`, or after the next, which can be told
    /// exactly.
    #[inline]
    fn tick_after(&self, before: u64, grains: u64) -> u64 {
        let tick = before + grains.min(1);
        tick + u64::from(self.granted_by(tick) < grains)
    }

    /// The start of the first tick that has granted `grains`, however many.
    #[cold]
    fn nanos_of(&self, grains: u64) -> u64 {
        let tick = (u128::from(grains) * u128::from(self.ticks)).div_ceil(u128::from(self.earned));
        narrow(u128::from(narrow(tick)) << self.shift)
    }

    /// The grains granted in `duration`, rounded down.
    pub(crate) fn grains_in(&self, duration: Duration) -> u64 {
        self.granted(Moment::from_nanos(nanos_of(duration)))
    }
}

impl Stretch {
    fn new(earned: u64, ticks: u64) -> Self {
        let (whole, earned) = (u128::from(ticks) << STRETCH_BITS, u128::from(earned));
        let (upper, rest) = (narrow(whole / earned), whole % earned);
        match narrow((rest << 64) / earned).checked_sub(1) {
            Some(lower) => Self { upper, lower },
            None => Self { upper: upper - 1, lower: u64::MAX },
        }
    }

    /// The last tick, or the one before it, that has not granted `grains` yet.
    #[inline]
    fn tick_before(self, grains: u64) -> u64 {
        let grains = u128::from(grains);
        let stretched = grains * u128::from(self.upper) + ((grains * u128::from(self.lower)) >> 64);
        narrow(stretched >> STRETCH_BITS)
    }
}

/// `part / whole` in lowest terms. Where these still need more than 64 bits (a fractional amount over
/// days), both lose their last bits in the direction that slows the clock, by less than one part in 2^50.
fn lowest_terms(part: u128, whole: u128) -> (u64, u64) {
    let (mut divisor, mut rest) = (whole, part);
    while rest > 0 {
        (divisor, rest) = (rest, divisor % rest);
    }
    let (mut part, mut whole) = (part / divisor, whole / divisor);
    while whole > u128::from(u64::MAX) {
        (part, whole) = (part / 2, whole.div_ceil(2));
    }
    (narrow(part), narrow(whole))
}

/// The smallest power of ten that is at least `floor`.
fn power_of_ten_from(floor: u128) -> u128 {
    let mut power = 1;
    while power < floor {
        power *= 10;
    }
    power
}

fn narrow(wide: u128) -> u64 {
    u64::try_from(wide).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thirds() -> Pace {
        Pace::fine(&Quota::per_second(Cost::of(3)).unwrap())
    }

    #[test]
    fn three_a_second_grants_as_in_the_example() {
        let pace = thirds();
        for (tick, granted) in [
            (333_333_333, 332_999_999),
            (333_333_334, 333_000_000),
            (666_666_667, 666_000_000),
            (1_000_000_000, 999_000_000),
        ] {
            assert_eq!(pace.granted(Moment::from_nanos(tick)), granted);
        }
        assert_eq!(pace.grains(Cost::of(3)), 999_000_000);
    }

    #[test]
    fn a_year_of_thirds_is_exact() {
        let pace = thirds();
        let year = 365 * 86_400_u32;
        let granted = pace.granted(Moment::from_nanos(u64::from(year) * 1_000_000_000));
        assert_eq!(granted, pace.grains(Cost::of(3 * year)));
    }

    #[test]
    fn until_names_the_first_tick_that_has_granted() {
        let pace = thirds();
        for grains in [1, 332_999_999, 333_000_000, 999_000_001] {
            let wait = pace.until(Moment::ORIGIN, grains);
            let then = Moment::ORIGIN.plus(wait);
            assert!(pace.granted(then) >= grains);
            assert!(pace.granted(Moment::from_nanos(then.nanos() - 1)) < grains);
        }
    }

    #[test]
    fn the_way_back_is_the_one_a_division_finds() {
        let quotas = [(3, 1), (1_000, 7), (7, 86_400), (4_000_000_000, 1), (1, 400 * 86_400)];
        for (amount, seconds) in quotas {
            let quota = Quota::new(Cost::units(amount).unwrap(), Duration::from_secs(seconds)).unwrap();
            let paces = [Pace::fine(&quota), Pace::packed(&quota, 0), Pace::packed(&quota, 17)];
            for (pace, bits) in paces.into_iter().flat_map(|pace| (0..64).map(move |bits| (pace, bits))) {
                let today = pace.granted(Moment::from_nanos(1_794_000_000_000_000_000)) + (1 << bits >> 7);
                for grains in [(1 << bits) - 1, 1 << bits, (1 << bits) + (1 << bits) / 3, today] {
                    let then = pace.until(Moment::ORIGIN, grains);
                    assert_eq!(then, Duration::from_nanos(pace.nanos_of(grains)), "{grains} of {pace:?}");
                }
            }
        }
    }

    #[test]
    fn a_quota_faster_than_its_ticks_counts_in_tens_of_units() {
        let quota = Quota::per_second(Cost::units(4_000_000_000).unwrap()).unwrap();
        let pace = Pace::fine(&quota); // 4 units a tick
        assert_eq!(pace.grains(Cost::of(10)), 1);
        assert_eq!(pace.grains(Cost::of(11)), 2);
        assert_eq!(pace.granted(Moment::from_nanos(5)), 2);
    }

    #[test]
    fn a_packed_grain_is_the_fewest_units_that_take_a_tick() {
        let quota = Quota::per_day(Cost::units(1_000_000_000).unwrap()).unwrap();
        let pace = Pace::packed(&quota, 21); // 24.3 units a tick
        assert_eq!((pace.grains(Cost::of(25)), pace.grains(Cost::of(26))), (1, 2));
    }

    #[test]
    fn the_extremes_of_a_quota_have_a_clock() {
        for amount in [Cost::from_micros(1), Cost::ONE, Cost::MAX] {
            for window in [Duration::from_micros(1), Duration::from_secs(400 * 86_400)] {
                let Ok(quota) = Quota::new(amount, window) else { continue };
                for pace in [Pace::fine(&quota), Pace::packed(&quota, 0), Pace::packed(&quota, 30)] {
                    assert!(pace.earned > 0 && pace.grains(amount) > 0, "{amount} per {window:?}");
                }
            }
        }
    }
}
