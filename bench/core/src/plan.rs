//! What is measured, in which order, and what it must come to.

use std::error::Error;
use std::io::{self, Write};
use std::time::Instant;

use tidegate_bench_lab::bar::{Bar, Bound};
use tidegate_bench_lab::cores::Core;

use crate::allocations::{self, Counted};
use crate::contender::Mode;
use crate::contenders::{self, ours};
use crate::mechanisms::{self, Compared};
use crate::memory::{self, Held};
use crate::rounds::{Cache, Course, Rounds};
use crate::stream::{Spread, Stream};

/// How long and over what to run.
pub(crate) struct Plan {
    pub(crate) is_quick: bool,
    keys: &'static [usize],
    spreads: &'static [Spread],
    modes: &'static [Mode],
    /// Odd, so that the median is a round that happened.
    rounds: usize,
    /// How often the tables of a million keys are filled anew, since where they come to lie in memory is luck. Odd too.
    fillings: usize,
    /// Decisions in a slice of a fast contender: at 100 ns each, 40 ms.
    slice: usize,
}

/// One row of the keyed comparison.
pub(crate) struct Keyed {
    pub(crate) mode: Mode,
    pub(crate) keys: usize,
    pub(crate) spread: Spread,
    pub(crate) threads: usize,
    pub(crate) rounds: Rounds,
}

/// One row of the comparison without keys.
pub(crate) struct Unkeyed {
    pub(crate) mode: Mode,
    pub(crate) threads: usize,
    pub(crate) rounds: Rounds,
}

/// Everything a run found out.
pub(crate) struct Measured {
    pub(crate) keyed: Vec<Keyed>,
    pub(crate) unkeyed: Vec<Unkeyed>,
    pub(crate) mechanisms: Vec<Compared>,
    pub(crate) held: Vec<Held>,
    pub(crate) allocations: Vec<Counted>,
    /// For a few keys, and for a million.
    pub(crate) rounds: (usize, usize),
}

impl Plan {
    pub(crate) fn full() -> Self {
        Self {
            is_quick: false,
            keys: &[1, 10_000, memory::MILLION],
            spreads: &[Spread::Uniform, Spread::Zipf],
            modes: &[Mode::Admitting, Mode::Refusing],
            rounds: 15,
            fillings: 7,
            slice: 400_000,
        }
    }

    pub(crate) fn quick() -> Self {
        Self {
            is_quick: true,
            keys: &[10_000, memory::MILLION],
            spreads: &[Spread::Uniform],
            modes: &[Mode::Admitting],
            rounds: 5,
            fillings: 1,
            slice: 200_000,
        }
    }

    pub(crate) fn measure(&self) -> Result<Measured, Box<dyn Error>> {
        let cores = Core::all()?;
        let cores = cores.get(..2).ok_or("the comparison needs two cores")?;
        let began = Instant::now();
        let say = |what: &str| writeln!(io::stderr(), "{:>4} s  {what}", began.elapsed().as_secs());

        say("allocations")?;
        let allocations = allocations::count()?;
        say("decisions without keys")?;
        let unkeyed = self.unkeyed(cores)?;
        say("adaptive mechanisms")?;
        // They have no table to walk through, so shorter slices tell as much.
        let mechanisms = mechanisms::compare(self.slice / 4, self.more_rounds(), cores)?;
        let mut keyed = Vec::new();
        for &keys in self.keys {
            for &mode in self.modes {
                say(&format!("decisions over {keys} keys, {}", mode.name()))?;
                keyed.extend(self.keyed(keys, mode, cores)?);
            }
        }
        say("bytes a key")?;
        let held = memory::measure(self.is_quick)?;
        say("done")?;
        Ok(Measured {
            keyed,
            unkeyed,
            mechanisms,
            held,
            allocations,
            rounds: (self.rounds, self.fillings * self.rounds_a_filling()),
        })
    }

    /// Rounds for what depends on how far memory and the other core are, which other programs on the machine change
    /// from second to second.
    fn more_rounds(&self) -> usize {
        2 * self.rounds + 1
    }

    fn unkeyed(&self, cores: &[Core]) -> Result<Vec<Unkeyed>, Box<dyn Error>> {
        let stream = Stream::new(Spread::Uniform, 1, self.slice);
        let mut rows = Vec::new();
        for &mode in self.modes {
            let mut contenders = contenders::unkeyed(mode)?;
            for threads in 1..=cores.len() {
                let course = Course { stream: &stream, mode, cores: &cores[..threads], rounds: self.rounds };
                rows.push(Unkeyed { mode, threads, rounds: Rounds::run(&mut contenders, &course)? });
            }
        }
        Ok(rows)
    }

    /// All rows of one number of keys.
    fn keyed(&self, keys: usize, mode: Mode, cores: &[Core]) -> Result<Vec<Keyed>, Box<dyn Error>> {
        let (fillings, rounds) =
            if keys == memory::MILLION { (self.fillings, self.rounds_a_filling()) } else { (1, self.rounds) };
        // A single key can be spread in one way only.
        let spreads = if keys == 1 { &self.spreads[..1] } else { self.spreads };
        let mut rows: Vec<Keyed> = Vec::new();
        for _ in 0..fillings {
            let mut contenders = contenders::keyed(keys, mode)?;
            let mut filled = Vec::new();
            for &spread in spreads {
                let stream = Stream::new(spread, keys, self.slice);
                for threads in 1..=cores.len() {
                    let course = Course { stream: &stream, mode, cores: &cores[..threads], rounds };
                    let rounds = Rounds::run(&mut contenders, &course)?;
                    filled.push(Keyed { mode, keys, spread, threads, rounds });
                }
            }
            if rows.is_empty() {
                rows = filled;
            } else {
                rows.iter_mut().zip(filled).for_each(|(row, more)| row.rounds.add(more.rounds));
            }
        }
        Ok(rows)
    }

    fn rounds_a_filling(&self) -> usize {
        (self.more_rounds() / self.fillings) | 1
    }
}

impl Measured {
    pub(crate) fn allocates_nothing(&self) -> bool {
        self.allocations.iter().all(|counted| counted.allocations == 0)
    }

    /// The bars this run can be held to.
    pub(crate) fn bars(&self) -> Vec<Bar> {
        let mut bars = Vec::new();
        let million = |row: &&Keyed| row.keys == memory::MILLION && row.spread == Spread::Uniform;
        for row in self.keyed.iter().filter(million) {
            for (peer, bound) in [("governor as shipped", 2.5), ("governor, our hasher", 1.3)] {
                let threads = if row.threads == 1 { "1 thread" } else { "2 threads" };
                bars.push(Bar {
                    promise: format!("1 M keys, uniform, {threads}, {}: {peer} takes", row.mode.name()),
                    measured: row.rounds.ratio(peer, ours::NAME, Cache::Warm).median,
                    unit: "×",
                    bound: Bound::AtLeast(bound),
                });
            }
        }
        for held in self.held.iter().filter(|held| held.name == ours::NAME && held.keys == memory::MILLION) {
            bars.push(Bar {
                promise: "1 M keys: memory a key".to_owned(),
                measured: held.bytes_per_key,
                unit: " B",
                bound: Bound::AtMost(20.0),
            });
        }
        for row in self.unkeyed.iter().filter(|row| row.threads == 1) {
            bars.push(Bar {
                promise: format!("not keyed, 1 thread, {}: beyond the clock", row.mode.name()),
                measured: row.rounds.beyond(ours::UNKEYED, "clock alone", Cache::Warm).median,
                unit: " ns",
                bound: Bound::AtMost(15.0),
            });
        }
        bars.extend(self.mechanisms.iter().flat_map(Compared::bars));
        bars
    }
}
