//! How long a decision takes here and now.

use std::hint::black_box;
use std::io::Write;
use std::time::Instant;

use tidegate_core::keyed::{DueTable, MaxKeys};
use tidegate_core::rate::TokenBucket;
use tidegate_core::{Cost, Moment, Quota};

use super::{Problem, SEED};

const KEYS: u64 = 100_000;
/// Enough for a steady figure; an unoptimised build only shows that it runs.
const DECISIONS: u64 = if cfg!(debug_assertions) { 100_000 } else { 2_000_000 };

pub(super) fn write(page: &mut dyn Write) -> Result<(), Problem> {
    let table = DueTable::new(MaxKeys::new(100_000)?, SEED);
    let rule = table.enrol(&TokenBucket::new(Quota::per_second(Cost::of(10))?))?;
    let mut admitted = 0_u64;
    let begin = Instant::now();
    for number in 0..DECISIONS {
        // A large odd step visits the keys in an order that no cache foresees.
        let key = table.key(&(number.wrapping_mul(0x9E37_79B9) % KEYS));
        let now = Moment::from_nanos(number * 50);
        admitted += u64::from(table.decide(&rule, key, now, Cost::ONE).is_admit());
    }
    let took = begin.elapsed();
    black_box(admitted);
    let build = if cfg!(debug_assertions) { ", unoptimised build" } else { "" };
    writeln!(
        page,
        "\nMeasured here, now, and different every time: {} ns a decision\n   \
         (token bucket, {KEYS} keys, one thread, {DECISIONS} decisions in {took:.1?}{build}).",
        took.as_nanos() / u128::from(DECISIONS),
    )?;
    Ok(())
}
