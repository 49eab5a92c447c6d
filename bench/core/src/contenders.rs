//! Everybody who takes part, each in a file of its own.

use std::error::Error;
use std::time::Duration;

use crate::contender::{Contender, Mode};

pub(crate) mod bare_count;
pub(crate) mod clock;
pub(crate) mod failsafe;
pub(crate) mod governed;
pub(crate) mod limitador;
pub(crate) mod ours;
pub(crate) mod pingora;
pub(crate) mod recloser;
pub(crate) mod throttlecrab;
pub(crate) mod tower_resilience;

/// How long a breaker stays open that was opened for a run: longer than any run.
const HOUR: Duration = Duration::from_secs(3_600);

/// All keyed contenders with the keys `0..keys` in place; the first is ours.
pub(crate) fn keyed(keys: usize, mode: Mode) -> Result<Vec<Box<dyn Contender>>, Box<dyn Error>> {
    Ok(vec![
        Box::new(ours::Keyed::filled(keys, mode)?),
        Box::new(ours::Untouched(ours::Keyed::filled(keys, mode)?)),
        Box::new(ours::Told(ours::Keyed::filled(keys, mode)?)),
        Box::new(clock::Quanta::default()),
        Box::new(governed::AsShipped::filled(keys, mode)?),
        Box::new(governed::SameHasher::filled(keys, mode)?),
        Box::new(throttlecrab::Throttlecrab::filled(keys, mode)?),
        Box::new(limitador::Limitador::filled(keys, mode)?),
        Box::new(pingora::Estimator::filled(keys, mode)),
    ])
}

/// All contenders with a single counter and no key; the first is ours.
pub(crate) fn unkeyed(mode: Mode) -> Result<Vec<Box<dyn Contender>>, Box<dyn Error>> {
    Ok(vec![
        Box::new(ours::Unkeyed::spent(mode)?),
        Box::new(clock::Quanta::default()),
        Box::new(governed::Direct::spent(mode)?),
    ])
}
