use super::Cohort;
use crate::units::{Criticality, Invalid, Ratio};

/// Who is refused: every rank below the edge.
///
/// A request's *rank* is `128 · level + cohort`, from 0 (the lowest cohort of what is sheddable) to 511 (the
/// highest of what is critical_plus). There is one edge, so strict order is not a rule that somebody
/// could break: to refuse one cohort of a level, the edge must lie above all lower levels.
///
/// | edge | sheddable   | sheddable_plus | critical     | critical_plus |
/// |------|-------------|----------------|--------------|---------------|
/// | 0    | all pass    | all pass       | all pass     | all pass      |
/// | 32   | 1/4 refused | all pass       | all pass     | all pass      |
/// | 128  | refused     | all pass       | all pass     | all pass      |
/// | 192  | refused     | 1/2 refused    | all pass     | all pass      |
/// | 512  | refused     | refused        | refused      | refused       |
///
/// It is one small number, so that a service can tell it to its callers, who then need not send what would
/// be refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Edge(u16);

const COHORTS: u16 = Cohort::COUNT as u16;

impl Edge {
    /// Everybody passes.
    pub const OPEN: Self = Self(0);
    /// Nobody passes.
    pub const SHUT: Self = Self(4 * COHORTS);

    /// The edge below which this many ranks lie.
    ///
    /// # Errors
    /// When there are not so many: 512.
    pub fn new(ranks: u16) -> Result<Self, Invalid> {
        if ranks <= Self::SHUT.0 { Ok(Self(ranks)) } else { Err(Invalid::new("edge", ranks, "at most 512")) }
    }

    pub(super) const fn clamped(ranks: u64) -> Self {
        if ranks >= Self::SHUT.0 as u64 { Self::SHUT } else { Self(low_bits(ranks)) }
    }

    /// How many ranks are refused.
    #[must_use]
    pub const fn ranks(self) -> u16 {
        self.0
    }

    /// Whether this criticality and cohort pass.
    #[inline]
    #[must_use]
    pub const fn admits(self, criticality: Criticality, cohort: Cohort) -> bool {
        criticality as u16 * COHORTS + cohort.number() as u16 >= self.0
    }

    /// Whether this is the level that passes next if the edge falls.
    ///
    /// A gate that has a free place, and nobody who waits for it, may give it to one of this level although the edge
    /// refuses it: the edge follows demand in ticks of half a second, and callers who come back a second after they
    /// were refused come in waves, between which it would keep a service idle. A lower level may not have it, since
    /// this one could envy it:
    ///
    /// | edge | places, of 16 | critical | sheddable |
    /// |------|---------------|----------|-----------|
    /// | 320  | all taken     | half of its cohorts may wait | refused |
    /// | 320  | 15 taken      | passes   | refused |
    #[inline]
    #[must_use]
    pub fn is_next(self, criticality: Criticality) -> bool {
        self.levels().1 == Some(criticality)
    }

    /// The share of a level's cohorts that are refused.
    #[must_use]
    pub fn refused(self, criticality: Criticality) -> Ratio {
        let ranks = self.0.saturating_sub(criticality as u16 * COHORTS).min(COHORTS);
        Ratio::new(f64::from(ranks) / f64::from(COHORTS)).unwrap_or(Ratio::ONE)
    }

    /// The level that is refused next if the edge rises, and the one that passes next if it falls.
    pub(super) fn levels(self) -> (Option<Criticality>, Option<Criticality>) {
        let level = |rank: u16| Criticality::ALL.get(usize::from(rank / COHORTS)).copied();
        (level(self.0), self.0.checked_sub(1).and_then(level))
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the callers know that it is small")]
const fn low_bits(number: u64) -> u16 {
    number as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_refuse_as_in_the_example() {
        let shares = |ranks| {
            let edge = Edge::new(ranks).unwrap();
            Criticality::ALL.map(|level| edge.refused(level))
        };
        let quarters = |quarters: [f64; 4]| quarters.map(|quarters| Ratio::new(quarters / 4.0).unwrap());
        assert_eq!(shares(0), quarters([0.0, 0.0, 0.0, 0.0]));
        assert_eq!(shares(32), quarters([1.0, 0.0, 0.0, 0.0]));
        assert_eq!(shares(128), quarters([4.0, 0.0, 0.0, 0.0]));
        assert_eq!(shares(192), quarters([4.0, 2.0, 0.0, 0.0]));
        assert_eq!(shares(512), quarters([4.0, 4.0, 4.0, 4.0]));
        assert_eq!(Edge::new(513).unwrap_err().field, "edge");
    }

    #[test]
    fn what_a_level_is_told_is_what_its_cohorts_meet() {
        for ranks in 0..=512 {
            let edge = Edge::new(ranks).unwrap();
            for level in Criticality::ALL {
                let refused = Cohort::all().filter(|cohort| !edge.admits(level, *cohort)).count();
                assert_eq!(Ratio::new(refused as f64 / 128.0).unwrap(), edge.refused(level));
            }
        }
    }

    #[test]
    fn the_levels_beside_the_edge_are_known() {
        let levels = |ranks| Edge(ranks).levels();
        assert_eq!(levels(0), (Some(Criticality::Sheddable), None));
        assert_eq!(levels(1), (Some(Criticality::Sheddable), Some(Criticality::Sheddable)));
        assert_eq!(levels(128), (Some(Criticality::SheddablePlus), Some(Criticality::Sheddable)));
        assert_eq!(levels(512), (None, Some(Criticality::CriticalPlus)));
        let next = |ranks| Criticality::ALL.map(|level| Edge(ranks).is_next(level));
        assert_eq!(next(0), [false; 4]);
        assert_eq!(next(320), [false, false, true, false]);
        assert_eq!(next(384), [false, false, true, false]);
        assert_eq!(next(385), [false, false, false, true]);
    }
}
