//! How it goes: health, the picture of this moment, and the end.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde_json::{Value, json};
use tidegate_policy::record::{millis_json, time_text};

use super::answer::{Json, Refusal, by_level, ratio, rounded, written};
use super::guard::By;
use super::judgement::Situation;
use super::overload::Overload;
use super::pulse::Rates;
use super::serve::Shared;
use super::signals::{precise, unit_word};
use super::station::{
    Connections, Figures, LoadFailure, SignalStatus, Stage, Station, Unloaded, UpstreamStatus,
};

/// `GET /livez`: whether the process answers at all.
pub(super) async fn livez() -> Response {
    written(StatusCode::OK, "text/plain; charset=utf-8", "ok\n")
}

/// `GET /readyz`: whether it wants traffic.
pub(super) async fn readyz(State(shared): State<Shared>) -> Response {
    let stage = shared.station.stage();
    let status = match stage {
        Stage::Ready => StatusCode::OK,
        Stage::Starting | Stage::Draining => StatusCode::SERVICE_UNAVAILABLE,
    };
    written(status, "text/plain; charset=utf-8", format!("{}\n", stage.as_str()))
}

/// `GET /api/v1/status`
pub(super) async fn get(State(shared): State<Shared>) -> Result<Json, Refusal> {
    Ok(Json::ok(shared.aside(picture).await?))
}

/// `POST /api/v1/drain`
pub(super) async fn drain(State(shared): State<Shared>, by: By) -> Result<Json, Refusal> {
    let drained = shared.aside(move |shared| {
        let was = shared.station.stage().as_str().to_owned();
        shared.station.drain();
        by.changed(&*shared.station, "stage".to_owned(), was, "draining".to_owned(), None);
    });
    drained.await?;
    let picture = shared.aside(picture).await?;
    Ok(Json(StatusCode::ACCEPTED, picture))
}

/// Everything about this moment: the status, and a frame of the stream.
pub(super) fn picture(shared: &Shared) -> Value {
    let station = &*shared.station;
    let (now, figures, rates) = (station.now(), station.figures(), shared.pulse.rates());
    let (stage, failure) = (station.stage(), station.load_failure());
    let in_flight = figures.in_flight.iter().map(|route| route.now).sum();
    let policy = station.policy();
    let (overload, compiled) = (Overload::of(station), station.gate().policy());
    let situation = Situation {
        stage,
        in_flight,
        policy_version: policy.version,
        load_failure: failure.as_ref(),
        rates: &rates,
        shedding: overload.sentence(),
        degraded: overload.degraded(),
        open_files: station.open_files(),
    };
    let judgement = situation.judge();
    let upstreams = overload.upstreams.iter().map(|upstream| upstream_json(upstream, &rates));
    let upstreams: Vec<Value> = upstreams.collect();
    json!({
        "v": 1,
        "verdict": in_force(station, &judgement.sentence).map_or(judgement.sentence.clone(), |orders| format!("{} {orders}", judgement.sentence)),
        "health": judgement.health.as_str(),
        "stage": stage.as_str(),
        "version": env!("CARGO_PKG_VERSION"),
        "time": time_text(now.wall),
        "started": time_text(station.started()),
        "policy": {
            "version": policy.version,
            "name": policy.name,
            "lost": station.lost(),
            "failure": failure.as_ref().map(failure_json),
        },
        "totals": totals(&figures),
        "rates": rates_json(&rates),
        "in_flight": in_flight,
        "routes": routes(&figures),
        "connections": figures.connections.iter().map(connections_json).collect::<Vec<_>>(),
        "rules": rules(station, &rates),
        "upstreams": upstreams,
        "shedding": overload.to_json(&compiled),
        "signals": overload.signals.iter().map(signal_json).collect::<Vec<_>>(),
    })
}

/// What is in force because operators ordered it, in one sentence.
fn in_force(station: &dyn Station, verdict: &str) -> Option<String> {
    let (gate, now) = (station.gate(), station.now());
    let policy = gate.policy();
    let switched = policy.rules.iter().filter_map(|rule| {
        let (mode, until) = gate.mode(&rule.name, now)?;
        let is_switched = mode != rule.mode || until.is_some();
        is_switched.then(|| format!("rule {} in mode {}", rule.name, mode.as_str()))
    });
    let mut orders: Vec<String> = switched.collect();
    if orders.len() > 3 {
        orders = vec![format!("{} rules in other modes", orders.len())];
    }
    let counted = |count: usize, one: &str, many: &str| match count {
        0 => None,
        1 => Some(format!("1 {one}")),
        _ => Some(format!("{count} {many}")),
    };
    orders.extend(counted(
        gate.overrides(now).len(),
        "caller with a limit of its own",
        "limits of single callers",
    ));
    orders.extend(counted(gate.blocks(now).len(), "blocked caller", "blocked callers"));
    // The verdict itself names them.
    if !verdict.starts_with("Degraded") {
        orders.extend(counted(station.switched_routes().len(), "route switched", "routes switched"));
    }
    (!orders.is_empty()).then(|| format!("Ordered: {}.", orders.join(", ")))
}

fn upstream_json(upstream: &UpstreamStatus, rates: &Rates) -> Value {
    let rate = rates.upstreams.iter().find(|rate| rate.upstream == upstream.name);
    let (attempts, failures) = rate.map_or((0, 0), |rate| (rate.attempts, rate.failures));
    let concurrency = &upstream.concurrency;
    json!({
        "upstream": upstream.name,
        "attempts_per_second": rounded(rates.a_second(attempts)),
        "failures_per_second": rounded(rates.a_second(failures)),
        "limit": concurrency.limit,
        "in_flight": concurrency.in_flight,
        "waiting": concurrency.waiting.iter().sum::<u64>(),
        "queue_delay_ms": millis_json(concurrency.queue_delay),
        "shed": by_level(upstream.shed(), ratio),
        "wanted_ratio": ratio(concurrency.wanted_ratio),
    })
}

fn signal_json(signal: &SignalStatus) -> Value {
    json!({ "signal": signal.name, "unit": unit_word(&signal.name), "value": signal.value.map(precise) })
}

pub(super) fn failure_json(failure: &LoadFailure) -> Value {
    json!({
        "since": time_text(failure.since),
        "held": failure.how == Unloaded::Held,
        "summary": failure.summary,
        "problems": failure.findings.as_ref().map(|findings| &findings.list),
    })
}

fn totals(figures: &Figures) -> Value {
    json!({
        "admitted": figures.requests.iter().map(|requests| requests.admitted).sum::<u64>(),
        "refused": figures.requests.iter().map(|requests| requests.refused).sum::<u64>(),
    })
}

fn rates_json(rates: &Rates) -> Value {
    let shadow = rates.rules.iter().map(|rule| rule.shadow_refused).sum();
    json!({
        "over_ms": millis_json(rates.over),
        "admitted_per_second": rounded(rates.a_second(rates.admitted)),
        "refused_per_second": rounded(rates.a_second(rates.refused)),
        "shadow_refused_per_second": rounded(rates.a_second(shadow)),
        "p50_ms": rates.durations.below(500).map(millis_json),
        "p99_ms": rates.durations.below(990).map(millis_json),
    })
}

fn routes(figures: &Figures) -> Value {
    let route = |route: &str| {
        let decided = figures.requests.iter().filter(|requests| requests.route == route);
        let (admitted, refused) = decided.fold((0, 0), |(admitted, refused), requests| {
            (admitted + requests.admitted, refused + requests.refused)
        });
        (admitted, refused)
    };
    let routes = figures.in_flight.iter().map(|flying| {
        let (admitted, refused) = route(&flying.route);
        json!({ "route": flying.route, "in_flight": flying.now, "admitted": admitted, "refused": refused })
    });
    routes.collect()
}

fn connections_json(connections: &Connections) -> Value {
    json!({
        "listener": connections.listener,
        "open": connections.open,
        "accepted": connections.accepted,
        "turned_away": connections.turned_away,
        "left": connections.left,
    })
}

fn rules(station: &dyn Station, rates: &Rates) -> Value {
    let now = station.now();
    let rules = rates.rules.iter().map(|rule| {
        let mode = station.gate().mode(&rule.rule, now).map(|(mode, _)| mode.as_str());
        json!({
            "rule": rule.rule,
            "mode": mode,
            "refused_per_second": rounded(rates.a_second(rule.refused)),
            "shadow_refused_per_second": rounded(rates.a_second(rule.shadow_refused)),
            "overflowed_per_second": rounded(rates.a_second(rule.overflowed)),
        })
    });
    rules.collect()
}
