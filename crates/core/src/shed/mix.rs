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
/// Of what it knows, the mix forgets an eighth with every tick: quicker, and it would follow chance.
/// Users within a level are taken as spread evenly over its cohorts, as their hash is.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Mix {
    weights: [u64; 4],
}

/// So that the eighth of a few arrivals is not nothing.
const SCALE: u64 = 1_024;

impl Mix {
    /// Takes in what arrived in a tick, refused or not.
    pub(super) fn tell(&mut self, arrived: [u64; 4]) {
        for (weight, arrived) in self.weights.iter_mut().zip(arrived) {
            *weight = (*weight - *weight / 8).saturating_add(arrived.min(u64::from(u32::MAX)) * SCALE);
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
        let is_known = self.weights.iter().any(|weight| *weight > 0);
        // Nothing has arrived yet, so what will is anybody's guess.
        let weights = if is_known { self.weights } else { [1; 4] };
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
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn what_arrived_is_forgotten_by_eighths() {
        let mut mix = mix([80, 0, 80, 0]);
        mix.tell([0, 0, 100, 0]);
        assert_eq!(mix.weights, [70 * SCALE, 0, 170 * SCALE, 0]);
    }
}
