//! Each scenario is played: in every change, or in `cargo xtask endurance`.

use std::fs;
use std::path::Path;

use tidegate_scenario::{Pace, Scenario};

const SHORT: [&str; 2] = [include_str!("short/naive.rs"), include_str!("short/protected.rs")];
const LONG: [&str; 2] = [include_str!("long/naive.rs"), include_str!("long/protected.rs")];

/// How many `cargo xtask test` plays; it has four minutes for them.
const PLAYED_BY_EVERY_CHANGE: usize = 5;

/// Scenarios whose naive variant is a limit that only the model has, or whose failure is the gateway's own.
const NEVER_NAIVE: [&str; 4] = ["m6_ratchet", "m7_slow_dependency", "o4_cheap_upstream", "o7_two_costs"];

/// The names of the files that are played over sockets.
fn files() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let is_real = |path: &Path| {
        let name = path.file_name().unwrap().to_string_lossy();
        let scenario = Scenario::read(&name, &fs::read_to_string(path).unwrap());
        scenario.unwrap_or_else(|problems| panic!("{problems}")).runs.contains(&Pace::Real)
    };
    let real = names.filter(|path| is_real(path));
    real.map(|path| path.file_stem().unwrap().to_string_lossy().into_owned()).collect()
}

/// How many tests play `file` so in `sources`.
fn plays(sources: [&str; 2], variant: &str, file: &str) -> usize {
    sources.iter().map(|source| source.matches(&format!("{variant}(\"{file}\")")).count()).sum()
}

#[test]
fn each_scenario_is_played_once_in_each_variant() {
    for file in files() {
        let played = |variant| plays(SHORT, variant, &file) + plays(LONG, variant, &file);
        let naive = usize::from(!NEVER_NAIVE.contains(&file.as_str()));
        assert_eq!((played("naive"), played("protected")), (naive, 1), "{file}");
    }
}

#[test]
fn five_scenarios_are_played_by_every_change_in_both_variants() {
    let files = files();
    let short = |variant| files.iter().filter(|file| plays(SHORT, variant, file) > 0).collect::<Vec<_>>();
    assert_eq!(short("naive"), short("protected"));
    assert_eq!(short("protected").len(), PLAYED_BY_EVERY_CHANGE);
}
