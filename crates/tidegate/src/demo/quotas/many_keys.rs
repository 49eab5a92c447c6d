//! Strangers who invent keys, and a table that does not grow.

use std::io::Write;
use std::time::Duration;

use tidegate_core::keyed::{DueTable, MaxKeys};
use tidegate_core::rate::TokenBucket;
use tidegate_core::{Cost, Quota};

use super::{Problem, SEED, at, heading};

const STRANGERS: u32 = 1_000_000;
/// A hundred thousand strangers come in a second.
const SPACING: Duration = Duration::from_micros(10);
/// Alice comes among them, five times a second.
const ALICE_EVERY: u32 = 20_000;

pub(super) fn write(page: &mut dyn Write) -> Result<(), Problem> {
    heading(page, "7  A million invented keys in ten seconds", "10/s for each key, bounded tables")?;
    writeln!(
        page,
        "   {:<16}{:>12}{:>26}{:>20}",
        "max_keys", "memory", "strangers in overflow", "alice admitted"
    )?;
    for max_keys in [2_000, 20_000] {
        let table = DueTable::new(MaxKeys::new(max_keys)?, SEED);
        let rule = table.enrol(&TokenBucket::new(Quota::per_second(Cost::of(10))?))?;
        let alice = table.key("alice");
        let (mut sent, mut admitted) = (0, 0);
        for stranger in 0..STRANGERS {
            let now = at(SPACING * stranger);
            // What a stranger is told does not matter here, only what it does to the others.
            let _ = table.decide(&rule, table.key(&stranger), now, Cost::ONE);
            if stranger % ALICE_EVERY == 0 {
                sent += 1;
                admitted += u64::from(table.decide(&rule, alice, now, Cost::ONE).is_admit());
            }
        }
        let overflow = share(table.overflowed(), u64::from(STRANGERS));
        let memory = format!("{} kB", table.bytes() / 1_000);
        let alice = share(admitted, sent);
        writeln!(page, "   {max_keys:<16}{memory:>12}{overflow:>26}{alice:>20}")?;
    }
    writeln!(
        page,
        "   A slot is reused once its key could not tell the difference. So a table needs room for the keys"
    )?;
    writeln!(
        page,
        "   active at once, here about 10 000; with too little room newcomers share one counter."
    )?;
    Ok(())
}

/// A share in tens of per cent: which keys meet in a full table is for their hashes to say, and a finer
/// figure would tell of those.
fn share(part: u64, whole: u64) -> String {
    let tens = (part * 10 + whole / 2) / whole;
    let about = if part == 0 || part == whole { "" } else { "about " };
    format!("{about}{} %", tens * 10)
}
