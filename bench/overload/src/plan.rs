//! What is played, by whom and how often.

use std::error::Error;
use std::fs;
use std::path::Path;
use std::time::Duration;

use tidegate_bench_lab::cores::Cores;
use tidegate_bench_lab::machine::Reading;
use tidegate_bench_lab::process::{Program, raise_open_files, version};
use tidegate_load::awake::Awake;
use tidegate_scenario::{Pace, Scenario};

use crate::arguments::Arguments;
use crate::behind::Behind;
use crate::rounds::Rounds;

/// A scenario, and where to look for the figures of the table. Its own assertions say by themselves where
/// they look.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    pub(crate) scenario: Scenario,
    /// The phase that the figures are of.
    pub(crate) over: &'static str,
    /// So much of its beginning is left out.
    pub(crate) from: Duration,
    /// The phase with which the worst is over.
    pub(crate) ends: &'static str,
    /// Where the cost of a refusal is the point: the phase in which nothing is refused.
    pub(crate) calm: Option<&'static str>,
}

/// Which files, and what of them. A second is what finding out about a flood may take.
const FILES: [(&str, &str, u64, &str, Option<&str>); 7] = [
    ("o1_step.toml", "step", 1, "step", None),
    ("o2a_flood_fits.toml", "flood", 1, "flood", None),
    ("o2b_flood_does_not_fit.toml", "flood", 1, "flood", None),
    ("o3_low_class.toml", "flood", 1, "flood", None),
    ("o4_cheap_upstream.toml", "flood", 1, "flood", Some("forwarding")),
    ("o9_noisy_neighbour.toml", "greedy", 1, "greedy", None),
    ("m1_retry_storm.toml", "late", 0, "cut", None),
];

/// What a quick run plays if nothing else is said.
const QUICK: [&str; 2] = ["O2a", "O4"];

/// Odd, so that the median is a round that happened.
const ROUNDS: usize = 3;

/// Longer scenarios are played once by everybody but ours, or a run would take half an hour.
const LONG: Duration = Duration::from_secs(30);

/// What to run.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) parts: Vec<Part>,
    pub(crate) field: Vec<Behind>,
    rounds: usize,
}

/// Everything a run found out.
#[derive(Debug)]
pub(crate) struct Measured {
    /// Who took part, and in which version.
    pub(crate) versions: Vec<(&'static str, String)>,
    pub(crate) plan: Plan,
    pub(crate) rounds: Rounds,
    /// How many cores other programs kept busy, on average.
    pub(crate) others: f64,
}

impl Plan {
    /// Reads the scenarios.
    ///
    /// # Errors
    ///
    /// When one cannot be read, or a name is not known.
    pub(crate) fn new(arguments: &Arguments) -> Result<Self, Box<dyn Error>> {
        let mut parts = parts(&arguments.scenarios)?;
        let usual = if arguments.is_quick { QUICK.map(str::to_owned).to_vec() } else { Vec::new() };
        let only = if arguments.only.is_empty() { usual } else { arguments.only.clone() };
        if let Some(unknown) = only.iter().find(|id| parts.iter().all(|part| part.scenario.id != **id)) {
            let known: Vec<&str> = parts.iter().map(|part| part.scenario.id.as_str()).collect();
            return Err(
                format!("`{unknown}` is none of the scenarios, which are {}", known.join(", ")).into()
            );
        }
        parts.retain(|part| only.is_empty() || only.contains(&part.scenario.id));
        let (envoy, ours) = (arguments.envoy.clone(), arguments.ours.clone());
        let field = vec![Behind::Nothing, Behind::Nginx, Behind::Envoy(envoy), Behind::Ours(ours)];
        Ok(Self { parts, field, rounds: if arguments.is_quick { 1 } else { ROUNDS } })
    }

    pub(crate) fn measure(self) -> Result<Measured, Box<dyn Error>> {
        raise_open_files()?;
        let cores = Cores::first()?;
        let place = tempfile::tempdir()?;
        let mut versions = Vec::new();
        for behind in &self.field {
            if let Some(command) = behind.version() {
                versions.push((behind.name(), version(command)?));
            }
        }
        // Whoever was started has ended by then, and counts as ours; so does what keeps the cores awake.
        let reading = || Reading::now(std::iter::empty::<&Program>());
        let before = reading()?;
        let awake = Awake::keep()?;
        let rounds = Rounds::run(&self, cores, place.path())?;
        drop(awake);
        let others = reading()?.others_since(&before);
        Ok(Measured { versions, plan: self, rounds, others })
    }

    /// How many rounds there are.
    pub(crate) const fn rounds(&self) -> usize {
        self.rounds
    }

    /// How often somebody plays a scenario; never where it would show nothing.
    pub(crate) fn turns(&self, part: &Part, behind: &Behind) -> usize {
        let is_long = part.scenario.timeline.length(Pace::Real) > LONG;
        match behind {
            // Costs are a gateway's, and Envoy's are with the other gateways'.
            Behind::Nothing | Behind::Envoy(_) if part.calm.is_some() => 0,
            // It drowns in the same way every time.
            Behind::Nothing => 1,
            Behind::Nginx | Behind::Envoy(_) if is_long => 1,
            Behind::Nginx | Behind::Envoy(_) | Behind::Ours(_) => self.rounds,
        }
    }
}

fn parts(directory: &Path) -> Result<Vec<Part>, Box<dyn Error>> {
    let read =
        |(file, over, from, ends, calm): (&str, &'static str, u64, &'static str, Option<&'static str>)| {
            let path = directory.join(file);
            let text =
                fs::read_to_string(&path).map_err(|problem| format!("{}: {problem}", path.display()))?;
            let scenario = Scenario::read(file, &text)?;
            let phases = [Some(over), Some(ends), calm];
            if let Some(missing) = phases.into_iter().flatten().find(|phase| !scenario.timeline.has(phase)) {
                return Err(format!("{file} has no phase `{missing}`").into());
            }
            Ok(Part { scenario, over, from: Duration::from_secs(from), ends, calm })
        };
    FILES.into_iter().map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(words: &str) -> Result<Plan, String> {
        let scenarios = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios");
        let words = format!("--scenarios {scenarios} --ours o --envoy e {words}");
        let arguments = Arguments::read(words.split_whitespace().map(str::to_owned)).unwrap();
        Plan::new(&arguments).map_err(|problem| problem.to_string())
    }

    fn ids(plan: &Plan) -> Vec<&str> {
        plan.parts.iter().map(|part| part.scenario.id.as_str()).collect()
    }

    #[test]
    fn every_scenario_is_there_with_its_phases() {
        assert_eq!(ids(&plan("").unwrap()), ["O1", "O2a", "O2b", "O3", "O4", "O9", "M1"]);
    }

    #[test]
    fn scenarios_are_chosen_by_id() {
        assert_eq!(ids(&plan("--quick").unwrap()), QUICK);
        assert_eq!(ids(&plan("--quick --only M1").unwrap()), ["M1"]);
        assert!(plan("--only X1").unwrap_err().starts_with("`X1` is none of the scenarios, which are O1, "));
    }

    #[test]
    fn a_full_run_takes_less_than_twenty_minutes() {
        let plan = plan("").unwrap();
        let pairs = plan.parts.iter().flat_map(|part| plan.field.iter().map(move |behind| (part, behind)));
        let times = pairs.map(|(part, behind)| {
            let turns = u32::try_from(plan.turns(part, behind)).unwrap();
            // Half a second to begin and to end.
            (part.scenario.timeline.length(Pace::Real) + Duration::from_millis(500)) * turns
        });
        let whole: Duration = times.sum();
        assert!(whole < Duration::from_secs(20 * 60), "{whole:?}");
    }
}
