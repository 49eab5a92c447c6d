//! The bars: what the scenarios ask of our gateway, and what the others come to.

use tidegate_bench_lab::figures::Figure;
use tidegate_scenario::{Bound, Finding};

use crate::rounds::Rounds;

/// Those whose word is shown, ours last.
pub(crate) const SHOWN: [&str; 4] = ["nothing", "nginx", "Envoy", OURS];

/// Whose word counts.
pub(crate) const OURS: &str = "tidegate";

/// What a scenario asks for, and the medians of everybody; not a number where somebody did not play.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Bar {
    pub(crate) scenario: String,
    pub(crate) what: String,
    pub(crate) bound: Bound,
    /// In the order of [`SHOWN`].
    pub(crate) measured: [f64; 4],
}

impl Bar {
    /// A number that could not be measured misses every bar.
    pub(crate) fn is_met(&self) -> bool {
        let [.., ours] = self.measured;
        self.bound.holds(ours)
    }
}

/// All bars of the scenarios that our gateway played, in their order.
pub(crate) fn of(rounds: &Rounds) -> Vec<Bar> {
    let mut bars: Vec<Bar> = Vec::new();
    for play in rounds.plays.iter().filter(|play| play.behind == OURS) {
        for Finding { what, expected, .. } in &play.findings {
            let is_known = bars.iter().any(|bar| bar.scenario == play.scenario && bar.what == *what);
            let Some(bound) = expected.filter(|_| !is_known) else { continue };
            let measured = SHOWN.map(|name| median(rounds, &play.scenario, name, what));
            bars.push(Bar { scenario: play.scenario.clone(), what: what.clone(), bound, measured });
        }
    }
    // Rounds visit the scenarios in order, and only the first adds any.
    bars
}

fn median(rounds: &Rounds, scenario: &str, behind: &str, what: &str) -> f64 {
    let findings = rounds.of(scenario, behind).flat_map(|play| &play.findings);
    Figure::of(findings.filter(|finding| finding.what == what).map(|finding| finding.value)).median
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::{Cost, Figures};
    use crate::play::Play;

    fn play(behind: &'static str, value: f64) -> Play {
        let cost = Cost { forwarded: 1.0, refused: 1.0 };
        let figures = Figures {
            goodput: value,
            critical: value,
            levels: [value; 4],
            p99: value,
            recovery: value,
            cost,
            unsent: 0.0,
        };
        let finding = Finding { what: "G".to_owned(), value, expected: Some(Bound::AtLeast(0.9)) };
        Play { scenario: "O1".to_owned(), behind, figures, findings: vec![finding] }
    }

    #[test]
    fn the_median_of_ours_meets_a_bar_and_the_others_stand_beside() {
        let plays = [("nginx", 0.5), (OURS, 0.95), (OURS, 0.2), (OURS, 0.91)];
        let rounds = Rounds { plays: plays.map(|(behind, value)| play(behind, value)).into() };
        let bars = of(&rounds);
        assert_eq!(bars.len(), 1);
        assert!(bars[0].is_met());
        let shown = bars[0].measured.map(|value| value.to_string());
        assert_eq!(shown, ["NaN", "0.5", "NaN", "0.91"]);
    }

    #[test]
    fn what_nobody_measured_misses_its_bar() {
        let rounds = Rounds { plays: vec![play(OURS, f64::NAN)] };
        assert!(!of(&rounds)[0].is_met());
    }
}
