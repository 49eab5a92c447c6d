//! What quotas do, shown on one page.
//!
//! The demonstration is a driver like any other: it owns the time, and tells it. Here the time is made up,
//! so ten seconds of traffic take no time at all and every run writes the same page. Only
//! [`write_measured`] reads the machine's clock.

mod compared;
mod greedy;
mod heaviest;
mod many_keys;
mod measured;
mod settling;
mod shaping;
mod steady;
mod together;

use std::io::{self, Write};
use std::time::Duration;

use tidegate_core::Moment;

use crate::Problem;

/// Any number will do, since every run shall be the same; a driver draws it, so that no stranger can choose
/// keys that collide.
const SEED: u64 = 0x5EED;

/// Writes the page; the same bytes every time.
///
/// # Errors
/// When the page cannot be written.
pub fn write(page: &mut dyn Write) -> Result<(), Problem> {
    writeln!(page, "Tidegate: what quotas do. Time is virtual, nothing sleeps, every run prints the same.")?;
    steady::write(page)?;
    compared::write(page)?;
    shaping::write(page)?;
    greedy::write(page)?;
    settling::write(page)?;
    together::write(page)?;
    many_keys::write(page)?;
    heaviest::write(page)?;
    Ok(())
}

/// Writes how long a decision takes on this machine; different every time.
///
/// # Errors
/// When the page cannot be written.
pub fn write_measured(page: &mut dyn Write) -> Result<(), Problem> {
    measured::write(page)
}

/// The heading of a part: what happens on the left, under which rule on the right.
fn heading(page: &mut dyn Write, what: &str, rule: &str) -> io::Result<()> {
    writeln!(page, "\n{what:<58}{rule:>38}")
}

/// The moment this long after the demonstration began.
fn at(elapsed: Duration) -> Moment {
    Moment::ORIGIN.plus(elapsed)
}

/// A number that looks random and is the same in every run (the finish of SplitMix64).
fn scatter(number: u64) -> u32 {
    let mixed = (number ^ (number >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    (mixed >> 33) as u32
}
