//! How much capacity is wanted: what an autoscaler reads.

use axum::extract::State;
use serde_json::{Map, Value, json};

use super::answer::{Json, Refusal, ratio};
use super::overload::{Overload, levels};
use super::serve::Shared;

/// `GET /api/v1/capacity`
pub(super) async fn get(State(shared): State<Shared>) -> Result<Json, Refusal> {
    let overload = shared.aside(|shared| Overload::of(&*shared.station)).await?;
    let upstreams = &overload.capacity.upstreams;
    let upstreams: Map<String, Value> =
        upstreams.iter().map(|(name, wanted)| (name.clone(), ratio(*wanted))).collect();
    Ok(Json::ok(json!({
        "v": 1,
        "wanted_ratio": ratio(overload.capacity.wanted_ratio),
        "upstreams": upstreams,
        "reason": reason(&overload),
    })))
}

/// Whose the ratio is, and what makes it so large.
fn reason(overload: &Overload) -> String {
    let wanted = overload.capacity.upstreams.iter().max_by(|(_, a), (_, b)| a.total_cmp(b));
    let Some((name, wanted)) = wanted else { return "there is no upstream".to_owned() };
    let status = overload.upstreams.iter().find(|upstream| upstream.name == *name);
    let Some(upstream) = status else {
        return format!("upstream {name} wants {wanted:.2} times its capacity");
    };
    let concurrency = &upstream.concurrency;
    let mut reason = format!(
        "upstream {name} has {} of {} places taken and {} waiting",
        concurrency.in_flight,
        concurrency.limit,
        concurrency.waiting.iter().sum::<u64>()
    );
    let shed = levels(&upstream.shed());
    if !shed.is_empty() {
        reason.push_str(&format!(", and {shed} is shed"));
    }
    reason
}
