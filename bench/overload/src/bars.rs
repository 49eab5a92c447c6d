//! The bars: what the scenarios ask of our gateway, and what the others come to.
//!
//! A gateway that protects two times of three does not protect, so its worst play is what a bar is held
//! against. The others are shown with their medians, as in the tables.

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
    /// Of our plays, the one that is furthest from it.
    pub(crate) worst: f64,
}

impl Bar {
    /// A number that could not be measured misses every bar.
    pub(crate) fn is_met(&self) -> bool {
        self.bound.holds(self.worst)
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
            let worst = worst(values(rounds, &play.scenario, OURS, what), bound);
            bars.push(Bar { scenario: play.scenario.clone(), what: what.clone(), bound, measured, worst });
        }
    }
    // Rounds visit the scenarios in order, and only the first adds any.
    bars
}

fn median(rounds: &Rounds, scenario: &str, behind: &str, what: &str) -> f64 {
    Figure::of(values(rounds, scenario, behind, what)).median
}

fn values<'a>(
    rounds: &'a Rounds,
    scenario: &str,
    behind: &str,
    what: &str,
) -> impl Iterator<Item = f64> + use<'a> {
    let findings: Vec<&Finding> = rounds.of(scenario, behind).flat_map(|play| &play.findings).collect();
    let what = what.to_owned();
    findings.into_iter().filter(move |finding| finding.what == what).map(|finding| finding.value)
}

/// What could not be measured is worse than anything that was.
fn worst(values: impl Iterator<Item = f64>, bound: Bound) -> f64 {
    let is_worse = |value: f64, than: f64| match bound {
        _ if value.is_nan() || than.is_nan() => value.is_nan(),
        Bound::AtLeast(_) => value < than,
        Bound::AtMost(_) => value > than,
    };
    values.reduce(|worst, value| if is_worse(value, worst) { value } else { worst }).unwrap_or(f64::NAN)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::figures::{Cost, Figures};
    use crate::play::Play;

    /// One in which everything came to `value`.
    pub(crate) fn play(behind: &'static str, value: f64) -> Play {
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
        Play {
            scenario: "O1".to_owned(),
            behind,
            figures,
            findings: vec![finding],
            disturbance: None,
            missed: Vec::new(),
            repeated: Vec::new(),
            seed: 0,
        }
    }

    fn bar(plays: &[(&'static str, f64)]) -> Bar {
        let rounds = Rounds { plays: plays.iter().map(|(behind, value)| play(behind, *value)).collect() };
        let [bar] = of(&rounds).try_into().unwrap();
        bar
    }

    #[test]
    fn the_medians_of_all_stand_beside_a_bar() {
        let bar = bar(&[("nginx", 0.5), (OURS, 0.95), (OURS, 0.2), (OURS, 0.91)]);
        let shown = bar.measured.map(|value| value.to_string());
        assert_eq!(shown, ["NaN", "0.5", "NaN", "0.91"]);
    }

    #[test]
    fn one_play_of_ours_that_misses_a_bar_is_enough() {
        assert!(bar(&[(OURS, 0.95), (OURS, 0.9), (OURS, 0.91)]).is_met());
        assert!(!bar(&[(OURS, 0.95), (OURS, 0.89), (OURS, 0.91)]).is_met());
        assert!(!bar(&[(OURS, 0.95), (OURS, f64::NAN), (OURS, 0.91)]).is_met());
    }

    #[test]
    fn worst_is_what_is_furthest_from_a_bound() {
        let worst = |bound| worst([0.5, 0.9, 0.7].into_iter(), bound).to_string();
        assert_eq!([worst(Bound::AtLeast(0.8)), worst(Bound::AtMost(0.8))], ["0.5", "0.9"]);
    }
}
