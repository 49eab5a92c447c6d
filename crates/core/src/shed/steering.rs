//! From what a driver saw in a tick to where the edge is.
//!
//! ```text
//! 1 flow, signals    how far is demand above supply?                    -> error, for each criticality
//! 2 edge             which level is at the edge, and what may it bear?  -> one error
//! 3 dimmer           how much of the traffic has to go?                 -> share
//! 4 mix              who is that, from below?                           -> the edge that is wanted
//! 5 play             is it far enough from the edge there is?           -> the edge
//! ```
//!
//! **Which error.** Flow and signals are taken at their maximum, as signals among themselves are. Thresholds
//! rise with criticality, so the error depends on whom one asks. The edge rises if the level it would enter
//! is pressed, falls if the level it would leave is not, and stays otherwise. With pressures of 1.2 on
//! sheddable and 0.9 on sheddable_plus it therefore comes to rest at 128, between the two.
//!
//! **Play.** The mix of traffic is never the same twice, so the edge that is wanted trembles. It is left alone
//! where a twentieth more or less of what passes would be wanted too, and otherwise moved just so far: a trend
//! is followed at once, a tremble not at all. How many ranks that is depends on the traffic. Where half
//! of a single level passes, a twentieth of it is 3 ranks:
//!
//! | refuse | wanted | within the play | edge, from 60 |
//! |--------|--------|-----------------|---------------|
//! | 0.50   | 64     | 60 to 67        | 60            |
//! | 0.52   | 66     | 63 to 69        | 63            |
//! | 0.48   | 61     | 58 to 64        | 63            |
//! | 0.56   | 71     | 68 to 74        | 68            |
//! | 0.55   | 70     | 67 to 73        | 68            |
//! | 0.40   | 51     | 47 to 55        | 55            |
//!
//! Where a level is a third of the traffic it is a dozen ranks, and in a flood of twelve times the capacity of
//! one level, where each rank is a tenth of all that can pass, less than one.
//!
//! **Nothing known.** Without flow and signals, nothing is refused; what is refused already is let go within
//! seconds. **The most.** A tenth of critical_plus always passes: a service that refuses everything learns
//! nothing of getting well.

use super::mix::Mix;
use super::{Dimmer, Edge, Flow};
use crate::units::{Criticality, Invalid};

/// What a driver has seen since the last tick.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Tick {
    /// Requests that arrived, refused or not, for each of [`Criticality::ALL`].
    pub arrived: [u64; 4],
    /// What went through the service, where that is known.
    pub flow: Option<Flow>,
    /// The pressure of signals on each of [`Criticality::ALL`], where anything is known; see
    /// [`Signals::pressures`](crate::signal::Signals::pressures).
    pub pressures: [Option<f64>; 4],
}

/// Moves the edge, a tick at a time.
///
/// ```
/// use tidegate_core::shed::{Edge, Steering, Tick};
///
/// let mut steering = Steering::default();
/// let pressed = Tick { arrived: [100; 4], pressures: [Some(3.0); 4], ..Tick::default() };
/// assert!(steering.tick(&pressed) > Edge::OPEN);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Steering {
    dimmer: Dimmer,
    mix: Mix,
    edge: Edge,
    highest: Edge,
}

/// The share of what passes that chance moves. With 0.03, a slow ramp turns the edge round up to five times in
/// twenty minutes; with 0.05, mostly once, at its top. The price is paid where the edge has gone into a level by a
/// sliver: it may rest with a twentieth of what passes too much refused.
const PLAY: f64 = 0.05;

/// All but a tenth of critical_plus.
const HIGHEST: u16 = 499;

/// The error of a service of which nothing is known: two thirds busy.
const UNKNOWN: f64 = -0.4;

/// A pressure below this says no more: there is room.
const LEAST_PRESSURE: f64 = 0.1;

impl Default for Steering {
    fn default() -> Self {
        Self::new(Dimmer::default())
    }
}

impl Steering {
    /// An open edge, moved as `dimmer` says.
    #[must_use]
    pub fn new(dimmer: Dimmer) -> Self {
        let highest = Edge::clamped(u64::from(HIGHEST));
        Self { dimmer, mix: Mix::default(), edge: Edge::OPEN, highest }
    }

    /// The same, never above `highest`.
    ///
    /// # Errors
    /// When that would shed nobody.
    pub fn with_highest(self, highest: Edge) -> Result<Self, Invalid> {
        if highest == Edge::OPEN {
            return Err(Invalid::new("highest", highest.ranks(), "above 0"));
        }
        Ok(Self { highest, ..self })
    }

    /// The edge as the last tick left it.
    #[must_use]
    pub const fn edge(&self) -> Edge {
        self.edge
    }

    /// Takes in a tick and moves the edge.
    pub fn tick(&mut self, tick: &Tick) -> Edge {
        self.mix.tell(tick.arrived);
        let error = self.error(tick);
        let share = self.dimmer.step(error).value();
        let followed = followed(&self.mix, self.edge, share);
        let allowed = pressed_below(tick).max(self.edge).min(self.highest);
        self.edge = followed.min(allowed);
        self.edge
    }

    /// The error where the edge is.
    fn error(&self, tick: &Tick) -> f64 {
        let (next, last) = self.edge.levels();
        let next = next.filter(|_| self.edge < self.highest);
        let rising = next.and_then(|level| error_of(tick, level)).filter(|error| *error > 0.0);
        let falling = last.or(next).map(|level| error_of(tick, level).unwrap_or(UNKNOWN).min(0.0));
        rising.or(falling).unwrap_or(UNKNOWN)
    }
}

/// The edge, moved until what it refuses is no more than the play away from this share.
fn followed(mix: &Mix, edge: Edge, share: f64) -> Edge {
    if mix.edge(share) == Edge::OPEN {
        return Edge::OPEN;
    }
    let passes = 1.0 - share;
    edge.clamp(mix.edge(1.0 - passes * (1.0 + PLAY)), mix.edge(1.0 - passes * (1.0 - PLAY)))
}

/// How far demand of this level is above what it may have, if anything is known.
fn error_of(tick: &Tick, level: Criticality) -> Option<f64> {
    let pressure = tick.pressures[level.index()].map(|pressure| pressure.max(LEAST_PRESSURE).ln());
    let flow = tick.flow.map(|flow| flow.error());
    [flow, pressure].into_iter().flatten().max_by(f64::total_cmp)
}

/// The edge above all levels that are pressed.
fn pressed_below(tick: &Tick) -> Edge {
    let is_pressed = |level: &Criticality| error_of(tick, *level).is_some_and(|error| error > 0.0);
    let pressed = Criticality::ALL.iter().rposition(is_pressed).map_or(0, |level| level as u64 + 1);
    Edge::clamped(pressed * 128)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Ratio;

    fn pressed(pressures: [f64; 4]) -> Tick {
        Tick { arrived: [100; 4], pressures: pressures.map(Some), ..Tick::default() }
    }

    fn after(steering: &mut Steering, tick: &Tick, ticks: u32) -> u16 {
        for _ in 0..ticks {
            steering.tick(tick);
        }
        steering.edge().ranks()
    }

    #[test]
    fn the_edge_rests_between_a_level_that_is_pressed_and_one_that_is_not() {
        let mut steering = Steering::default();
        let tick = pressed([1.2, 0.9, 0.8, 0.75]);
        let mut before = Edge::OPEN;
        for _ in 0..500 {
            let edge = steering.tick(&tick);
            assert!(edge >= before && edge.ranks() <= 128);
            before = edge;
        }
        assert_eq!(before.ranks(), 128);
        // Harder pressed, the next level goes; let go, the edge comes back to where it was.
        assert!((129..=256).contains(&after(&mut steering, &pressed([1.6, 1.2, 0.8, 0.75]), 500)));
        assert_eq!(after(&mut steering, &pressed([1.2, 0.8, 0.7, 0.6]), 500), 128);
        assert_eq!(after(&mut steering, &pressed([0.9, 0.8, 0.7, 0.6]), 500), 0);
    }

    #[test]
    fn a_great_pressure_does_not_carry_the_edge_into_a_level_that_bears_it() {
        let mut steering = Steering::default();
        assert!(after(&mut steering, &pressed([9.0, 0.9, 0.8, 0.75]), 3) <= 128);
    }

    #[test]
    fn unknown_sheds_nobody_and_lets_go() {
        let unknown = Tick { arrived: [100; 4], ..Tick::default() };
        let mut steering = Steering::default();
        assert_eq!(after(&mut steering, &unknown, 100), 0);
        assert!(after(&mut steering, &pressed([3.0; 4]), 10) > 256);
        let edges: Vec<_> = (0..40).map(|_| steering.tick(&unknown)).collect();
        assert!(edges.is_sorted_by(|before, after| before >= after));
        assert_eq!(edges[39], Edge::OPEN);
    }

    #[test]
    fn a_tenth_of_the_most_critical_always_passes_and_the_way_back_is_short() {
        let mut steering = Steering::default();
        assert_eq!(after(&mut steering, &pressed([9.0; 4]), 7_200), HIGHEST);
        let share = steering.edge().refused(Criticality::CriticalPlus);
        assert!(share <= Ratio::new(0.9).unwrap());
        assert_eq!(after(&mut steering, &pressed([0.4; 4]), 8), 0);
        let low = Steering::default().with_highest(Edge::new(128).unwrap());
        assert_eq!(after(&mut low.unwrap(), &pressed([9.0; 4]), 100), 128);
        assert_eq!(Steering::default().with_highest(Edge::OPEN).unwrap_err().field, "highest");
    }

    #[test]
    fn a_tremble_is_not_followed_as_in_the_example() {
        let mut mix = Mix::default();
        mix.tell([100, 0, 0, 0]);
        let mut edge = Edge::new(60).unwrap();
        let edges = [0.50, 0.52, 0.48, 0.56, 0.55, 0.40].map(|share| {
            edge = followed(&mix, edge, share);
            edge.ranks()
        });
        assert_eq!(edges, [60, 63, 63, 68, 68, 55]);
    }

    #[test]
    fn the_play_is_ranks_where_they_matter_little_and_none_where_they_matter_much() {
        let play = |arrived, share| {
            let mut mix = Mix::default();
            mix.tell(arrived);
            let ends = [Edge::OPEN, Edge::SHUT].map(|edge| followed(&mix, edge, share).ranks());
            ends[1] - ends[0]
        };
        assert_eq!(play([300, 300, 300, 100], 0.4), 26);
        assert_eq!(play([6_000, 0, 250, 0], 0.92), 1);
    }

    #[test]
    fn flow_and_signals_count_as_their_maximum() {
        let flow = Flow { entered: 500, served: 500, waiting: 0, busy: Ratio::new(0.5).unwrap() };
        let tick = Tick { flow: Some(flow), ..pressed([2.0, 0.2, 0.2, 0.2]) };
        let error = |level| error_of(&tick, level).unwrap();
        assert!((error(Criticality::Sheddable) - 2_f64.ln()).abs() < 1e-9);
        assert!((error(Criticality::Critical) - 0.5_f64.ln()).abs() < 1e-9);
    }
}
