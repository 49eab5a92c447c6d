//! Decisions must not allocate: not for a known key, not for a new one, not to say no.

use std::error::Error;

use crate::contender::{Contender, Mode};
use crate::contenders::ours;
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

/// Counts them for ours.
pub(crate) fn count() -> Result<Vec<Counted>, Box<dyn Error>> {
    let known: Vec<u64> = (0..DECISIONS).map(id).collect();
    // A table for twice as many, so that the new keys find a place of their own.
    let table = |mode, filled| ours::Keyed::with_room(2 * DECISIONS, filled, mode);
    Ok(vec![
        of("keyed, known key, admitting", &table(Mode::Admitting, DECISIONS)?, &known),
        of("keyed, known key, refusing", &table(Mode::Refusing, DECISIONS)?, &known),
        of("keyed, new key, admitting", &table(Mode::Admitting, 0)?, &known),
        of("keyed, table full, new key", &ours::Keyed::with_room(1_000, 1_000, Mode::Refusing)?, &known),
        of("not keyed, admitting", &ours::Unkeyed::spent(Mode::Admitting)?, &known),
        of("not keyed, refusing", &ours::Unkeyed::spent(Mode::Refusing)?, &known),
    ])
}

fn of(kind: &'static str, contender: &dyn Contender, ids: &[u64]) -> Counted {
    let start = Start::of(1);
    let (_, tally) = tally(|| contender.shared(ids, &start));
    Counted { kind, decisions: ids.len(), allocations: tally.allocations }
}
