//! What is done in a run: every attack against everybody, one after another.

use std::error::Error;
use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use tidegate_bench_lab::bar::{Bar, Bound};
use tidegate_bench_lab::cores::Cores;
use tidegate_bench_lab::http;
use tidegate_bench_lab::machine::Reading;
use tidegate_bench_lab::process::{self, Program};

use crate::attack::Attack;
use crate::besieged::{Besieged, Setup};
use crate::honest::{self, Outcome};
use crate::service;

/// How long an attack goes on before the honest caller is looked at: connections have been taken by then.
const BEFORE: Duration = Duration::from_secs(1);

/// How much a run asks.
pub(crate) struct Plan {
    length: Duration,
}

/// One attack against one gateway.
pub(crate) struct Siege {
    pub(crate) attack: Attack,
    pub(crate) name: &'static str,
    pub(crate) outcome: Outcome,
    /// Resident memory of the gateway at the end, while the attack goes on; in bytes.
    pub(crate) resident: u64,
}

/// Everything a run found out.
pub(crate) struct Measured {
    pub(crate) versions: Vec<(&'static str, String)>,
    pub(crate) others: f64,
    pub(crate) length: Duration,
    pub(crate) sieges: Vec<Siege>,
}

impl Plan {
    pub(crate) const fn full() -> Self {
        Self { length: Duration::from_secs(10) }
    }

    pub(crate) const fn quick() -> Self {
        Self { length: Duration::from_secs(2) }
    }

    /// Besieges everybody.
    pub(crate) fn measure(&self, ours: &Path) -> Result<Measured, Box<dyn Error>> {
        process::raise_open_files()?;
        let cores = Cores::first()?;
        cores.load.pin()?;
        let everybody = [Besieged::Ours(ours.to_owned()), Besieged::Nginx];
        let mut versions = Vec::new();
        for one in &everybody {
            versions.push((one.name(), process::version(one.version())?));
        }
        let before = Reading::now(std::iter::empty())?;
        let mut sieges = Vec::new();
        for attack in Attack::ALL {
            for one in &everybody {
                writeln!(io::stderr(), "{}: {}", one.name(), attack.title())?;
                sieges.push(self.besiege(one, attack, cores)?);
            }
        }
        let others = Reading::now(std::iter::empty())?.others_since(&before);
        Ok(Measured { versions, others, length: self.length, sieges })
    }

    fn besiege(&self, one: &Besieged, attack: Attack, cores: Cores) -> Result<Siege, Box<dyn Error>> {
        let directory = tempfile::tempdir()?;
        let mut endpoints = vec![service::start()?];
        let (deaf, _held) = service::deaf()?;
        if attack == Attack::DeafEndpoint {
            endpoints.push(deaf);
        }
        let listen = [http::free_address()?, http::free_address()?];
        let setup = Setup { directory: directory.path(), listen, endpoints: &endpoints };
        let mut program = Program::start(one.name(), cores.gateway, one.prepare(&setup)?)?;
        if attack == Attack::DeafEndpoint {
            // To ask whether it is ready would find out about the endpoint.
            thread::sleep(BEFORE);
        } else {
            program.ready(listen[0])?;
        }
        let must_stop = AtomicBool::new(false);
        let (outcome, resident) = thread::scope(|scope| {
            scope.spawn(|| attack.run(listen, &must_stop));
            thread::sleep(BEFORE);
            let outcome = honest::ask(listen[0], self.length);
            let resident = program.resident();
            must_stop.store(true, Ordering::Relaxed);
            (outcome, resident)
        });
        Ok(Siege { attack, name: one.name(), outcome, resident: resident? })
    }
}

impl Measured {
    /// What one gateway's honest caller got under an attack.
    pub(crate) fn of(&self, attack: Attack, name: &str) -> Option<&Siege> {
        self.sieges.iter().find(|siege| siege.attack == attack && siege.name == name)
    }

    /// What is promised of ours: 99 of a hundred requests answered, and as fast as without an attack, give or take half.
    pub(crate) fn bars(&self) -> Vec<Bar> {
        const OURS: &str = "tidegate";
        let calm = self.of(Attack::Nothing, OURS).map_or(f64::NAN, |siege| siege.outcome.percentile(99));
        let besieged = Attack::ALL.into_iter().filter(|attack| *attack != Attack::Nothing);
        let found = besieged.filter_map(|attack| Some((attack, &self.of(attack, OURS)?.outcome)));
        found
            .flat_map(|(attack, outcome)| {
                let (title, percent) = (attack.title(), attack.held_percent());
                let share = Bar {
                    promise: format!("{title}: answered"),
                    measured: outcome.share() * 100.0,
                    unit: " %",
                    bound: Bound::AtLeast(99.0),
                };
                let time = Bar {
                    promise: format!("{title}: p{percent} beside the p99 without an attack"),
                    measured: outcome.percentile(percent) / calm,
                    unit: "×",
                    bound: Bound::AtMost(1.5),
                };
                [share, time]
            })
            .collect()
    }
}
