//! What is played, by whom and how often.

use std::error::Error;
use std::fs;
use std::path::Path;
use std::time::Duration;

use tidegate_bench_lab::cores::Cores;
use tidegate_bench_lab::machine::Reading;
use tidegate_bench_lab::process::{Program, raise_open_files, version};
use tidegate_load::awake::Awake;
use tidegate_scenario::{Assertion, Measure, Pace, Scenario, Variant};

use crate::arguments::Arguments;
use crate::behind::Behind;
use crate::patience::Patience;
use crate::rounds::Rounds;

/// A scenario, and where to look for the figures of the table. Its own assertions say by themselves where
/// they look.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    pub(crate) scenario: Scenario,
    /// The phases that the figures are of; of the first where the cost of a refusal is the point.
    pub(crate) over: &'static [&'static str],
    /// So much of the beginning of each is left out.
    pub(crate) from: Duration,
    /// The phase with which the worst is over.
    pub(crate) ends: &'static str,
    /// Where the cost of a refusal is the point: the phase in which nothing is refused.
    pub(crate) calm: Option<&'static str>,
    /// How often ours plays it in a full run.
    pub(crate) rounds: usize,
}

impl Part {
    /// Whether anything is asked of the limit of what is in flight.
    pub(crate) fn is_of_the_limit(&self) -> bool {
        self.asked().any(|assertion| assertion.measure.is_of_the_limit())
    }

    /// Whether nothing else is, but that nobody is refused at a low load.
    fn is_of_the_limit_alone(&self) -> bool {
        let is_of_refusals = |assertion: &Assertion| assertion.measure == Measure::Refusals;
        self.asked().all(|assertion| assertion.measure.is_of_the_limit() || is_of_refusals(assertion))
    }

    /// Whether the service alone fails in it, on sockets.
    fn shows_a_failure(&self) -> bool {
        let findings = self.scenario.findings(&self.scenario.record(), Pace::Real, Variant::Naive);
        findings.iter().any(|finding| finding.expected.is_some())
    }

    fn asked(&self) -> impl Iterator<Item = &Assertion> {
        self.scenario.assertions.iter().filter(|assertion| assertion.is_for(Pace::Real))
    }
}

/// A file, and what of it.
struct Entry {
    file: &'static str,
    over: &'static [&'static str],
    /// In seconds. One is what finding out about a flood may take.
    from: u64,
    ends: &'static str,
    calm: Option<&'static str>,
    /// How often ours plays it.
    rounds: usize,
}

const THRICE: Entry =
    Entry { file: "", over: &["flood"], from: 1, ends: "flood", calm: None, rounds: ROUNDS };

const TWICE: Entry = Entry { rounds: 2, ..THRICE };

const FILES: [Entry; 15] = [
    Entry { file: "o1_step.toml", over: &["step"], ends: "step", ..THRICE },
    Entry { file: "o2a_flood_fits.toml", ..THRICE },
    Entry { file: "o2b_flood_does_not_fit.toml", ..THRICE },
    Entry { file: "o3_low_class.toml", ..THRICE },
    Entry { file: "o4_cheap_upstream.toml", calm: Some("forwarding"), ..THRICE },
    Entry {
        file: "o5_ramp.toml",
        over: &["to_twenty", "from_twenty"],
        from: 0,
        ends: "from_twenty",
        ..TWICE
    },
    Entry { file: "o6_waves.toml", over: &["on"], from: 0, ends: "on", ..TWICE },
    Entry { file: "o7_two_costs.toml", over: &["nine"], ends: "nine", ..TWICE },
    Entry { file: "o9_noisy_neighbour.toml", over: &["greedy"], ends: "greedy", ..THRICE },
    Entry { file: "o12_health_checks.toml", ..TWICE },
    Entry { file: "m1_retry_storm.toml", over: &["late"], from: 0, ends: "cut", ..THRICE },
    Entry { file: "m3_spike.toml", over: &["spike"], ends: "spike", ..TWICE },
    Entry { file: "m4_herd_after_restart.toml", over: &["after"], from: 0, ends: "down", ..TWICE },
    Entry { file: "m6_ratchet.toml", over: &["late"], from: 0, ends: "late", ..TWICE },
    // By then a limit has had time to grow.
    Entry { file: "m7_slow_dependency.toml", over: &["slow"], from: 8, ends: "slow", ..TWICE },
];

/// What a quick run plays if nothing else is said.
const QUICK: [&str; 2] = ["O2a", "O4"];

/// Odd, so that the median is a round that happened.
const ROUNDS: usize = 3;

/// Longer scenarios are played once by everybody but ours, or a run would take an hour.
const LONG: Duration = Duration::from_secs(20);

/// What to run.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) parts: Vec<Part>,
    pub(crate) field: Vec<Behind>,
    rounds: usize,
    patience: Patience,
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
        let (rounds, patience) =
            if arguments.is_quick { (1, Patience::NONE) } else { (ROUNDS, Patience::USUAL) };
        Ok(Self { parts, field, rounds, patience })
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

    /// How much time may go by in plays that prove nothing.
    pub(crate) const fn patience(&self) -> Patience {
        self.patience
    }

    /// How often somebody plays a scenario; never where it would show nothing.
    pub(crate) fn turns(&self, part: &Part, behind: &Behind) -> usize {
        let is_long = part.scenario.timeline.length(Pace::Real) > LONG || part.rounds < ROUNDS;
        match behind {
            // Costs are a gateway's, and Envoy's are with the other gateways'.
            Behind::Nothing | Behind::Envoy(_) if part.calm.is_some() => 0,
            // It drowns in the same way every time, and has nothing else to show.
            Behind::Nothing => usize::from(part.shows_a_failure()),
            // A number that somebody wrote does not move.
            Behind::Nginx if part.is_of_the_limit_alone() => 0,
            // From one play to the next its goodput varies by a thousandth, the cost of its refusals by more.
            Behind::Nginx if part.calm.is_none() => 1,
            Behind::Envoy(_) if is_long => 1,
            Behind::Nginx | Behind::Envoy(_) => self.rounds,
            Behind::Ours(_) => self.rounds.min(part.rounds),
        }
    }
}

fn parts(directory: &Path) -> Result<Vec<Part>, Box<dyn Error>> {
    let read = |Entry { file, over, from, ends, calm, rounds }: Entry| {
        let path = directory.join(file);
        let text = fs::read_to_string(&path).map_err(|problem| format!("{}: {problem}", path.display()))?;
        let scenario = Scenario::read(file, &text)?;
        let mut phases = over.iter().copied().chain([ends]).chain(calm);
        if let Some(missing) = phases.find(|phase| !scenario.timeline.has(phase)) {
            return Err(format!("{file} has no phase `{missing}`").into());
        }
        Ok(Part { scenario, over, from: Duration::from_secs(from), ends, calm, rounds })
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
        let all =
            ["O1", "O2a", "O2b", "O3", "O4", "O5", "O6", "O7", "O9", "O12", "M1", "M3", "M4", "M6", "M7"];
        assert_eq!(ids(&plan("").unwrap()), all);
    }

    #[test]
    fn scenarios_are_chosen_by_id() {
        assert_eq!(ids(&plan("--quick").unwrap()), QUICK);
        assert_eq!(ids(&plan("--quick --only M1").unwrap()), ["M1"]);
        assert!(plan("--only X1").unwrap_err().starts_with("`X1` is none of the scenarios, which are O1, "));
    }

    fn turns(plan: &Plan, id: &str) -> Vec<usize> {
        let part = plan.parts.iter().find(|part| part.scenario.id == id).unwrap();
        plan.field.iter().map(|behind| plan.turns(part, behind)).collect()
    }

    #[test]
    fn nobody_plays_what_would_show_nothing() {
        let plan = plan("").unwrap();
        assert_eq!(turns(&plan, "O1"), [1, 1, 1, 3], "long");
        assert_eq!(turns(&plan, "O2a"), [1, 1, 3, 3], "short");
        assert_eq!(turns(&plan, "O4"), [0, 3, 0, 3], "what a refusal costs");
        assert_eq!(turns(&plan, "O7"), [0, 1, 1, 2], "the service alone bears it");
        assert_eq!(turns(&plan, "M6"), [0, 0, 1, 2], "the limit alone is asked for");
    }

    #[test]
    fn a_full_run_takes_half_an_hour() {
        let plan = plan("").unwrap();
        let pairs = plan.parts.iter().flat_map(|part| plan.field.iter().map(move |behind| (part, behind)));
        let times = pairs.map(|(part, behind)| {
            let turns = u32::try_from(plan.turns(part, behind)).unwrap();
            // Half a second to begin and to end.
            (part.scenario.timeline.length(Pace::Real) + Duration::from_millis(500)) * turns
        });
        let whole: Duration = times.sum();
        assert!(whole < Duration::from_mins(31), "{whole:?}");
    }
}
