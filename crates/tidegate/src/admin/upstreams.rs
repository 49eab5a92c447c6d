//! How the upstreams are.

use axum::extract::State;
use serde_json::{Map, Value, json};
use tidegate_core::Moment;
use tidegate_core::concurrency::{Change, Why};
use tidegate_policy::Now;
use tidegate_policy::record::{millis_json, time_text};

use super::answer::{Json, Refusal, by_level, ratio, time_of};
use super::serve::Shared;
use super::station::{Attempts, EndpointStatus, UpstreamStatus};

/// `GET /api/v1/upstreams`
pub(super) async fn get(State(shared): State<Shared>) -> Result<Json, Refusal> {
    let upstreams = shared.aside(|shared| {
        let (attempts, now) = (shared.station.figures().attempts, shared.station.now());
        let upstreams = shared.station.upstreams();
        upstreams.iter().map(|upstream| upstream_json(upstream, &attempts, now)).collect::<Vec<_>>()
    });
    Ok(Json::ok(json!({ "v": 1, "upstreams": upstreams.await? })))
}

fn upstream_json(upstream: &UpstreamStatus, attempts: &[Attempts], now: Now) -> Value {
    let attempts = attempts.iter().filter(|attempts| attempts.upstream == upstream.name);
    let attempts: Map<String, Value> =
        attempts.map(|attempts| (attempts.outcome.to_owned(), attempts.count.into())).collect();
    let endpoints: Vec<Value> = upstream.endpoints.iter().map(endpoint_json).collect();
    json!({
        "upstream": upstream.name,
        "concurrency": concurrency_json(upstream, now),
        "attempts": attempts,
        "endpoints": endpoints,
    })
}

fn concurrency_json(upstream: &UpstreamStatus, now: Now) -> Value {
    let concurrency = &upstream.concurrency;
    let changes = concurrency.changes.iter().map(|(at, change)| change_json(*at, change, now));
    json!({
        "algorithm": upstream.algorithm,
        "limit": concurrency.limit,
        "in_flight": concurrency.in_flight,
        "waiting": concurrency.waiting.iter().sum::<u64>(),
        "waiting_by_criticality": by_level(concurrency.waiting, Value::from),
        "queue_delay_ms": millis_json(concurrency.queue_delay),
        "baseline_ms": concurrency.baseline.map(millis_json),
        "shed": by_level(upstream.shed(), ratio),
        "wanted_ratio": ratio(concurrency.wanted_ratio),
        "utilization": concurrency.utilization.map(ratio),
        "advises_against_retries": concurrency.advises_against_retries,
        "why": concurrency.last.map(|last| last.why.as_str()),
        "because": concurrency.last.map(|last| because(last.why)),
        "changes": changes.collect::<Vec<_>>(),
    })
}

fn change_json(at: Moment, change: &Change, now: Now) -> Value {
    json!({
        "time": time_of(at, now),
        "from": change.from,
        "to": change.to,
        "why": change.why.as_str(),
        "because": because(change.why),
    })
}

/// A reason in words.
const fn because(why: Why) -> &'static str {
    match why {
        Why::Headroom => "all places were used and requests stayed fast",
        Why::SlowStart => "it has just begun, all places were used and requests stayed fast",
        Why::Queueing => "requests wait inside the upstream: they take longer than without load",
        Why::Overloaded => "the upstream said that it is overloaded",
        Why::Objective => "requests take longer than `latency` allows",
        Why::Throughput => "more places had made requests slower, and not more of them",
        Why::Probe => {
            "it has rested for long: a few more for a moment, to see whether there is a queue at all"
        }
        Why::Steady => "there is no reason to change it",
        Why::Unused => "less than half of the places were used, so nothing was learnt",
        Why::Unproven => "less than half of the requests succeeded, so nothing was learnt",
        Why::Dependency => {
            "something that the upstream depends on is slow, which fewer places would not help"
        }
        Why::Floor => "it is as low as `min` allows",
        Why::Ceiling => "it is as high as `max` allows",
        Why::Fixed => "it does not adapt",
        Why::Operator => "the policy changed its bounds",
    }
}

fn endpoint_json(endpoint: &EndpointStatus) -> Value {
    json!({
        "url": endpoint.url,
        "connections": endpoint.connections,
        "in_flight": endpoint.in_flight,
        "failures": endpoint.failures,
        "last_error": endpoint.last_error.map(|last| json!({ "error": last.error, "time": time_text(last.at) })),
    })
}
