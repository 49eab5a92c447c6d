//! Rounds: every contender serves a stretch of load in turn, so that what disturbs the machine disturbs all.
//!
//! All contenders of all cases run the whole time, and idle ones cost nothing. A round visits the cases one
//! after another, and in a case the contenders, beginning with another one each round. A contender's
//! processor time per request is divided by a peer's *of the same round*, and the median of those ratios counts.

use std::error::Error;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;

use tidegate_bench_lab::cores::Cores;
use tidegate_bench_lab::figures::Figure;
use tidegate_bench_lab::http;
use tidegate_bench_lab::process::Program;
use tidegate_bench_lab::programs::Between;

use crate::case::Case;
use crate::check;
use crate::contender::{Contender, Setup};
use crate::wrk::Wrk;

/// A contender that runs for a case.
pub(crate) struct Runner {
    pub(crate) name: &'static str,
    pub(crate) case: Case,
    pub(crate) address: SocketAddr,
    pub(crate) program: Program,
}

/// What one contender's turn in one case came to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turn {
    /// Processor time per request, in microseconds.
    pub(crate) micros: f64,
    pub(crate) requests_per_second: f64,
    /// The share of its core that the contender used.
    pub(crate) busy: f64,
    /// Resident memory in the middle of the turn, in bytes.
    pub(crate) resident: f64,
}

/// Every contender's turns in every case, in the order of the rounds.
#[derive(Default)]
pub(crate) struct Rounds {
    turns: Vec<(Case, &'static str, Turn)>,
}

impl Runner {
    /// Starts a contender for a case in a directory of its own; returns it with the seconds until it served.
    pub(crate) fn start(
        contender: &dyn Contender,
        case: Case,
        upstream: SocketAddr,
        cores: Cores,
        directory: &Path,
    ) -> Result<(Self, f64), Box<dyn Error>> {
        let address = http::free_address()?;
        let directory = directory.join(address.port().to_string());
        // The system may give a port again that was used before.
        fs::create_dir_all(&directory)?;
        let between = Between { listen: address, upstream };
        let setup = Setup { directory: &directory, between, quota: case.quota() };
        let (file, text) = contender.configuration(&setup);
        let file = directory.join(file);
        fs::write(&file, text)?;
        let mut program = Program::start(contender.name(), cores.gateway, contender.command(&file))?;
        let taken = program.ready(address)?;
        Ok((Self { name: contender.name(), case, address, program }, taken.as_secs_f64()))
    }

    /// Serves `seconds` of load.
    pub(crate) fn turn(&self, wrk: &Wrk, seconds: u64) -> Result<Turn, Box<dyn Error>> {
        let before = self.program.processor_time()?;
        let (counts, resident) =
            wrk.run(self.address, self.case.keys(), seconds, || self.program.resident())?;
        let used = (self.program.processor_time()? - before).as_secs_f64();
        check::counts(self.name, self.case, counts)?;
        let (requests, duration) = (counts.requests as f64, counts.duration.as_secs_f64());
        Ok(Turn {
            micros: used * 1e6 / requests,
            requests_per_second: requests / duration,
            busy: used / duration,
            resident: resident? as f64,
        })
    }
}

impl Rounds {
    /// Lets all runners take turns, after one round that does not count.
    pub(crate) fn run(
        runners: &[Runner],
        wrk: &Wrk,
        rounds: usize,
        seconds: u64,
    ) -> Result<Self, Box<dyn Error>> {
        let mut turns = Vec::new();
        for round in 0..=rounds {
            for case in Case::ALL {
                let field: Vec<&Runner> = runners.iter().filter(|runner| runner.case == case).collect();
                for turn in 0..field.len() {
                    let runner = field[(turn + round) % field.len()];
                    let turn = runner.turn(wrk, seconds)?;
                    if round > 0 {
                        turns.push((case, runner.name, turn));
                    }
                }
            }
        }
        Ok(Self { turns })
    }

    /// What `value` says of the turns of this contender in this case.
    pub(crate) fn figure(&self, case: Case, name: &str, value: impl Fn(&Turn) -> f64) -> Figure {
        Figure::of(self.of(case, name).map(value))
    }

    /// How many times the processor time per request of `base` `name` took, round by round.
    pub(crate) fn ratio(&self, (case, name): (Case, &str), (base_case, base): (Case, &str)) -> Figure {
        let pairs = self.of(case, name).zip(self.of(base_case, base));
        Figure::of(pairs.map(|(turn, base)| turn.micros / base.micros))
    }

    fn of(&self, case: Case, name: &str) -> impl Iterator<Item = &Turn> {
        let turns = self.turns.iter().filter(move |(at, of, _)| *at == case && *of == name);
        turns.map(|(_, _, turn)| turn)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_of_the_same_round() {
        let turn = |micros| Turn { micros, requests_per_second: 0.0, busy: 0.0, resident: 0.0 };
        let mut rounds = Rounds::default();
        // The machine is half as fast in the second round, for both.
        for (ours, peer) in [(10.0, 20.0), (20.0, 40.0), (10.0, 20.0)] {
            rounds.turns.push((Case::Plain, "ours", turn(ours)));
            rounds.turns.push((Case::Plain, "peer", turn(peer)));
        }
        let ratio = rounds.ratio((Case::Plain, "ours"), (Case::Plain, "peer"));
        assert_eq!(ratio, Figure { lower: 0.5, median: 0.5, upper: 0.5 });
    }
}
