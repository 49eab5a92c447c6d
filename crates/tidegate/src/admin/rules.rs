//! The rules, and the switch of each.

use axum::body::Body;
use axum::extract::State;
use serde_json::{Value, json};
use tidegate_core::Criticality;
use tidegate_policy::gate::RuleStatistics;
use tidegate_policy::policy::{Capacity, Limit, Mode, Reserve, Rule, Shed};
use tidegate_policy::record::cost_json;

use super::answer::{Json, Refusal, time_of, wall_of};
use super::guard::By;
use super::input::{Fields, InPath, either, listed};
use super::serve::Shared;
use super::station::Station;

/// `GET /api/v1/rules`
pub(super) async fn get(State(shared): State<Shared>) -> Result<Json, Refusal> {
    let rules = shared.aside(|shared| all(&*shared.station)).await?;
    Ok(Json::ok(json!({ "v": 1, "rules": rules })))
}

/// `PATCH /api/v1/rules/{name}`: `{"mode": "shadow", "ttl": "10min"}`, or `{"mode": null}` to go by the policy again.
pub(super) async fn patch(
    State(shared): State<Shared>,
    InPath(name): InPath<String>,
    by: By,
    body: Body,
) -> Result<Json, Refusal> {
    let fields = Fields::read(body, &["mode", "ttl"]).await?;
    let ttl = fields.length("ttl")?;
    let words = Mode::ALL.map(Mode::as_str);
    let mode = match fields.given("mode") {
        None => {
            let detail =
                format!("`mode` is missing; it must be {}, or null to go by the policy", either(&words));
            return Err(Refusal::bad(detail));
        }
        Some(Value::Null) if ttl.is_some() => {
            return Err(Refusal::bad("`ttl` does nothing without a mode; remove it"));
        }
        Some(Value::Null) => None,
        Some(given) => {
            let mode = Mode::ALL.into_iter().find(|mode| given.as_str() == Some(mode.as_str()));
            let detail = || format!("`mode` is {given}, but must be {}, or null", either(&words));
            Some(mode.ok_or_else(|| Refusal::bad(detail()))?)
        }
    };
    let switched = shared.aside(move |shared| {
        let (station, now) = (&*shared.station, shared.station.now());
        known(station, &name)?;
        let until = ttl.map(|ttl| now.moment.plus(ttl));
        let mode_now =
            || station.gate().mode(&name, now).map_or("none", |(mode, _)| mode.as_str()).to_owned();
        let was = mode_now();
        let switched = match mode {
            Some(mode) => station.gate().set_mode(&name, mode, now, until),
            None => station.gate().clear_mode(&name),
        };
        switched.map_err(|problem| Refusal::missing(problem.to_string()))?;
        let until = until.map(|until| wall_of(until, now));
        by.changed(station, format!("mode of rule {name}"), was, mode_now(), until);
        let found = all(station).into_iter().find(|rule| rule["rule"] == name.as_str());
        found.ok_or_else(|| Refusal::missing(format!("rule `{name}` has gone meanwhile")))
    });
    Ok(Json::ok(switched.await??))
}

/// That there is such a rule.
pub(super) fn known(station: &dyn Station, name: &str) -> Result<(), Refusal> {
    let policy = station.gate().policy();
    let names: Vec<&str> = policy.rules.iter().map(|rule| rule.name.as_str()).collect();
    if names.contains(&name) {
        return Ok(());
    }
    Err(Refusal::missing(format!("there is no rule `{name}`; the rules are {}", listed(&names))))
}

/// A limit as it is written in policies.
pub(super) fn limit_json(limit: &Limit) -> Value {
    match limit {
        Limit::Rate(rate) => json!({ "quota": rate.written, "most": cost_json(rate.most()) }),
        Limit::Concurrency(limit) => json!({ "limit": limit }),
        Limit::Reserve(reserve) => reserve_json(reserve),
        Limit::Shed(shed) => shed_json(shed),
    }
}

fn reserve_json(reserve: &Reserve) -> Value {
    let capacity = match &reserve.capacity {
        Capacity::Places(places) => json!(places),
        Capacity::Upstream(name) => json!(format!("upstream:{name}")),
    };
    json!({ "capacity": capacity, "reserve": { reserve.level.as_str(): reserve.kept.value() } })
}

fn shed_json(shed: &Shed) -> Value {
    let targets = shed.targets.iter().map(|(signal, target)| (signal.to_string(), json!(target)));
    json!({
        "target": targets.collect::<serde_json::Map<String, Value>>(),
        "order": shed.order.iter().map(|level| level.as_str()).collect::<Vec<_>>(),
        "ramp_seconds": shed.ramp.as_secs_f64(),
    })
}

fn all(station: &dyn Station) -> Vec<Value> {
    let (gate, now) = (station.gate(), station.now());
    let policy = gate.policy();
    let statistics = gate.statistics(now).rules;
    // Another policy may have come between the two: then what has gone is left out.
    let pairs = policy
        .rules
        .iter()
        .filter_map(|rule| Some((rule, statistics.iter().find(|counted| counted.rule == rule.name)?)));
    let rules = pairs.map(|(rule, counted)| {
        let until = gate.mode(&rule.name, now).and_then(|(_, until)| until);
        let mut written = one(rule, counted);
        written["switched"] = (counted.mode != rule.mode || until.is_some()).into();
        written["until"] = until.map_or(Value::Null, |until| time_of(until, now));
        written
    });
    rules.collect()
}

fn one(rule: &Rule, counted: &RuleStatistics) -> Value {
    let by_criticality = Criticality::ALL.iter().zip(counted.refused_by_criticality);
    let by_criticality: serde_json::Map<String, Value> =
        by_criticality.map(|(level, count)| (level.as_str().to_owned(), count.into())).collect();
    json!({
        "rule": rule.name,
        "line": rule.line.0,
        "kind": kind(rule),
        "key": rule.key.0.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "limit": limit_json(&rule.limit),
        "mode": counted.mode.as_str(),
        "written_mode": rule.mode.as_str(),
        "admitted": counted.admitted,
        "refused": counted.refused,
        "refused_by_criticality": by_criticality,
        "shadow_refused": counted.shadow_refused,
        "keys": counted.keys,
        "overflowed": counted.overflowed,
        "bytes": counted.bytes,
    })
}

pub(super) const fn kind(rule: &Rule) -> &'static str {
    match rule.limit {
        Limit::Rate(_) => "rate",
        Limit::Concurrency(_) => "concurrency",
        Limit::Reserve(_) => "reserve",
        Limit::Shed(_) => "shed",
    }
}
