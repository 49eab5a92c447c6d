//! Places kept for what matters.
//!
//! When all places are taken by batch work, a user's request is refused like any other. So each level of
//! criticality may be guaranteed a share of the limit; what is not guaranteed is *spare* and for everybody.
//!
//! The choice is what to do with guaranteed places that nobody uses. Netflix lends them out, and when their
//! owner comes, admits it beyond the limit: up to twice the limit is in flight, when the service can bear
//! it least. We never exceed the limit, and a lent place cannot be called back, so **guaranteed places are
//! kept empty**. That costs as many places as are guaranteed and idle; guarantee little (a fifth, not all).
//!
//! Limit 10, of which critical is guaranteed 3 and critical_plus 2; spare are 5:
//!
//! | in flight                | who asks      | answer |
//! |--------------------------|---------------|--------|
//! | 5 sheddable              | sheddable     | refused: 5 free places are guaranteed to others |
//! | 5 sheddable              | critical      | admitted to its own |
//! | 5 sheddable, 3 critical  | critical      | refused: the last 2 are critical_plus's |
//! | 1 sheddable, 3 critical  | critical      | admitted to a spare one |
//! | 5 sheddable, 3 critical  | critical_plus | admitted to its own |
//!
//! A level without a share lives on spare places; none is without limit. A share of less than one place
//! guarantees nothing: of 4 places a fifth is none. And since the limit only grows when half of it is in use,
//! guaranteeing more than half stops it from growing while the guaranteed levels are quiet.

use crate::units::{Criticality, Invalid, Ratio};

/// Which share of the limit each level of criticality is guaranteed.
///
/// ```
/// use tidegate_core::concurrency::Shares;
/// use tidegate_core::{Criticality, Ratio};
///
/// let shares = Shares::NONE
///     .guarantee(Criticality::Critical, Ratio::new(0.3)?)?
///     .guarantee(Criticality::CriticalPlus, Ratio::new(0.2)?)?;
/// assert_eq!(shares.guaranteed(Criticality::Critical, 10), 3);
/// # Ok::<(), tidegate_core::Invalid>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shares {
    /// In parts of a million, so that the limit's part is a multiplication and a division by a constant.
    parts: [u32; 4],
}

const WHOLE: u32 = 1_000_000;

/// Bits that count the places of one level.
const LANE: usize = 16;

impl Shares {
    /// Nothing is guaranteed; every place is for everybody.
    pub const NONE: Self = Self { parts: [0; 4] };

    /// The same with `share` guaranteed to `level`.
    ///
    /// # Errors
    /// When more than everything would be guaranteed.
    pub fn guarantee(mut self, level: Criticality, share: Ratio) -> Result<Self, Invalid> {
        self.parts[level.index()] = super::algorithm::whole((share.value() * f64::from(WHOLE)).round());
        if self.parts.iter().sum::<u32>() > WHOLE {
            return Err(Invalid::new("share", share.value(), "at most what other levels leave of 1"));
        }
        Ok(self)
    }

    /// How many of `limit` places are guaranteed to `level`.
    #[must_use]
    #[inline]
    pub fn guaranteed(&self, level: Criticality, limit: u32) -> u32 {
        self.places(level.index(), u64::from(limit))
    }

    /// Whether one more of `level` fits, where `taken` counts each level's places in a lane of 16 bits.
    #[inline]
    pub(crate) fn fits(&self, taken: u64, limit: u64, level: Criticality) -> bool {
        let total = total(taken);
        if self.parts == [0; 4] || total >= limit {
            return total < limit;
        }
        let idle = |index: usize| {
            let guaranteed = u64::from(self.places(index, limit));
            guaranteed.saturating_sub(in_lane(taken, index))
        };
        if idle(level.index()) > 0 {
            return true;
        }
        total + (0..4).map(idle).sum::<u64>() < limit
    }

    #[allow(clippy::cast_possible_truncation, reason = "a part of a limit of 16 bits")]
    #[inline]
    const fn places(&self, index: usize, limit: u64) -> u32 {
        (limit * self.parts[index] as u64 / WHOLE as u64) as u32
    }
}

/// What one place of `level` adds to the count of places taken.
#[inline]
pub(crate) const fn one(level: Criticality) -> u64 {
    1 << (level.index() * LANE)
}

/// The places taken by the level with this index.
#[inline]
pub(crate) const fn in_lane(taken: u64, index: usize) -> u64 {
    taken >> (index * LANE) & 0xffff
}

/// The places taken by all levels.
#[inline]
pub(crate) const fn total(taken: u64) -> u64 {
    // Two lanes of 32 bits, then one: no sum can spill into its neighbour.
    let pairs = (taken & 0x0000_ffff_0000_ffff) + (taken >> LANE & 0x0000_ffff_0000_ffff);
    (pairs & 0xffff_ffff) + (pairs >> 32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(counts: [u64; 4]) -> u64 {
        counts.iter().rev().fold(0, |word, count| word << LANE | count)
    }

    fn a_third_and_a_fifth() -> Shares {
        let share = |value| Ratio::new(value).unwrap();
        Shares::NONE
            .guarantee(Criticality::Critical, share(0.3))
            .and_then(|shares| shares.guarantee(Criticality::CriticalPlus, share(0.2)))
            .unwrap()
    }

    #[test]
    fn ten_places_are_given_out_as_in_the_example() {
        let shares = a_third_and_a_fifth();
        for (counts, level, expected) in [
            ([4, 0, 0, 0], Criticality::Sheddable, true),
            ([5, 0, 0, 0], Criticality::Sheddable, false),
            ([5, 0, 0, 0], Criticality::SheddablePlus, false),
            ([5, 0, 0, 0], Criticality::Critical, true),
            ([5, 0, 3, 0], Criticality::Critical, false),
            ([1, 0, 3, 0], Criticality::Critical, true),
            ([5, 0, 3, 0], Criticality::CriticalPlus, true),
            ([5, 0, 3, 2], Criticality::CriticalPlus, false),
        ] {
            assert_eq!(shares.fits(taken(counts), 10, level), expected, "{counts:?} {level}");
        }
    }

    #[test]
    fn without_shares_every_level_fills_the_limit_and_none_exceeds_it() {
        for level in Criticality::ALL {
            assert!(Shares::NONE.fits(taken([2, 3, 4, 0]), 10, level));
            assert!(!Shares::NONE.fits(taken([2, 3, 4, 1]), 10, level));
        }
    }

    #[test]
    fn a_lowered_limit_admits_nobody_before_there_is_room() {
        assert!(!a_third_and_a_fifth().fits(taken([9, 0, 0, 0]), 8, Criticality::CriticalPlus));
        assert!(a_third_and_a_fifth().fits(taken([7, 0, 0, 0]), 8, Criticality::CriticalPlus));
    }

    #[test]
    fn more_than_everything_cannot_be_guaranteed() {
        let shares = a_third_and_a_fifth();
        let problem = shares.guarantee(Criticality::Sheddable, Ratio::new(0.6).unwrap()).unwrap_err();
        assert_eq!(problem.field, "share");
        assert!(shares.guarantee(Criticality::Sheddable, Ratio::new(0.5).unwrap()).is_ok());
        assert_eq!(shares.guaranteed(Criticality::CriticalPlus, 4), 0);
    }

    #[test]
    fn full_lanes_are_added_up_without_spilling() {
        assert_eq!(total(u64::MAX), 4 * 0xffff);
        assert_eq!(total(taken([1, 20, 300, 4_000])), 4_321);
        assert_eq!(taken([0, 0, 1, 0]), one(Criticality::Critical));
    }
}
