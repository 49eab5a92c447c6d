//! Every file in `scenarios/` is a scenario.

use std::fs;
use std::path::Path;

use tidegate_scenario::{Pace, Scenario};

#[test]
fn every_file_is_a_scenario_with_something_to_show() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let mut ids = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let scenario = Scenario::read(&name, &fs::read_to_string(&path).unwrap());
        let scenario = scenario.unwrap_or_else(|problems| panic!("{problems}"));
        assert!(
            name.starts_with(&format!("{}_", scenario.id.to_lowercase())),
            "{name} is called {}",
            scenario.id
        );
        assert!(!scenario.assertions.is_empty(), "{name}");
        if scenario.runs.contains(&Pace::Real) {
            assert!(scenario.policy.is_some(), "{name} has no policy");
            assert!(scenario.timeline.length(Pace::Real).as_secs() <= 40, "{name} takes too long");
        }
        ids.push(scenario.id);
    }
    let count = ids.len();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), count, "no name is used twice");
}
