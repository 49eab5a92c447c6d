//! Bytes a key: what lives on the heap once exactly so many keys are in place.

use std::error::Error;

use crate::contender::Mode;
use crate::contenders::{governed, limitador, ours, throttlecrab};
use crate::counting::tally;

/// One contender's bytes a key at one number of keys.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Held {
    pub(crate) name: &'static str,
    pub(crate) keys: usize,
    pub(crate) bytes_per_key: f64,
}

/// A million keys for everybody.
pub(crate) const MILLION: usize = 1_000_000;

/// Ten million for those whose million took less than a gigabyte.
pub(crate) const TEN_MILLION: usize = 10 * MILLION;

/// Measures everybody, one after the other.
pub(crate) fn measure(is_quick: bool) -> Result<Vec<Held>, Box<dyn Error>> {
    let mode = Mode::Refusing;
    let mut held = Vec::new();
    let counts: &[usize] = if is_quick { &[MILLION] } else { &[MILLION, TEN_MILLION] };
    for &keys in counts {
        held.push(of(ours::NAME, keys, || ours::Keyed::filled(keys, mode))?);
        held.push(of("governor as shipped", keys, || governed::AsShipped::filled(keys, mode))?);
        held.push(of("throttlecrab", keys, || throttlecrab::Throttlecrab::filled(keys, mode))?);
    }
    if !is_quick {
        held.push(of("limitador", MILLION, || limitador::Limitador::filled(MILLION, mode))?);
    }
    Ok(held)
}

fn of<T>(
    name: &'static str,
    keys: usize,
    fill: impl FnOnce() -> Result<T, Box<dyn Error>>,
) -> Result<Held, Box<dyn Error>> {
    let (filled, tally) = tally(fill);
    drop(filled?);
    Ok(Held { name, keys, bytes_per_key: tally.live_bytes as f64 / keys as f64 })
}
