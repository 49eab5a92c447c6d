//! The signals: their readings, and those that are told here.

use axum::body::Body;
use axum::extract::State;
use axum::http::StatusCode;
use serde_json::{Value, json};
use tidegate_policy::policy::{Limit, Policy, SignalFrom, SignalName, SignalUnit};

use super::answer::{Json, Refusal, ratio};
use super::input::{Fields, InPath, listed};
use super::serve::Shared;
use super::station::SignalStatus;

/// `GET /api/v1/signals`
pub(super) async fn get(State(shared): State<Shared>) -> Result<Json, Refusal> {
    let signals = shared.aside(|shared| {
        let policy = shared.station.gate().policy();
        let signals = shared.station.signals();
        signals.iter().map(|signal| signal_json(signal, &policy)).collect::<Vec<_>>()
    });
    Ok(Json::ok(json!({ "v": 1, "signals": signals.await? })))
}

/// `PUT /api/v1/signals/{name}`: `{"value": 0.7}`.
pub(super) async fn put(
    State(shared): State<Shared>,
    InPath(name): InPath<String>,
    body: Body,
) -> Result<Json, Refusal> {
    let fields = Fields::read(body, &["value"]).await?;
    let value = match fields.given("value") {
        None => Err(Refusal::bad("`value` is missing; it must be a number such as 0.7")),
        Some(given) => given
            .as_f64()
            .ok_or_else(|| Refusal::bad(format!("`value` is {given}, but must be a number such as 0.7"))),
    }?;
    is_told_here(&shared.station.gate().policy(), &name)?;
    let told = shared.station.tell(&name, value);
    told.map_err(|gone| Refusal::missing(format!("signal `{name}`: {gone}")))?;
    Ok(Json::ok(json!({ "v": 1, "signal": name, "told": value })))
}

/// That there is such a signal, and that its readings come from here.
fn is_told_here(policy: &Policy, name: &str) -> Result<(), Refusal> {
    let only = "only signals with `from = \"api\"` can be told";
    match policy.signals.iter().find(|signal| *signal.name == *name).map(|signal| &signal.from) {
        Some(SignalFrom::Api) => Ok(()),
        Some(SignalFrom::ResponseHeader(field)) => {
            let detail = format!("signal `{name}` comes from the response field `{field}`; {only}");
            Err(Refusal::new(StatusCode::CONFLICT, detail))
        }
        None if SignalName::KNOWN.iter().any(|known| known.as_str() == name) => {
            let detail = format!("signal `{name}` is measured by the gateway itself; {only}");
            Err(Refusal::new(StatusCode::CONFLICT, detail))
        }
        None => {
            let told = policy.signals.iter().filter(|signal| signal.from == SignalFrom::Api);
            let names: Vec<&str> = told.map(|signal| &*signal.name).collect();
            let detail =
                format!("there is no signal `{name}`; those that can be told are {}", listed(&names));
            Err(Refusal::missing(detail))
        }
    }
}

fn signal_json(signal: &SignalStatus, policy: &Policy) -> Value {
    let own = policy.signals.iter().find(|own| *own.name == *signal.name);
    let from = match own.map(|own| &own.from) {
        None => "gateway".to_owned(),
        Some(SignalFrom::Api) => "api".to_owned(),
        Some(SignalFrom::ResponseHeader(field)) => format!("response_header:{field}"),
    };
    json!({
        "signal": signal.name,
        "from": from,
        "unit": unit_word(&signal.name),
        "value": signal.value.map(precise),
        "targets": targets(signal, policy),
    })
}

/// What the rules want it to stay below.
fn targets(signal: &SignalStatus, policy: &Policy) -> Vec<Value> {
    let mut targets = Vec::new();
    for rule in &policy.rules {
        let Limit::Shed(shed) = &rule.limit else { continue };
        let of_this = shed.targets.iter().find(|(known, _)| known.as_str() == signal.name);
        targets.extend(of_this.map(|(_, target)| {
            json!({
                "rule": rule.name,
                "target": precise(*target),
                "is_above": signal.value.is_some_and(|value| value > *target),
            })
        }));
    }
    targets
}

/// What its readings are.
pub(super) fn unit(name: &str) -> SignalUnit {
    let known = SignalName::KNOWN.iter().find(|known| known.as_str() == name);
    known.map_or(SignalUnit::Number, SignalName::unit)
}

/// The same as one word: `share` from 0 to 1, `seconds`, or a `number` whose meaning the policy knows.
pub(super) fn unit_word(name: &str) -> &'static str {
    match unit(name) {
        SignalUnit::Share => "share",
        SignalUnit::Time => "seconds",
        SignalUnit::Number => "number",
    }
}

/// To the microsecond and the millionth.
pub(super) fn precise(value: f64) -> Value {
    if value.abs() < 1_000.0 { json!((value * 1e6).round() / 1e6) } else { ratio(value) }
}
