//! Rounds: every contender runs a slice in turn, so that what disturbs the machine disturbs all.
//!
//! The simplest comparison runs one contender to its end and then the next. On a shared machine the
//! second may simply have met a busier minute. Here a round takes well under a second, each contender's
//! time is divided by ours *of the same round*, and the median of those ratios is what counts. Who begins
//! changes from round to round.
//!
//! Taking turns has a price: each contender finds the cache full of the others' tables. So a turn has three
//! slices. The first is the *cold* figure, the second only warms up, the third is the *warm* figure.

use std::error::Error;
use std::thread;

use tidegate_bench_lab::cores::Core;
use tidegate_bench_lab::figures::Figure;

use crate::contender::{Contender, Mode, Slice};
use crate::start::Start;
use crate::stream::Stream;

/// Every contender's nanoseconds per decision, round by round.
pub(crate) struct Rounds {
    contenders: Vec<(&'static str, Vec<Turn>)>,
}

/// What a contender's turn came to, in nanoseconds per decision.
#[derive(Clone, Copy)]
struct Turn {
    cold: f64,
    warm: f64,
}

/// Which slice of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cache {
    /// The first, after all others had theirs.
    Cold,
    /// The third.
    Warm,
}

/// Slices of a turn.
const SLICES: usize = 3;

/// Where and how long to run.
pub(crate) struct Course<'a> {
    pub(crate) stream: &'a Stream,
    pub(crate) mode: Mode,
    /// One thread for each.
    pub(crate) cores: &'a [Core],
    pub(crate) rounds: usize,
}

impl Rounds {
    /// Runs all contenders over the course, interleaved, after one round that does not count.
    pub(crate) fn run(
        contenders: &mut [Box<dyn Contender>],
        course: &Course<'_>,
    ) -> Result<Self, Box<dyn Error>> {
        let mut times: Vec<(&'static str, Vec<Turn>)> =
            contenders.iter().map(|contender| (contender.name(), Vec::new())).collect();
        for round in 0..=course.rounds {
            for turn in 0..contenders.len() {
                let at = (turn + round) % contenders.len();
                let mut slice = |number| nanos_of(contenders[at].as_mut(), course, round * SLICES + number);
                let (cold, _, warm) = (slice(0)?, slice(1)?, slice(2)?);
                if round > 0 {
                    times[at].1.push(Turn { cold, warm });
                }
            }
        }
        Ok(Self { contenders: times })
    }

    /// Adds other rounds of the same contenders.
    pub(crate) fn add(&mut self, more: Self) {
        for ((_, turns), (_, more)) in self.contenders.iter_mut().zip(more.contenders) {
            turns.extend(more);
        }
    }

    /// Nanoseconds per decision of the contender with this name.
    pub(crate) fn nanos(&self, name: &str, cache: Cache) -> Figure {
        Figure::of(self.of(name, cache))
    }

    /// How many times longer `name` took than `base`, round by round.
    pub(crate) fn ratio(&self, name: &str, base: &str, cache: Cache) -> Figure {
        Figure::of(self.of(name, cache).zip(self.of(base, cache)).map(|(time, base)| time / base))
    }

    /// How much longer `name` took than `base`, round by round.
    pub(crate) fn beyond(&self, name: &str, base: &str, cache: Cache) -> Figure {
        Figure::of(self.of(name, cache).zip(self.of(base, cache)).map(|(time, base)| time - base))
    }

    fn of(&self, name: &str, cache: Cache) -> impl Iterator<Item = f64> {
        let found = self.contenders.iter().find(|(contender, _)| *contender == name);
        let turns = found.map_or(&[][..], |(_, turns)| turns);
        turns.iter().map(move |turn| match cache {
            Cache::Cold => turn.cold,
            Cache::Warm => turn.warm,
        })
    }
}

/// Lets one contender run one slice and returns nanoseconds per decision, as one thread saw it.
fn nanos_of(
    contender: &mut dyn Contender,
    course: &Course<'_>,
    number: usize,
) -> Result<f64, Box<dyn Error>> {
    let threads = course.cores.len();
    let start = Start::of(threads);
    let most = contender.most_decisions();
    let ids = |thread: usize| {
        let slice = course.stream.slice(number * threads + thread);
        &slice[..most.min(slice.len())]
    };
    let slices: Vec<Slice> = if let [core] = course.cores {
        core.pin()?;
        vec![contender.alone(ids(0), &start)]
    } else {
        together(contender, course.cores, &start, &ids)?
    };
    let decisions = ids(0).len();
    for slice in &slices {
        if contender.decides() && slice.admitted != course.mode.admitted_of(decisions) {
            let (name, mode, admitted) = (contender.name(), course.mode.name(), slice.admitted);
            return Err(format!("{name} while {mode} said yes to {admitted} of {decisions}").into());
        }
    }
    let slowest = slices.iter().map(|slice| slice.elapsed).max().unwrap_or_default();
    Ok(slowest.as_secs_f64() * 1e9 / decisions as f64)
}

/// One pinned thread for each core, all beginning at the same moment.
fn together<'a>(
    contender: &dyn Contender,
    cores: &[Core],
    start: &Start,
    ids: &(impl Fn(usize) -> &'a [u64] + Sync),
) -> Result<Vec<Slice>, Box<dyn Error>> {
    thread::scope(|scope| {
        let running: Vec<_> = cores
            .iter()
            .enumerate()
            .map(|(thread, core)| {
                scope.spawn(move || {
                    // Nobody may stay behind at the barrier, so a failure is told afterwards.
                    let pinned = core.pin();
                    let slice = contender.shared(ids(thread), start);
                    pinned.map(|()| slice)
                })
            })
            .collect();
        let slices =
            running.into_iter().map(|thread| Ok(thread.join().map_err(|_| "a thread panicked")??));
        slices.collect()
    })
}
