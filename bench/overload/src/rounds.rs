//! Rounds: everybody plays a scenario in turn, so that what disturbs the machine disturbs all.

use std::error::Error;
use std::io::{self, Write};
use std::path::Path;

use tidegate_bench_lab::cores::Cores;
use tidegate_bench_lab::figures::Figure;

use crate::bars::OURS;
use crate::behind::Behind;
use crate::figures::Figures;
use crate::plan::{Part, Plan};
use crate::play::Play;

/// Every play, in the order of the rounds.
#[derive(Debug, Default)]
pub(crate) struct Rounds {
    pub(crate) plays: Vec<Play>,
}

impl Rounds {
    /// A round visits the scenarios one after another, and in a scenario everybody, beginning with another
    /// one each round. The number of the round is the seed: everybody is sent the same requests in it, and other ones in the
    /// next, or the worst of three plays would be of one chance.
    pub(crate) fn run(plan: &Plan, cores: Cores, place: &Path) -> Result<Self, Box<dyn Error>> {
        let (mut plays, mut patience) = (Vec::new(), plan.patience());
        for (seed, round) in (0..).zip(0..plan.rounds()) {
            for part in &plan.parts {
                for turn in 0..plan.field.len() {
                    let behind = &plan.field[(turn + round) % plan.field.len()];
                    if round >= plan.turns(part, behind) {
                        continue;
                    }
                    progress(plan, round, part, behind)?;
                    let play = patience.evidence(behind, || Play::of(part, behind, cores, place, seed));
                    plays
                        .push(play.map_err(|why| format!("{}, {}: {why}", part.scenario.id, behind.name()))?);
                }
            }
        }
        Ok(Self { plays })
    }

    /// What a reader should know of plays that a busy machine disturbed, as a paragraph.
    pub(crate) fn told(&self) -> String {
        let repeated = |plays: &[&Play]| plays.iter().map(|play| play.repeated.len()).sum::<usize>();
        let kept = |plays: &[&Play]| plays.iter().filter(|play| play.disturbance.is_some()).count();
        let all: Vec<&Play> = self.plays.iter().collect();
        let ours: Vec<&Play> = self.plays.iter().filter(|play| play.behind == OURS).collect();
        format!(
            "Plays that were repeated, since they were disturbed and missed something: {}, of {OURS} {}.\n\
             Plays that count although they were disturbed: {}, of {OURS} {}.",
            repeated(&all),
            repeated(&ours),
            kept(&all),
            kept(&ours)
        )
    }

    /// What `value` says of the plays of somebody.
    pub(crate) fn figure(&self, scenario: &str, behind: &str, value: impl Fn(&Figures) -> f64) -> Figure {
        Figure::of(self.of(scenario, behind).map(|play| value(&play.figures)))
    }

    /// The plays of a scenario by somebody.
    pub(crate) fn of(&self, scenario: &str, behind: &str) -> impl Iterator<Item = &Play> {
        self.plays.iter().filter(move |play| play.scenario == scenario && play.behind == behind)
    }
}

fn progress(plan: &Plan, round: usize, part: &Part, behind: &Behind) -> io::Result<()> {
    let (id, name) = (&part.scenario.id, behind.name());
    writeln!(io::stderr(), "round {} of {}: {id}, behind {name}", round + 1, plan.rounds())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bars::tests::play;
    use crate::play::Discarded;

    fn discarded(plays: usize) -> Vec<Discarded> {
        let discarded = || Discarded { missed: vec!["G".to_owned()], why: "stolen".to_owned() };
        std::iter::repeat_with(discarded).take(plays).collect()
    }

    #[test]
    fn disturbed_plays_are_told_apart() {
        let disturbance = Some("stolen".to_owned());
        let plays = vec![
            Play { repeated: discarded(2), ..play("nginx", 1.0) },
            Play { repeated: discarded(1), disturbance: disturbance.clone(), ..play(OURS, 1.0) },
            Play { disturbance, ..play("nothing", 1.0) },
        ];
        let told = Rounds { plays }.told();
        assert!(told.contains("missed something: 3, of tidegate 1.\n"), "{told}");
        assert!(told.ends_with("disturbed: 2, of tidegate 1."), "{told}");
    }
}
