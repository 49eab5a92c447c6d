//! A file, played and judged.

use std::fs;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tidegate_load::drill::{Drill, Outcome};
use tidegate_scenario::{Pace, Scenario, Variant};

use crate::gateway::support::Gateway;
use crate::operated::Operated;
use crate::probe::Watch;
use crate::vitals;

/// The most requests that the generator may fail to send before its figures mean nothing.
const MOST_UNSENT: f64 = 0.001;

/// Connections of callers, and as many of the service, which is in the same process.
const FILES: u64 = 10_000;

/// Straight to the service.
#[track_caller]
pub fn naive(file: &str) {
    let _alone = alone();
    let drill = prepare(file);
    let service = drill.service();
    judge(&drill.run(service, None).unwrap(), Variant::Naive);
}

/// To a gateway before it.
#[track_caller]
pub fn protected(file: &str) {
    let _alone = alone();
    let drill = prepare(file);
    let gateway = Operated::of(Gateway::start(&drill.policy().expect("a policy")));
    let target = gateway.gateway.address();
    let outcome = drill.run(target, Some(Box::new(Watch::of(&gateway)))).unwrap();
    judge(&outcome, Variant::Protected);
}

/// One at a time: they measure what the machine can do.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    // A scenario that failed does not keep the next from being played.
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn prepare(file: &str) -> Drill {
    vitals::need_files(FILES);
    let name = format!("{file}.toml");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios").join(&name);
    let scenario = Scenario::read(&name, &fs::read_to_string(path).unwrap());
    let scenario = scenario.unwrap_or_else(|problems| panic!("{problems}"));
    assert!(scenario.runs.contains(&Pace::Real), "{name} is not for real sockets");
    Drill::prepare_with(scenario, seed()).unwrap()
}

/// What `SCENARIO_SEED` says, so that a run in a row of many is not always the same one.
fn seed() -> u64 {
    let Ok(seed) = std::env::var("SCENARIO_SEED") else { return 0 };
    seed.parse().unwrap_or_else(|_| panic!("SCENARIO_SEED is a whole number, not {seed:?}"))
}

#[track_caller]
fn judge(outcome: &Outcome, variant: Variant) {
    let table = outcome.table(variant);
    // Shown where somebody asks for it, and where something fails.
    eprintln!("{variant:?}, seed {} {table}", seed());
    let failed: Vec<String> = (outcome.findings(variant).iter())
        .filter(|finding| !finding.holds())
        .map(ToString::to_string)
        .collect();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    if variant == Variant::Protected {
        assert!(outcome.unsent() <= MOST_UNSENT, "the generator could not keep up:\n{table}");
    }
}
