//! What single keys have used.

use axum::extract::State;
use axum::http::StatusCode;
use serde_json::{Value, json};
use tidegate_core::Usage;
use tidegate_policy::policy::{Limit, Rule};
use tidegate_policy::record::{cost_json, millis_json};
use tidegate_policy::{escaped, is_hidden};

use super::answer::{Json, Refusal};
use super::input::InPath;
use super::rules::{kind, known};
use super::serve::Shared;
use super::station::Station;

/// `GET /api/v1/counters/{rule}/{key}`
pub(super) async fn get(
    State(shared): State<Shared>,
    InPath((rule, key)): InPath<(String, String)>,
) -> Result<Json, Refusal> {
    let (rule, usage) = found(&*shared.station, &rule, &key)?;
    Ok(Json::ok(usage_json(&rule, &key, usage)))
}

/// `DELETE /api/v1/counters/{rule}/{key}`: the key begins anew.
pub(super) async fn delete(
    State(shared): State<Shared>,
    InPath((rule, key)): InPath<(String, String)>,
) -> Result<Json, Refusal> {
    let station = &*shared.station;
    let (rule, _) = found(station, &rule, &key)?;
    if !station.gate().reset_counter(&rule.name, &key, station.now()) {
        let detail = match rule.limit {
            Limit::Concurrency(_) | Limit::Reserve(_) => {
                "places in flight come back by themselves and cannot be forgotten"
            }
            Limit::Rate(_) | Limit::Shed(_) => "the rule has changed meanwhile",
        };
        return Err(Refusal::new(StatusCode::CONFLICT, detail));
    }
    let (rule, usage) = found(station, &rule.name, &key)?;
    Ok(Json::ok(usage_json(&rule, &key, usage)))
}

fn found(station: &dyn Station, name: &str, key: &str) -> Result<(std::sync::Arc<Rule>, Usage), Refusal> {
    known(station, name)?;
    if let Some(hidden) = key.chars().find(|character| is_hidden(*character)) {
        let shown = escaped(hidden.encode_utf8(&mut [0; 4])).into_owned();
        return Err(Refusal::bad(format!(
            "the key has the character `{shown}`, which is not seen as itself"
        )));
    }
    let policy = station.gate().policy();
    let rule = policy.rules.iter().find(|rule| rule.name == name);
    if let Some(Limit::Shed(_)) = rule.map(|rule| &rule.limit) {
        let detail = format!("rule `{name}` is of kind shed and counts nothing; see /api/v1/signals");
        return Err(Refusal::new(StatusCode::CONFLICT, detail));
    }
    let usage = station.gate().counter(name, key, station.now());
    rule.cloned().zip(usage).ok_or_else(|| {
        let sources = rule.map_or(&[][..], |rule| &rule.key.0);
        let parts: Vec<String> = sources.iter().map(ToString::to_string).collect();
        Refusal::bad(format!(
            "the key of rule `{name}` has {} parts, `{}`; write them with `|` between",
            parts.len(),
            parts.join("|")
        ))
    })
}

fn usage_json(rule: &Rule, key: &str, usage: Usage) -> Value {
    json!({
        "v": 1,
        "rule": rule.name,
        "key": key,
        "kind": kind(rule),
        "limit": cost_json(usage.limit),
        "used": cost_json(usage.used),
        "remaining": cost_json(usage.remaining),
        "reset_ms": millis_json(usage.reset),
    })
}
