//! How the upstreams are.

use axum::extract::State;
use serde_json::{Value, json};
use tidegate_policy::record::millis_json;

use super::answer::{Json, Refusal};
use super::serve::Shared;
use super::station::{EndpointStatus, UpstreamStatus};

/// `GET /api/v1/upstreams`
pub(super) async fn get(State(shared): State<Shared>) -> Result<Json, Refusal> {
    let upstreams = shared.aside(|shared| shared.station.upstreams()).await?;
    let upstreams: Vec<Value> = upstreams.iter().map(upstream_json).collect();
    Ok(Json::ok(json!({ "v": 1, "upstreams": upstreams })))
}

fn upstream_json(upstream: &UpstreamStatus) -> Value {
    let endpoints: Vec<Value> = upstream.endpoints.iter().map(endpoint_json).collect();
    json!({ "upstream": upstream.name, "endpoints": endpoints })
}

fn endpoint_json(endpoint: &EndpointStatus) -> Value {
    json!({
        "url": endpoint.url,
        "connections": endpoint.connections,
        "in_flight": endpoint.in_flight,
        "attempts": endpoint.attempts,
        "failures": endpoint.failures,
        "failing": endpoint.failing,
        "latency_ms": endpoint.latency.map(millis_json),
    })
}
