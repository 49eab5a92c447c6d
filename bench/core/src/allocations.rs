//! Decisions must not allocate: not for a known key, not for a new one, not to say no, not to learn from the end.

use std::error::Error;
use std::time::Duration;

use tidegate_core::concurrency::Vegas;

use crate::contender::{Contender, Mode};
use crate::contenders::ours::driven::{Mechanism, Told};
use crate::contenders::ours::{self, breaker, places, retry, shed, throttle};
use crate::counting::tally;
use crate::start::Start;
use crate::stream::id;

/// Allocations over so many decisions of one kind.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counted {
    pub(crate) kind: &'static str,
    pub(crate) decisions: usize,
    pub(crate) allocations: u64,
}

const DECISIONS: usize = 100_000;

/// From one reading of the clock to the next: ten to twenty seconds in all.
const STEP: Duration = Duration::from_micros(100);

/// Counts them for ours.
pub(crate) fn count() -> Result<Vec<Counted>, Box<dyn Error>> {
    let known: Vec<u64> = (0..DECISIONS).map(id).collect();
    // A table for twice as many, so that the new keys find a place of their own.
    let table = |mode, filled| ours::Keyed::with_room(2 * DECISIONS, filled, mode);
    let mut counted = vec![
        of("keyed, known key, admitting", &table(Mode::Admitting, DECISIONS)?, &known),
        of("keyed, known key, refusing", &table(Mode::Refusing, DECISIONS)?, &known),
        of("keyed, new key, admitting", &table(Mode::Admitting, 0)?, &known),
        of("keyed, table full, new key", &ours::Keyed::with_room(1_000, 1_000, Mode::Refusing)?, &known),
        of("not keyed, admitting", &ours::Unkeyed::spent(Mode::Admitting)?, &known),
        of("not keyed, refusing", &ours::Unkeyed::spent(Mode::Refusing)?, &known),
    ];
    counted.extend(mechanisms(&known)?);
    Ok(counted)
}

/// The adaptive mechanisms, over time enough for their windows and buckets to pass.
fn mechanisms(ids: &[u64]) -> Result<Vec<Counted>, Box<dyn Error>> {
    let (yes, no) = (Mode::Admitting, Mode::Refusing);
    Ok(vec![
        passing("place taken and given back", yes, places::Borrowed::moving(Vegas)?, ids)?,
        passing("the same with a permit that can travel", yes, places::Owned::free(Vegas)?, ids)?,
        passing("no place free", no, places::Full::new(Vegas)?, ids)?,
        passing("breaker closed, check", yes, breaker::Check::closed()?, ids)?,
        passing("breaker closed, check and success", yes, breaker::Call::closed()?, ids)?,
        passing("breaker open", no, breaker::Check::open()?, ids)?,
        passing("throttle admits", yes, throttle::Throttled::new(yes)?, ids)?,
        passing("throttle refuses", no, throttle::Throttled::new(no)?, ids)?,
        passing("retry budget admits", yes, retry::Retried::new(yes)?, ids)?,
        passing("retry budget refuses", no, retry::Retried::new(no)?, ids)?,
        passing("shedder admits", yes, shed::Shed::new(yes), ids)?,
        passing("shedder refuses", no, shed::Shed::new(no), ids)?,
    ])
}

fn passing(
    kind: &'static str,
    mode: Mode,
    mechanism: impl Mechanism,
    ids: &[u64],
) -> Result<Counted, Box<dyn Error>> {
    let contender = Told::stepping(mechanism, STEP);
    let start = Start::of(1);
    let (slice, tally) = tally(|| contender.shared(ids, &start));
    if slice.admitted != mode.admitted_of(ids.len()) {
        return Err(format!("{kind}: said yes to {} of {}", slice.admitted, ids.len()).into());
    }
    Ok(Counted { kind, decisions: ids.len(), allocations: tally.allocations })
}

fn of(kind: &'static str, contender: &dyn Contender, ids: &[u64]) -> Counted {
    let start = Start::of(1);
    let (_, tally) = tally(|| contender.shared(ids, &start));
    Counted { kind, decisions: ids.len(), allocations: tally.allocations }
}
