//! A file, played and judged.
//!
//! A play that a neighbour slowed down and that misses something is no [evidence](tidegate_load::drill::Outcome::disturbance),
//! so it is played again, as long as the patience for all scenarios lasts. What misses something on a machine that was left
//! alone fails at once.

use std::fs;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tidegate_load::awake::Awake;
use tidegate_load::drill::{Drill, Outcome};
use tidegate_load::machine::Stretch;
use tidegate_scenario::{Pace, Scenario, Variant};

use crate::gateway::support::Gateway;
use crate::operated::Operated;
use crate::probe::Watch;
use crate::vitals;

/// How much time may go by in plays that prove nothing, over all scenarios.
const PATIENCE: Duration = Duration::from_secs(35 * 60);

/// Connections of callers, and as many of the service, which is in the same process.
const FILES: u64 = 16_000;

/// Straight to the service.
#[track_caller]
pub fn naive(file: &str) {
    played(Variant::Naive, || {
        let drill = prepare(file);
        let service = drill.service();
        drill.run(service, None).unwrap()
    });
}

/// To a gateway before it.
#[track_caller]
pub fn protected(file: &str) {
    played(Variant::Protected, || {
        let drill = prepare(file);
        let gateway = Operated::of(Gateway::start(&drill.policy().expect("a policy")));
        let target = gateway.gateway.address();
        drill.run(target, Some(Box::new(Watch::of(&gateway)))).unwrap()
    });
}

#[track_caller]
fn played(variant: Variant, play: impl Fn() -> Outcome) {
    let mut patience = alone();
    let _awake = Awake::keep().unwrap();
    loop {
        let stretch = Stretch::begin().unwrap();
        let outcome = play();
        let disturbed = outcome.disturbance(stretch.stolen().unwrap());
        // Shown where somebody asks for it, and where something fails.
        eprintln!("{variant:?}, seed {} {}", seed(), outcome.table(variant));
        let missed = outcome.missed(variant);
        if missed.is_empty() {
            return;
        }
        let missed = missed.join("\n");
        let Some(why) = disturbed else { panic!("{missed}") };
        let Some(left) = patience.checked_sub(stretch.length()) else {
            panic!("{missed}\n{why}, as in the plays before")
        };
        *patience = left;
        eprintln!("played again: {why}");
    }
}

/// One at a time, with the patience that is left: they measure what the machine can do.
fn alone() -> MutexGuard<'static, Duration> {
    static ALONE: Mutex<Duration> = Mutex::new(PATIENCE);
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
