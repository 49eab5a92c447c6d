//! How the upstreams are.

use axum::extract::State;
use serde_json::{Map, Value, json};

use super::answer::{Json, Refusal};
use super::serve::Shared;
use super::station::{Attempts, EndpointStatus, UpstreamStatus};

/// `GET /api/v1/upstreams`
pub(super) async fn get(State(shared): State<Shared>) -> Result<Json, Refusal> {
    let upstreams = shared.aside(|shared| {
        let attempts = shared.station.figures().attempts;
        let upstreams = shared.station.upstreams();
        upstreams.iter().map(|upstream| upstream_json(upstream, &attempts)).collect::<Vec<_>>()
    });
    Ok(Json::ok(json!({ "v": 1, "upstreams": upstreams.await? })))
}

fn upstream_json(upstream: &UpstreamStatus, attempts: &[Attempts]) -> Value {
    let attempts = attempts.iter().filter(|attempts| attempts.upstream == upstream.name);
    let attempts: Map<String, Value> =
        attempts.map(|attempts| (attempts.outcome.to_owned(), attempts.count.into())).collect();
    let endpoints: Vec<Value> = upstream.endpoints.iter().map(endpoint_json).collect();
    json!({ "upstream": upstream.name, "attempts": attempts, "endpoints": endpoints })
}

fn endpoint_json(endpoint: &EndpointStatus) -> Value {
    json!({
        "url": endpoint.url,
        "connections": endpoint.connections,
        "in_flight": endpoint.in_flight,
        "failures": endpoint.failures,
    })
}
