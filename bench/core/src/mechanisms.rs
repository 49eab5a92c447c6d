//! The adaptive mechanisms: what each is asked, who else can be asked it, and what ours may take.
//!
//! None has keys and all of them share one state, so two threads always meet. What the mechanism wants to be
//! told, a driver has to read from its clock: once to decide, twice when the end of the request counts too.
//! The bars are about what is left when those readings are subtracted.

use std::error::Error;

use tidegate_bench_lab::bar::{Bar, Bound};
use tidegate_bench_lab::cores::Core;
use tidegate_core::concurrency::{Aimd, Gradient, LimitAlgorithm, Vegas};
use tower_resilience_adaptive as tower;

use crate::contender::{Contender, Mode};
use crate::contenders::bare_count::{self, BareCount, BareRise};
use crate::contenders::ours::driven::{Mechanism, Reading, Told};
use crate::contenders::ours::{self, breaker, places, throttle};
use crate::contenders::{clock, failsafe, recloser, tower_resilience};
use crate::rounds::{Cache, Course, Rounds};
use crate::stream::{Spread, Stream};

/// One row of the comparison.
pub(crate) struct Compared {
    pub(crate) what: &'static str,
    pub(crate) threads: usize,
    pub(crate) rounds: Rounds,
    at_most: Option<f64>,
}

/// What a mechanism is asked.
struct Question {
    what: &'static str,
    mode: Mode,
    /// The most nanoseconds beyond the clock, by number of threads, from one on.
    at_most: [Option<f64>; 2],
    /// Everybody who can answer, for this number of threads.
    contenders: fn(usize) -> Contenders,
}

type Contenders = Result<Vec<Box<dyn Contender>>, Box<dyn Error>>;

/// Taking a place, while another thread takes and gives back others.
const PLACE: f64 = 25.0;
/// The same, as a multiple of what counting in one shared word takes.
const BESIDE_BARE: f64 = 1.1;
/// Finding a breaker closed.
const CLOSED: f64 = 10.0;
/// Asking a throttle, whatever it says.
const THROTTLE: f64 = 20.0;

const QUESTIONS: [Question; 11] = [
    Question {
        what: "place taken, Vegas",
        mode: Mode::Admitting,
        at_most: [None, Some(PLACE)],
        contenders: |_| {
            Ok(vec![
                Box::new(places::Admissions::free(Vegas)?),
                Box::new(clock::Quanta::default()),
                Box::new(BareRise::default()),
            ])
        },
    },
    Question {
        what: "place taken and given back, Vegas",
        mode: Mode::Admitting,
        at_most: [None; 2],
        contenders: |_| places_beside(Vegas, tower::Vegas::builder().min_limit(2).build()?),
    },
    Question {
        what: "place taken and given back, AIMD",
        mode: Mode::Admitting,
        at_most: [None; 2],
        contenders: |_| places_beside(Aimd::default(), tower::Aimd::builder().min_limit(2).build()?),
    },
    Question {
        what: "place taken and given back, gradient",
        mode: Mode::Admitting,
        at_most: [None; 2],
        contenders: |_| places_beside(Gradient::default(), tower::Gradient2::builder().min_limit(2).build()?),
    },
    Question {
        what: "the same, Vegas, with a permit that can travel",
        mode: Mode::Admitting,
        at_most: [None; 2],
        contenders: |_| ours(|| Ok(places::Owned::free(Vegas)?), Box::new(clock::Twice::default())),
    },
    Question {
        what: "no place free",
        mode: Mode::Refusing,
        at_most: [None; 2],
        contenders: |_| ours(|| places::Full::new(Vegas), Box::new(clock::Quanta::default())),
    },
    Question {
        what: "breaker closed, check",
        mode: Mode::Admitting,
        at_most: [Some(CLOSED); 2],
        contenders: |_| {
            let mut all = ours(|| Ok(breaker::Check::closed()?), Box::new(clock::Quanta::default()))?;
            all.push(Box::new(failsafe::Check::closed()));
            Ok(all)
        },
    },
    Question {
        what: "breaker closed, check and success",
        mode: Mode::Admitting,
        at_most: [None; 2],
        contenders: |_| {
            let mut all = ours(|| Ok(breaker::Call::closed()?), Box::new(clock::Twice::default()))?;
            all.push(Box::new(failsafe::Call::closed()));
            all.push(Box::new(recloser::Call::closed()));
            all.push(Box::new(tower_resilience::Breaker::closed()?));
            Ok(all)
        },
    },
    Question {
        what: "breaker open",
        mode: Mode::Refusing,
        at_most: [None; 2],
        contenders: |threads| {
            let mut all = ours(breaker::Check::open, Box::new(clock::Quanta::default()))?;
            all.push(Box::new(failsafe::Check::open()?));
            all.push(Box::new(recloser::Call::open()?));
            if threads == 1 {
                all.push(Box::new(tower_resilience::Breaker::open()?));
            }
            Ok(all)
        },
    },
    Question {
        what: "throttle admits",
        mode: Mode::Admitting,
        at_most: [Some(THROTTLE), None],
        contenders: |_| throttled(Mode::Admitting),
    },
    Question {
        what: "throttle refuses",
        mode: Mode::Refusing,
        at_most: [Some(THROTTLE), None],
        contenders: |_| throttled(Mode::Refusing),
    },
];

/// Asks all questions of one thread and of two.
pub(crate) fn compare(slice: usize, rounds: usize, cores: &[Core]) -> Result<Vec<Compared>, Box<dyn Error>> {
    let stream = Stream::new(Spread::Uniform, 1, slice);
    let mut rows = Vec::new();
    for Question { what, mode, at_most, contenders } in QUESTIONS {
        for (threads, at_most) in (1..=cores.len()).zip(at_most) {
            let course = Course { stream: &stream, mode, cores: &cores[..threads], rounds };
            let rounds = Rounds::run(&mut contenders(threads)?, &course)?;
            rows.push(Compared { what, threads, rounds, at_most });
        }
    }
    Ok(rows)
}

impl Compared {
    /// What this row is held to, if to anything. Two cores cannot write one word faster than they hand it over, so
    /// beside an absolute bar, counting what is in flight is held to what a bare count takes in the same rounds.
    pub(crate) fn bars(&self) -> impl Iterator<Item = Bar> {
        let threads = if self.threads == 1 { "1 thread" } else { "2 threads" };
        let absolute = self.at_most.map(|nanos| Bar {
            promise: format!("{}, {threads}: beyond the clock", self.what),
            measured: self.rounds.beyond(ours::NAME, clock::NAME, Cache::Warm).median,
            unit: " ns",
            bound: Bound::AtMost(nanos),
        });
        let beside = Bar {
            promise: format!("{}, {threads}: times a bare count", self.what),
            measured: self.rounds.ratio(ours::NAME, bare_count::NAME, Cache::Warm).median,
            unit: "×",
            bound: Bound::AtMost(BESIDE_BARE),
        };
        let beside = absolute.is_some().then_some(beside).filter(|bar| !bar.measured.is_nan());
        absolute.into_iter().chain(beside)
    }
}

/// Ours reading the clock, ours told the moment, and the clock alone, read as often.
fn ours<M: Mechanism + 'static>(
    mechanism: impl Fn() -> Result<M, Box<dyn Error>>,
    clock: Box<dyn Contender>,
) -> Contenders {
    Ok(vec![Box::new(Reading::new(mechanism()?)), Box::new(Told::new(mechanism()?)), clock])
}

fn places_beside<O, T>(algorithm: O, theirs: T) -> Contenders
where
    O: LimitAlgorithm + Copy + 'static,
    T: tower::ConcurrencyAlgorithm + 'static,
{
    let mut all = ours(|| Ok(places::Borrowed::free(algorithm)?), Box::new(clock::Twice::default()))?;
    all.push(Box::new(BareCount::default()));
    all.push(Box::new(tower_resilience::Places::free(theirs)));
    Ok(all)
}

fn throttled(mode: Mode) -> Contenders {
    ours(|| throttle::Throttled::new(mode), Box::new(clock::Quanta::default()))
}
