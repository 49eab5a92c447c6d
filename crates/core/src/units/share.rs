//! Parts of a whole in whole numbers.
//!
//! Ratios and rolls are fractions; what we count and wait is not. Here is where the one becomes the other,
//! once, with the rounding stated, so that no sum of roundings can drift.

use std::time::Duration;

use super::{Ratio, Roll, nanos_of};

/// All of it, in millionths.
pub(crate) const WHOLE: u64 = 1_000_000;

/// A ratio in millionths, to the nearest one: .34 is 340 000 and stays so.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a ratio is from 0 to 1, so a million of them fits"
)]
pub(crate) fn millionths(ratio: Ratio) -> u64 {
    (ratio.value() * 1e6).round() as u64
}

/// Whether `part` of `whole` is at least `ratio` millionths; nothing of nothing is not.
pub(crate) fn is_at_least(part: u64, whole: u64, ratio: u64) -> bool {
    whole > 0 && u128::from(part) * u128::from(WHOLE) >= u128::from(whole) * u128::from(ratio)
}

/// This many millionths of `duration`, rounded down.
pub(crate) fn share_of(duration: Duration, millionths: u64) -> Duration {
    let nanos = u128::from(nanos_of(duration)) * u128::from(millionths) / u128::from(WHOLE);
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

/// The duration that `roll` picks between `low`, which roll 0 gives exactly, and `high`, which is
/// approached.
pub(crate) fn between(low: Duration, high: Duration, roll: Roll) -> Duration {
    let span = u128::from(nanos_of(high.saturating_sub(low)));
    let nanos = (span * u128::from(fraction(roll))) >> FRACTION_BITS;
    low.saturating_add(Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX)))
}

/// Four thousand million places to land on: fine enough to keep any herd apart.
const FRACTION_BITS: u32 = 32;

/// The roll in units of 2⁻³², rounded down.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a roll is at least 0 and below 1, so the product fits"
)]
fn fraction(roll: Roll) -> u64 {
    (roll.value() * f64::from(FRACTION_BITS).exp2()) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_roll_picks_its_share_exactly() {
        let (low, high) = (Duration::from_secs(1), Duration::from_secs(5));
        let picked = |roll| between(low, high, Roll::new(roll).unwrap());
        assert_eq!(picked(0.0), low);
        assert_eq!(picked(0.5), Duration::from_secs(3));
        assert_eq!(picked(0.625), Duration::from_millis(3_500));
        let last = picked(1.0 - f64::EPSILON);
        assert!(last < high && high - last < Duration::from_nanos(2));
        assert_eq!(between(high, low, Roll::new(0.5).unwrap()), high);
    }

    #[test]
    fn ratios_keep_their_sixth_decimal() {
        for (ratio, expected) in [(0.34, 340_000), (0.3, 300_000), (0.1, 100_000), (1.0, 1_000_000)] {
            assert_eq!(millionths(Ratio::new(ratio).unwrap()), expected);
        }
        assert!(is_at_least(1, 2, 500_000) && !is_at_least(1, 2, 500_001) && !is_at_least(0, 0, 0));
    }
}
