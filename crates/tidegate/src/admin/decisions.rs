//! The last decisions, and single ones by their number.

use axum::extract::{RawQuery, State};
use serde_json::{Value, json};
use tidegate_policy::{DecisionId, Record};

use super::answer::{Json, Refusal};
use super::input::{InPath, Query};
use super::serve::Shared;

/// What the gate keeps, refused and admitted ones together.
const MOST_DECISIONS: usize = 1280;

/// How the body of a refusal writes a decision's number.
const URN: &str = "urn:tidegate:decision:";

/// `GET /api/v1/decisions?refused=1&n=100`
pub(super) async fn get(State(shared): State<Shared>, RawQuery(query): RawQuery) -> Result<Json, Refusal> {
    let query = Query::read(query.as_deref(), &["refused", "n"])?;
    let (is_refused_only, most) = (query.flag("refused")?, query.count("n", 100, MOST_DECISIONS)?);
    let decisions = shared.aside(move |shared| {
        let records = shared.station.gate().recent(is_refused_only);
        records.iter().take(most).map(Record::to_json).collect::<Vec<Value>>()
    });
    Ok(Json::ok(json!({ "v": 1, "decisions": decisions.await? })))
}

/// `GET /api/v1/decisions/{id}`, where the number may stand as a refusal's body has it.
pub(super) async fn one(State(shared): State<Shared>, InPath(id): InPath<String>) -> Result<Json, Refusal> {
    let number = id.strip_prefix(URN).unwrap_or(&id);
    let id: DecisionId =
        number.parse().map_err(|problem: tidegate_core::Invalid| Refusal::bad(problem.to_string()))?;
    let record = shared.station.gate().decision(id).ok_or_else(|| {
        Refusal::missing(format!(
            "decision {id} is not kept any more; kept are the last 1024 refused ones and 256 others"
        ))
    })?;
    Ok(Json::ok(record.to_json()))
}
