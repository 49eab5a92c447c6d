//! What is answered: JSON, or a problem of RFC 9457 that says what to do.

use std::time::Duration;

use axum::body::Body;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value, json};
use tidegate_core::{Criticality, Moment, WallTime};
use tidegate_policy::record::time_text;
use tidegate_policy::{Now, escaped_json};

/// The field that every answer has, so that whoever asks a wrong port notices.
pub(crate) const MARK: &str = "tidegate-admin";
/// What it says: the version of the API.
pub(super) const MARKED: &str = "v1";

/// Adds the mark to an answer.
pub(super) async fn mark(mut response: Response) -> Response {
    response.headers_mut().insert(HeaderName::from_static(MARK), HeaderValue::from_static(MARKED));
    response
}

/// An answer in JSON.
#[derive(Debug)]
pub(super) struct Json(pub(super) StatusCode, pub(super) Value);

impl Json {
    pub(super) const fn ok(value: Value) -> Self {
        Self(StatusCode::OK, value)
    }
}

impl IntoResponse for Json {
    fn into_response(self) -> Response {
        written(self.0, "application/json", escaped_json(format!("{:#}\n", self.1)))
    }
}

/// A request that is not carried out, and why.
#[derive(Debug)]
pub(super) struct Refusal {
    status: StatusCode,
    members: Map<String, Value>,
    fields: Vec<(HeaderName, HeaderValue)>,
}

impl Refusal {
    pub(super) fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        let mut members = Map::new();
        members.insert("title".to_owned(), status.canonical_reason().unwrap_or("error").into());
        members.insert("status".to_owned(), status.as_u16().into());
        members.insert("detail".to_owned(), detail.into().into());
        Self { status, members, fields: Vec::new() }
    }

    pub(super) fn bad(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, detail)
    }

    pub(super) fn missing(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, detail)
    }

    /// Adds a header field.
    pub(super) fn with(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.fields.push((name, value));
        self
    }

    /// Adds a member to the problem.
    pub(super) fn saying(mut self, name: &str, value: Value) -> Self {
        self.members.insert(name.to_owned(), value);
        self
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let body = escaped_json(format!("{:#}\n", Value::Object(self.members)));
        let mut response = written(self.status, "application/problem+json", body);
        response.headers_mut().extend(self.fields);
        response
    }
}

/// A text of a type. Nothing here may be kept: it is about this very moment.
pub(super) fn written(status: StatusCode, media_type: &'static str, text: impl Into<Body>) -> Response {
    let mut response = Response::new(text.into());
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// The date and time of a moment, before or after now.
pub(super) fn wall_of(moment: Moment, now: Now) -> WallTime {
    let nanos = |length: Duration| u64::try_from(length.as_nanos()).unwrap_or(u64::MAX);
    let (ahead, ago) = (nanos(moment.since(now.moment)), nanos(now.moment.since(moment)));
    let wall = now.wall.unix_nanos().saturating_add(ahead).saturating_sub(ago);
    WallTime::from_unix_nanos(wall)
}

/// The same as it is written.
pub(super) fn time_of(moment: Moment, now: Now) -> Value {
    json!(time_text(wall_of(moment, now)))
}

/// A share or a ratio with three decimals.
pub(super) fn ratio(number: f64) -> Value {
    json!((number * 1_000.0).round() / 1_000.0)
}

/// A number for each criticality, by its name.
pub(super) fn by_level<T>(numbers: [T; 4], written: impl Fn(T) -> Value) -> Value {
    let levels = Criticality::ALL.iter().zip(numbers);
    levels.map(|(level, number)| (level.as_str().to_owned(), written(number))).collect::<Map<_, _>>().into()
}

/// A number with one decimal, for people.
pub(super) fn rounded(number: f64) -> Value {
    json!((number * 10.0).round() / 10.0)
}
