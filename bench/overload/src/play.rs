//! One play: a scenario, and what stands before its service.

use std::error::Error;
use std::fs;
use std::path::Path;

use tidegate_bench_lab::cores::Cores;
use tidegate_bench_lab::http;
use tidegate_bench_lab::process::Program;
use tidegate_bench_lab::programs::Between;
use tidegate_load::drill::{Drill, Probe};
use tidegate_load::machine::Stretch;
use tidegate_scenario::{Finding, Variant};

use crate::behind::{Behind, Setup};
use crate::figures::Figures;
use crate::plan::Part;
use crate::probe::{Asked, Watch};

/// What came of it.
#[derive(Debug)]
pub(crate) struct Play {
    pub(crate) scenario: String,
    pub(crate) behind: &'static str,
    pub(crate) figures: Figures,
    /// What the scenario's file asks for, in its order.
    pub(crate) findings: Vec<Finding>,
    /// What kept the machine from its work, if anything did.
    pub(crate) disturbance: Option<String>,
    /// What did not come as it should: what the file asks for, or without a gateway the failure that it shows.
    pub(crate) missed: Vec<String>,
    /// The plays before it that proved nothing.
    pub(crate) repeated: Vec<Discarded>,
    /// What its requests, their moments and their work were drawn from.
    pub(crate) seed: u64,
}

/// A play that proves nothing.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Discarded {
    pub(crate) missed: Vec<String>,
    /// Why that does not count.
    pub(crate) why: String,
}

impl Play {
    /// Plays it. A gateway has the first core, callers and service the second; without a gateway they have
    /// both, since whoever gives up on an answer opens another connection, and that takes more than
    /// answering.
    pub(crate) fn of(
        part: &Part,
        behind: &Behind,
        cores: Cores,
        place: &Path,
        seed: u64,
    ) -> Result<Self, Box<dyn Error>> {
        let stretch = Stretch::begin()?;
        match behind {
            Behind::Nothing => cores.release()?,
            Behind::Nginx | Behind::Envoy(_) | Behind::Ours(_) => cores.load.pin()?,
        }
        let drill = Drill::prepare_with(part.scenario.clone(), seed)?;
        let service = drill.service();
        let between = Between { listen: http::free_address()?, upstream: service };
        let admin = http::free_address()?;
        let directory = place.join(between.listen.port().to_string());
        // The system may give a port again that was used before.
        fs::create_dir_all(&directory)?;
        let policy = drill.policy().ok_or_else(|| format!("{} has no policy", part.scenario.id))?;
        let workers = part.scenario.service.workers;
        let setup = Setup { directory: &directory, between, admin, workers, policy: &policy };
        let (target, probe): (_, Option<Box<dyn Probe>>) = match behind.prepare(&setup)? {
            None => (service, None),
            Some(command) => {
                let mut program = Program::start(behind.name(), cores.gateway, command)?;
                program.ready(between.listen)?;
                let asked = match behind {
                    Behind::Envoy(_) if part.is_of_the_limit() => Asked::Envoy(admin),
                    Behind::Ours(_) if part.is_of_the_limit() => Asked::Ours(admin),
                    Behind::Nothing | Behind::Nginx | Behind::Envoy(_) | Behind::Ours(_) => Asked::Nobody,
                };
                (between.listen, Some(Box::new(Watch { program, asked })))
            }
        };
        let outcome = drill.run(target, probe)?;
        Ok(Self {
            scenario: outcome.scenario.id.clone(),
            behind: behind.name(),
            figures: Figures::of(part, &outcome),
            findings: outcome.findings(Variant::Protected),
            disturbance: outcome.disturbance(stretch.stolen()?),
            missed: outcome.missed(variant(behind)),
            repeated: Vec::new(),
            seed,
        })
    }

    /// What there is to say of it if it is no evidence: it misses something, and a neighbour slowed it down.
    pub(crate) fn discarded(&self) -> Option<Discarded> {
        let why = self.disturbance.clone().filter(|_| !self.missed.is_empty())?;
        Some(Discarded { missed: self.missed.clone(), why })
    }
}

const fn variant(behind: &Behind) -> Variant {
    match behind {
        Behind::Nothing => Variant::Naive,
        Behind::Nginx | Behind::Envoy(_) | Behind::Ours(_) => Variant::Protected,
    }
}
