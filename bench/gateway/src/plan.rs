//! What is measured, in which order, and what it must come to.

use std::error::Error;
use std::io::{self, Write};
use std::time::Duration;

use tidegate_bench_lab::bar::{Bar, Bound};
use tidegate_bench_lab::cores::Cores;
use tidegate_bench_lab::machine::Reading;
use tidegate_bench_lab::patience::Patience;
use tidegate_bench_lab::process::{raise_open_files, version};
use tidegate_load::awake::Awake;

use crate::case::Case;
use crate::check;
use crate::contender::Contender;
use crate::contenders::{ENVOY, NGINX, OURS};
use crate::footprint::Footprint;
use crate::latency::{self, Latencies};
use crate::rounds::{Rounds, Runner};
use crate::upstream;
use crate::wrk::Wrk;

/// How long to run.
pub(crate) struct Plan {
    /// Odd, so that the median is a round that happened.
    rounds: usize,
    /// Of a turn under full load.
    seconds: u64,
    /// Rounds at a moderate rate, and the length of a turn in them: many short ones, since a machine that is away for a
    /// millisecond spoils the p99 of the turn it falls into, and not that of most.
    moderate: (usize, Duration),
    /// How often each contender is started to time it.
    starts: usize,
    /// For turns at a moderate rate that a hypervisor disturbs. Under full load processor time counts, and what was taken
    /// away is not in it.
    patience: Duration,
}

/// Everything a run found out.
pub(crate) struct Measured {
    /// Who took part, and in which version.
    pub(crate) versions: Vec<(&'static str, String)>,
    pub(crate) contenders: Vec<&'static str>,
    pub(crate) rounds: Rounds,
    pub(crate) latencies: Latencies,
    pub(crate) footprints: Vec<Footprint>,
    /// How many cores other programs kept busy, on average over the rounds.
    pub(crate) others: f64,
    /// What was left of it, and what it was used for.
    pub(crate) patience: Patience,
    /// Rounds under full load, and at a moderate rate.
    pub(crate) counts: (usize, usize),
}

impl Plan {
    pub(crate) fn full() -> Self {
        let (moderate, patience) = ((27, Duration::from_millis(600)), Duration::from_mins(20));
        Self { rounds: 17, seconds: 1, moderate, starts: 9, patience }
    }

    pub(crate) fn quick() -> Self {
        let (moderate, patience) = ((2, Duration::from_millis(500)), Duration::ZERO);
        Self { rounds: 2, seconds: 1, moderate, starts: 2, patience }
    }

    pub(crate) fn measure(&self, contenders: &[Box<dyn Contender>]) -> Result<Measured, Box<dyn Error>> {
        raise_open_files()?;
        let cores = Cores::first()?;
        cores.load.pin()?;
        let place = tempfile::tempdir()?;
        let versions = versions(contenders)?;
        let wrk = Wrk::new(place.path())?;
        let (service, upstream) = upstream::start(cores.load, place.path())?;

        progress("starting everybody, and looking whether they do what they should")?;
        let mut runners = Vec::new();
        for case in Case::ALL {
            for contender in contenders {
                let (runner, _) = Runner::start(contender.as_ref(), case, upstream, cores, place.path())?;
                check::answers(runner.name, case, runner.address)?;
                runners.push(runner);
            }
        }
        let running = || runners.iter().map(|runner| &runner.program).chain([&service]);

        let (rounds, seconds) = (self.rounds, self.seconds);
        progress(&format!("{rounds} rounds of full load, {seconds} s for each contender and case"))?;
        let before = Reading::now(running())?;
        let awake = Awake::keep()?;
        let full = Rounds::run(&runners, &wrk, rounds, seconds)?;
        let (calm_rounds, _) = self.moderate;
        let mut patience = Patience::of(self.patience);
        progress(&format!("{calm_rounds} rounds at {} requests a second", latency::RATE))?;
        let latencies = Latencies::run(&runners, upstream, cores.load, self.moderate, &mut patience)?;
        // Before the reading, since only what has ended counts as ours.
        drop(awake);
        let others = Reading::now(running())?.others_since(&before);
        drop(runners);

        progress("memory and start")?;
        let mut footprints = Vec::new();
        for contender in contenders {
            let place = place.path();
            footprints.push(Footprint::of(contender.as_ref(), upstream, cores, place, self.starts)?);
        }
        Ok(Measured {
            versions,
            contenders: contenders.iter().map(|contender| contender.name()).collect(),
            rounds: full,
            latencies,
            footprints,
            others,
            patience,
            counts: (rounds, calm_rounds),
        })
    }
}

impl Measured {
    /// The promises about ours; none if it did not take part.
    pub(crate) fn bars(&self) -> Vec<Bar> {
        let Some(footprint) = self.footprints.iter().find(|footprint| footprint.name == OURS) else {
            return Vec::new();
        };
        let ours = |case| (case, OURS);
        let ratio = |promise: &str, at_most, name, base| Bar {
            promise: promise.to_owned(),
            bound: Bound::AtMost(at_most),
            measured: self.rounds.ratio(name, base).median,
            unit: "×",
        };
        let (plain, keyed, refusing) = (ours(Case::Plain), ours(Case::PerKey), ours(Case::Refusing));
        let mut bars = vec![
            ratio("plain: processor time of nginx", 1.15, plain, (Case::Plain, NGINX)),
            ratio("quota per key: processor time of nginx", 1.15, keyed, (Case::PerKey, NGINX)),
            ratio("quota per key: processor time of Envoy", 0.4, keyed, (Case::PerKey, ENVOY)),
            ratio("refusing: processor time of nginx", 1.0, refusing, (Case::Refusing, NGINX)),
            ratio("refusing: processor time of our plain forwarding", 0.5, refusing, plain),
        ];
        bars.extend(latency::CASES.map(|case| Bar {
            promise: format!("{}: p99 beyond nginx's", case.short()),
            bound: Bound::AtMost(100.0),
            measured: self.latencies.added(case, OURS, NGINX).median,
            unit: " µs",
        }));
        bars.push(Bar {
            promise: "memory for an idle connection".to_owned(),
            bound: Bound::AtMost(40.0),
            measured: footprint.connection / 1024.0,
            unit: " KiB",
        });
        bars.push(Bar {
            promise: "from started to the first answer".to_owned(),
            bound: Bound::AtMost(100.0),
            measured: footprint.start.median,
            unit: " ms",
        });
        bars
    }
}

/// Everybody's own word for their version.
fn versions(contenders: &[Box<dyn Contender>]) -> Result<Vec<(&'static str, String)>, Box<dyn Error>> {
    let mut versions = Vec::new();
    for contender in contenders {
        versions.push((contender.name(), version(contender.version())?));
    }
    versions.push(("wrk", version(Wrk::version())?));
    Ok(versions)
}

fn progress(what: &str) -> io::Result<()> {
    writeln!(io::stderr(), "{what}")
}
