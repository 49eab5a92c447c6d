use super::Edge;
use crate::units::Criticality;

/// How much of the traffic each criticality has been lately: what turns a share to refuse into an edge.
///
/// Refusing 30 % of everything means quite different edges where 20 % is sheddable and where 60 % is:
///
/// | mix, from sheddable to critical_plus | refuse | edge                                            |
/// |--------------------------------------|--------|-------------------------------------------------|
/// | 20, 30, 40, 10 %                     | 30 %   | 128 + 128 · 10/30 = 170                         |
/// | 60, 34, 3, 3 %                       | 30 %   | 128 · 30/60 = 64                                |
/// | 60, 34, 3, 3 %                       | 0 %    | 0                                               |
///
/// Of what it knows, the mix forgets a sixteenth with every tick: quicker, and it would follow chance.
/// A flood is no chance. Beside 250 critical requests a tick, 6000 sheddable ones begin to arrive:
///
/// | the mix after the first tick         | refuse | edge                                            |
/// |--------------------------------------|--------|-------------------------------------------------|
/// | by sixteenths: 6000 to 4000          | 90 %   | in critical, of which three quarters would go   |
/// | as it is: 96 to 4 %                  | 90 %   | 128 · 90/96 = 120, in sheddable                 |
///
/// So what a level was is forgotten at once when it has changed by more than half, and by more than chance
/// does: four standard deviations of a count, which is its square root.
/// Users within a level are taken as spread evenly over its cohorts, as their hash is.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Mix {
    weights: [u64; 4],
}

/// So that the sixteenth of a few arrivals is not nothing.
const SCALE: u64 = 1_024;

/// A weight is what arrived in about so many ticks: eight seconds. With half of that, the edge trembles more
/// and needs more play.
const MEMORY: u64 = 16;

/// How many standard deviations are no chance: in a day of ticks, four are exceeded five times.
const CHANCE: u64 = 4;

impl Mix {
    /// Takes in what arrived in a tick, refused or not.
    pub(super) fn tell(&mut self, arrived: [u64; 4]) {
        let is_first = !self.is_known();
        for (weight, arrived) in self.weights.iter_mut().zip(arrived) {
            let arrived = arrived.min(u64::from(u32::MAX));
            let is_another = is_first || is_another(*weight / (SCALE * MEMORY), arrived);
            *weight = if is_another {
                arrived * SCALE * MEMORY
            } else {
                *weight - *weight / MEMORY + arrived * SCALE
            };
        }
    }

    /// The edge that refuses this share of the traffic.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share of counts is an estimate, and the ranks in it are from 0 to 128"
    )]
    pub(super) fn edge(&self, share: f64) -> Edge {
        // Nothing has arrived yet, so what will is anybody's guess.
        let weights = if self.is_known() { self.weights } else { [1; 4] };
        let mut left = share * weights.iter().sum::<u64>() as f64;
        let mut ranks = 0;
        for level in Criticality::ALL {
            let weight = weights[level.index()] as f64;
            if left <= 0.0 {
                break;
            }
            ranks += if left >= weight { 128 } else { (128.0 * left / weight + 1e-9) as u64 };
            left -= weight;
        }
        Edge::clamped(ranks)
    }

    fn is_known(&self) -> bool {
        self.weights.iter().any(|weight| *weight > 0)
    }
}

/// Whether so many arrived in a tick that it cannot be the traffic of which `expected` are expected.
const fn is_another(expected: u64, arrived: u64) -> bool {
    let difference = arrived.abs_diff(expected);
    let larger = if arrived > expected { arrived } else { expected };
    difference.saturating_mul(2) > expected
        && difference.saturating_mul(difference) > larger.saturating_mul(CHANCE * CHANCE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Ratio;

    fn mix(arrived: [u64; 4]) -> Mix {
        let mut mix = Mix::default();
        mix.tell(arrived);
        mix
    }

    #[test]
    fn shares_become_edges_as_in_the_example() {
        assert_eq!(mix([20, 30, 40, 10]).edge(0.3).ranks(), 170);
        assert_eq!(mix([60, 34, 3, 3]).edge(0.3).ranks(), 64);
        assert_eq!(mix([60, 34, 3, 3]).edge(0.0), Edge::OPEN);
    }

    #[test]
    fn levels_without_traffic_are_passed_over_and_open_when_nothing_is_refused() {
        assert_eq!(mix([0, 0, 50, 50]).edge(0.25).ranks(), 256 + 64);
        assert_eq!(mix([0, 0, 50, 50]).edge(0.0), Edge::OPEN);
        assert_eq!(Mix::default().edge(0.5).ranks(), 256);
        assert_eq!(mix([1, 1, 1, 1]).edge(1.0), Edge::SHUT);
    }

    #[test]
    fn what_arrived_is_forgotten_by_sixteenths() {
        let mut mix = mix([10, 0, 80, 0]);
        mix.tell([0, 0, 100, 0]);
        assert_eq!(mix.weights, [150 * SCALE, 0, 1_300 * SCALE, 0]);
    }

    #[test]
    fn a_flood_is_known_for_what_it_is_in_its_first_tick_as_in_the_example() {
        let mut mix = mix([0, 0, 250, 0]);
        mix.tell([6_000, 0, 250, 0]);
        assert_eq!(mix.edge(0.9).ranks(), 120);
        let by_sixteenths = Mix { weights: [6_000, 0, 4_000, 0] };
        assert_eq!(by_sixteenths.edge(0.9).refused(Criticality::Critical), Ratio::new(0.75).unwrap());
        // And when it ends.
        mix.tell([0, 0, 250, 0]);
        assert_eq!(mix.edge(0.25).refused(Criticality::Critical), Ratio::new(0.25).unwrap());
    }

    #[test]
    fn chance_is_not_taken_for_a_flood() {
        assert!(!is_another(500, 740) && is_another(500, 751) && is_another(500, 249));
        assert!(!is_another(0, 16) && is_another(0, 17));
        assert!(!is_another(16, 0) && is_another(17, 0));
    }
}
