//! What single keys have used.

use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use serde_json::{Value, json};
use tidegate_core::Usage;
use tidegate_policy::gate::{CallerName, CounterName};
use tidegate_policy::policy::{Limit, Rule};
use tidegate_policy::record::{cost_json, millis_json};
use tidegate_policy::{escaped, is_hidden};

use super::answer::{Json, Refusal};
use super::guard::By;
use super::input::{InPath, Query};
use super::orders::fingerprint;
use super::rules::{kind, known};
use super::serve::Shared;
use super::station::Station;

/// `GET /api/v1/counters/{rule}/{key}`
pub(super) async fn get(
    State(shared): State<Shared>,
    InPath((rule, key)): InPath<(String, String)>,
    RawQuery(query): RawQuery,
) -> Result<Json, Refusal> {
    let is_print = by_fingerprint(query.as_deref())?;
    let (rule, usage) = found(&*shared.station, &rule, (&key, is_print))?;
    Ok(Json::ok(usage_json(&rule, &key, usage)))
}

/// `DELETE /api/v1/counters/{rule}/{key}`: the key begins anew.
pub(super) async fn delete(
    State(shared): State<Shared>,
    InPath((rule, key)): InPath<(String, String)>,
    RawQuery(query): RawQuery,
    by: By,
) -> Result<Json, Refusal> {
    let is_print = by_fingerprint(query.as_deref())?;
    let station = &*shared.station;
    let (rule, before) = found(station, &rule, (&key, is_print))?;
    let named =
        if is_print { CounterName::Fingerprint(fingerprint(&key)?) } else { CounterName::Written(&key) };
    if !station.gate().reset_counter(&rule.name, named, station.now()) {
        let detail = match rule.limit {
            Limit::Concurrency(_) | Limit::Reserve(_) => {
                "places in flight come back by themselves and cannot be forgotten"
            }
            Limit::Rate(_) | Limit::Shed(_) => "the rule has changed meanwhile",
        };
        return Err(Refusal::new(StatusCode::CONFLICT, detail));
    }
    let (rule, usage) = found(station, &rule.name, (&key, is_print))?;
    let shown = if is_print { key.clone() } else { station.gate().shown(&CallerName::Identity(key.clone())) };
    let what = format!("counter of {shown} by rule {}", rule.name);
    by.changed(station, what, format!("{} used", before.used), format!("{} used", usage.used), None);
    Ok(Json::ok(usage_json(&rule, &key, usage)))
}

fn by_fingerprint(query: Option<&str>) -> Result<bool, Refusal> {
    match Query::read(query, &["by"])?.given("by") {
        None | Some("key") => Ok(false),
        Some("fingerprint") => Ok(true),
        Some(other) => Err(Refusal::bad(format!("`by` is `{other}`, but must be `key` or `fingerprint`"))),
    }
}

fn found(
    station: &dyn Station,
    name: &str,
    (key, is_print): (&str, bool),
) -> Result<(std::sync::Arc<Rule>, Usage), Refusal> {
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
    let named =
        if is_print { CounterName::Fingerprint(fingerprint(key)?) } else { CounterName::Written(key) };
    let usage = station.gate().counter(name, named, station.now());
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
