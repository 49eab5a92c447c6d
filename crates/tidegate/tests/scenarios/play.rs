//! A file, played and judged.
//!
//! A play that misses something while a hypervisor gave time to others is no [evidence](tidegate_load::drill::Outcome::disturbance),
//! so it is played again: a few times, since a fault that shows now and then would otherwise be played until it does not, and as
//! long as the patience for all scenarios lasts. Each such play says so even if the test passes. What misses something on a
//! machine that was left alone fails at once; a generator that fell behind is no excuse, as the gateway can be the reason.

use std::fs;
use std::io::{self, Write as _};
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

/// How often one scenario may be played again. Where five plays miss something, thieves are not the likely reason.
const MOST_AGAIN: u32 = 4;

/// Connections of callers, and as many of the service, which is in the same process.
const FILES: u64 = 16_000;

/// Straight to the service.
#[track_caller]
pub fn naive(file: &str) {
    let seed = seed();
    played(Variant::Naive, seed, || {
        let drill = prepare(file, seed);
        let service = drill.service();
        drill.run(service, None).unwrap()
    });
}

/// To a gateway before it.
#[track_caller]
pub fn protected(file: &str) {
    protected_with(file, seed());
}

/// To a gateway before it, twice, with requests that come at other moments: what chance decides fails in one of them.
#[track_caller]
pub fn protected_twice_more(file: &str) {
    (1..=2).for_each(|more| protected_with(file, seed() + more));
}

#[track_caller]
fn protected_with(file: &str, seed: u64) {
    played(Variant::Protected, seed, || {
        let drill = prepare(file, seed);
        let gateway = Operated::of(Gateway::start(&drill.policy().expect("a policy")));
        let target = gateway.gateway.address();
        drill.run(target, Some(Box::new(Watch::of(&gateway)))).unwrap()
    });
}

#[track_caller]
fn played(variant: Variant, seed: u64, play: impl Fn() -> Outcome) {
    let mut patience = alone();
    let _awake = Awake::keep().unwrap();
    let mut again = 0;
    loop {
        let stretch = Stretch::begin().unwrap();
        let outcome = play();
        let disturbed = outcome.disturbance(stretch.stolen().unwrap());
        // Shown where somebody asks for it, and where something fails.
        eprintln!("{variant:?}, seed {seed} {}", outcome.table(variant));
        let missed = outcome.missed(variant);
        if missed.is_empty() {
            return;
        }
        let missed = missed.join("; ");
        let Some(why) = disturbed else { panic!("{missed}") };
        let left = patience.checked_sub(stretch.length()).filter(|_| again < MOST_AGAIN);
        let Some(left) = left else { panic!("{missed}\n{why}, and it was played again {again} times") };
        *patience = left;
        again += 1;
        // Not with a macro, whose words are swallowed when the test passes: then nobody would see what it missed before.
        let id = &outcome.scenario.id;
        let line = format!("played again: {id}, {variant:?}: {why}; it missed: {missed}\n");
        io::stderr().write_all(line.as_bytes()).unwrap();
    }
}

/// One at a time, with the patience that is left: they measure what the machine can do.
fn alone() -> MutexGuard<'static, Duration> {
    static ALONE: Mutex<Duration> = Mutex::new(PATIENCE);
    // A scenario that failed does not keep the next from being played.
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn prepare(file: &str, seed: u64) -> Drill {
    vitals::need_files(FILES);
    let name = format!("{file}.toml");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios").join(&name);
    let scenario = Scenario::read(&name, &fs::read_to_string(path).unwrap());
    let scenario = scenario.unwrap_or_else(|problems| panic!("{problems}"));
    assert!(scenario.runs.contains(&Pace::Real), "{name} is not for real sockets");
    Drill::prepare_with(scenario, seed).unwrap()
}

/// What `SCENARIO_SEED` says, so that a run in a row of many is not always the same one.
fn seed() -> u64 {
    let Ok(seed) = std::env::var("SCENARIO_SEED") else { return 0 };
    seed.parse().unwrap_or_else(|_| panic!("SCENARIO_SEED is a whole number, not {seed:?}"))
}
