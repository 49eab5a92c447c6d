//! Every play, for programs.

use serde_json::{Map, Value, json};

use crate::figures::LEVELS;
use crate::plan::Measured;
use crate::play::{Discarded, Play};

/// The version of the shape.
const FORMAT: &str = "tidegate.overload/1";

/// All plays in the order in which they were played. What is not a number, or never happened, is null.
pub(crate) fn render(measured: &Measured, circumstances: &str) -> String {
    let versions: Map<String, Value> =
        measured.versions.iter().map(|(name, version)| ((*name).to_owned(), json!(version))).collect();
    let whole = json!({
        "format": FORMAT,
        "circumstances": circumstances,
        "versions": versions,
        "cores_of_others": measured.others,
        "plays": measured.rounds.plays.iter().map(play).collect::<Vec<_>>(),
    });
    format!("{whole:#}\n")
}

fn play(play: &Play) -> Value {
    let figures = &play.figures;
    let levels: Map<String, Value> =
        LEVELS.iter().zip(figures.levels).map(|(level, share)| ((*level).to_owned(), json!(share))).collect();
    let findings: Vec<Value> = (play.findings.iter())
        .map(|finding| json!({ "what": finding.what, "value": finding.value, "bar": bar(finding) }))
        .collect();
    let repeated: Vec<Value> = (play.repeated.iter())
        .map(|Discarded { missed, why }| json!({ "missed": missed, "why": why }))
        .collect();
    json!({
        "scenario": play.scenario,
        "behind": play.behind,
        "seed": play.seed,
        "goodput": figures.goodput,
        "critical_and_above": figures.critical,
        "levels": levels,
        "p99_ratio": figures.p99,
        "recovery_seconds": figures.recovery,
        "micros_forwarded": figures.cost.forwarded,
        "micros_refused": figures.cost.refused,
        "unsent": figures.unsent,
        "disturbance": play.disturbance,
        "repeated": repeated,
        "findings": findings,
    })
}

fn bar(finding: &tidegate_scenario::Finding) -> Option<String> {
    finding.expected.map(|bound| bound.to_string())
}
