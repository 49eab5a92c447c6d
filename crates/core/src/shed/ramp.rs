//! Shedding by busy workers, slowly: a ramp up, a ramp down, and a stretch in between where nothing moves.
//!
//! Workers are a hard bound: when all are busy, everybody waits. The simplest rule sheds when more than 80 %
//! of them are. It flaps: shedding frees workers, below 80 % everything returns at once, and the workers
//! are busy again a second later. So the share that is shed is not a function of how busy the workers *are*
//! but moves with it, slowly: it rises while they are busier than 80 %, falls while they are less busy than
//! 70 %, and rests in between. It takes 120 s with all workers busy to shed a whole level, and as long
//! with all of them idle to restore it.
//!
//! ```text
//! lean   = busy/0.7 − 1   below 0.7          0 from 0.7 to 0.8          (busy − 0.8)/0.2 above
//! filled = filled + elapsed · lean           from −28 s (at rest) to 120 s for each level
//! ```
//!
//! The 28 s below nothing are a head start: a burst shorter than that sheds nobody. Seconds are counted
//! from 1, and a level counts as shed in the first second in which nobody of it passes.
//!
//! | workers busy | lean | first one shed | all sheddable shed | all sheddable_plus, critical, critical_plus |
//! |--------------|------|----------------|--------------------|---------------------------------------------|
//! | all          | 1    | in second 29   | in second 149      | in second 269, 389, 509                     |
//! | 0.9          | 0.5  | in second 57   | in second 297      | in second 537, 777, 1017                    |
//! | 0.75         | 0    | never          | never              | never                                       |
//!
//! In the original, a division of integers makes the head start 120 s instead of 28, and the first one is
//! shed in second 121. The levels are its ladder: test traffic, reads, writes, and the few methods without
//! which nothing works; each after the one before is gone.
//!
//! This is for pools of workers whose requests take seconds, where patience costs little. A flood needs
//! an answer within a second or two: [`Steering`](super::Steering). Both may run, and the higher edge counts.
//!
//! Source: Stripe, "Scaling your API with rate limiters", and its gist.

use std::time::Duration;

use super::{Cohort, Edge};
use crate::units::{Invalid, Moment, Ratio, nanos_of};

/// Sheds by how busy workers are, a level in two minutes, and restores as slowly.
///
/// ```
/// use std::time::Duration;
/// use tidegate_core::shed::SlowRamp;
/// use tidegate_core::{Moment, Ratio};
///
/// let mut ramp = SlowRamp::default();
/// let at = |seconds| Moment::ORIGIN.plus(Duration::from_secs(seconds));
/// for second in 0..=28 {
///     assert_eq!(ramp.tell(at(second), Ratio::ONE).ranks(), 0);
/// }
/// assert_eq!(ramp.tell(at(29), Ratio::ONE).ranks(), 1);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SlowRamp {
    calm: f64,
    busy: f64,
    head_start: Duration,
    level: Duration,
    /// Nanoseconds of leaning, from minus the head start to four levels.
    filled: i64,
    last: Option<Moment>,
}

impl Default for SlowRamp {
    /// The original's numbers: rest from 0.7 to 0.8, a head start of 28 s, 120 s for a level.
    fn default() -> Self {
        let (head_start, level) = (Duration::from_secs(28), Duration::from_secs(120));
        let filled = -signed(head_start);
        Self { calm: 0.7, busy: 0.8, head_start, level, filled, last: None }
    }
}

impl SlowRamp {
    /// The same, resting while the busy share is from `calm` to `busy`.
    ///
    /// # Errors
    /// When there is nothing to rest in, nothing below it, or nothing above.
    pub fn with_rest(self, calm: Ratio, busy: Ratio) -> Result<Self, Invalid> {
        let (calm, busy) = (calm.value(), busy.value());
        if calm <= 0.0 || calm >= busy {
            return Err(Invalid::new("calm", calm, "above 0 and below busy"));
        }
        if busy >= 1.0 {
            return Err(Invalid::new("busy", busy, "below 1"));
        }
        Ok(Self { calm, busy, ..self })
    }

    /// The same, shedding a level in `level` after a head start.
    ///
    /// # Errors
    /// When a level would go at once, or take longer than a day, or the head start longer than a level.
    pub fn with_times(self, head_start: Duration, level: Duration) -> Result<Self, Invalid> {
        if level.is_zero() || level > Duration::from_secs(86_400) {
            return Err(Invalid::new("level", format_args!("{level:?}"), "above 0 and at most a day"));
        }
        if head_start > level {
            return Err(Invalid::new("head_start", format_args!("{head_start:?}"), "at most a level's time"));
        }
        Ok(Self { head_start, level, filled: -signed(head_start), last: None, ..self })
    }

    /// The same, filled as far as this edge needs: for one that goes on with other times, or must not go further.
    #[must_use]
    pub fn resumed(self, edge: Edge) -> Self {
        let ranks = u128::from(edge.ranks());
        let filled = (ranks * self.level.as_nanos()).div_ceil(u128::from(Cohort::COUNT));
        let rest = -signed(self.head_start);
        Self { filled: if ranks == 0 { rest } else { i64::try_from(filled).unwrap_or(i64::MAX) }, ..self }
    }

    /// Takes in how busy the workers have been since the last time.
    pub fn tell(&mut self, now: Moment, busy: Ratio) -> Edge {
        // A pause of the sampler counts for no more than the head start: what it did not see it cannot know.
        let elapsed = self.last.map_or(Duration::ZERO, |last| now.since(last)).min(self.head_start);
        self.last = Some(now);
        let most = signed(self.level).saturating_mul(4);
        let leaning = self.leaning(elapsed, busy.value());
        self.filled = self.filled.saturating_add(leaning).clamp(-signed(self.head_start), most);
        self.edge()
    }

    /// Who is refused now.
    #[must_use]
    pub fn edge(&self) -> Edge {
        let filled = u128::from(u64::try_from(self.filled).unwrap_or(0));
        let ranks = filled * u128::from(Cohort::COUNT) / self.level.as_nanos();
        // The first cohort goes as soon as there is anything to shed.
        let first = u128::from(filled > 0);
        Edge::clamped(u64::try_from(ranks.max(first)).unwrap_or(u64::MAX))
    }

    /// Whole nanoseconds, so that a hundred steps of a second are a hundred seconds.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        reason = "at most a day, rounded"
    )]
    fn leaning(&self, elapsed: Duration, busy: f64) -> i64 {
        let lean = if busy < self.calm {
            busy / self.calm - 1.0
        } else if busy <= self.busy {
            0.0
        } else {
            (busy - self.busy) / (1.0 - self.busy)
        };
        (nanos_of(elapsed) as f64 * lean).round() as i64
    }
}

fn signed(duration: Duration) -> i64 {
    i64::try_from(nanos_of(duration)).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Criticality;

    fn at(second: u64) -> Moment {
        Moment::ORIGIN.plus(Duration::from_secs(second))
    }

    fn ratio(value: f64) -> Ratio {
        Ratio::new(value).unwrap()
    }

    /// The first second in which anybody is shed, and for each level the first in which all of it is, from
    /// beginning to end.
    fn seconds(busy: f64) -> [u64; 5] {
        let mut ramp = SlowRamp::default();
        let edges: Vec<u16> = (0..1_100).map(|second| ramp.tell(at(second), ratio(busy)).ranks()).collect();
        let reaches = |ranks| edges.iter().position(|edge| *edge >= ranks).map_or(0, |second| second as u64);
        [reaches(1), reaches(128) + 1, reaches(256) + 1, reaches(384) + 1, reaches(512) + 1]
    }

    #[test]
    fn levels_go_as_in_the_example() {
        assert_eq!(seconds(1.0), [29, 149, 269, 389, 509]);
        assert_eq!(seconds(0.9), [57, 297, 537, 777, 1_017]);
    }

    #[test]
    fn restoring_is_as_slow_as_shedding() {
        let mut ramp = SlowRamp::default();
        for second in 0..=148 {
            let _ = ramp.tell(at(second), Ratio::ONE);
        }
        assert_eq!(ramp.edge().refused(Criticality::Sheddable), Ratio::ONE);
        // All idle: back to nothing in 120 s, to rest in 148.
        let edges: Vec<_> = (149..=296).map(|second| ramp.tell(at(second), Ratio::ZERO).ranks()).collect();
        assert_eq!((edges[118], edges[119]), (1, 0));
        assert_eq!(ramp.filled, -28_000_000_000);
        assert!(edges.is_sorted_by(|before, after| before >= after));
    }

    #[test]
    fn between_calm_and_busy_nothing_moves() {
        let mut ramp = SlowRamp::default();
        for second in 0..=88 {
            let _ = ramp.tell(at(second), Ratio::ONE);
        }
        let edge = ramp.edge();
        assert_eq!(edge.ranks(), 64);
        for (second, busy) in (89..600).zip([0.7, 0.72, 0.75, 0.8].into_iter().cycle()) {
            assert_eq!(ramp.tell(at(second), ratio(busy)), edge);
        }
    }

    #[test]
    fn a_ramp_goes_on_at_any_edge() {
        for level in [Duration::from_nanos(7), Duration::from_secs(1), Duration::from_secs(120)] {
            let ramp = SlowRamp::default().with_times(Duration::ZERO, level).unwrap();
            for ranks in 0..=512 {
                let edge = Edge::new(ranks).unwrap();
                let resumed = ramp.resumed(edge).edge();
                assert!(resumed == edge || level.as_nanos() < 128 && resumed >= edge, "{resumed:?} {edge:?}");
            }
        }
        let mut ramp = SlowRamp::default().resumed(Edge::new(64).unwrap());
        let _ = ramp.tell(at(0), Ratio::ONE);
        assert_eq!(ramp.tell(at(15), Ratio::ONE).ranks(), 80);
        assert_eq!(ramp.resumed(Edge::OPEN).filled, SlowRamp::default().filled);
    }

    #[test]
    fn a_pause_of_the_sampler_counts_for_the_head_start_at_most() {
        let mut ramp = SlowRamp::default();
        let _ = ramp.tell(at(0), Ratio::ONE);
        assert_eq!(ramp.tell(at(3_600), Ratio::ONE), Edge::OPEN);
        assert_eq!(ramp.filled, 0);
        assert_eq!(ramp.tell(at(10), Ratio::ONE), Edge::OPEN, "a clock that goes back adds nothing");
    }

    #[test]
    fn contradictory_settings_are_refused() {
        let ramp = SlowRamp::default();
        assert_eq!(ramp.with_rest(ratio(0.8), ratio(0.8)).unwrap_err().field, "calm");
        assert_eq!(ramp.with_rest(ratio(0.0), ratio(0.8)).unwrap_err().field, "calm");
        assert_eq!(ramp.with_rest(ratio(0.8), ratio(1.0)).unwrap_err().field, "busy");
        let second = Duration::from_secs(1);
        assert_eq!(ramp.with_times(second, Duration::ZERO).unwrap_err().field, "level");
        assert_eq!(ramp.with_times(2 * second, second).unwrap_err().field, "head_start");
    }
}
