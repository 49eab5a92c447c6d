//! The policy: read it, replace it, check one, and ask what it makes of a request.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use axum::body::Body;
use axum::extract::State;
use axum::http::header::{ACCEPT, CONTENT_TYPE, ETAG, IF_MATCH};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use tidegate_policy::Format;

use super::answer::{Json, Refusal, written};
use super::guard::By;
use super::input::{self, Fields, either};
use super::serve::Shared;
use super::station::{NotConfirmed, NotTaken, Offer, PolicyText, Taken};
use crate::commands::imagined::Imagined;

/// How policies are spelt over HTTP.
const SPELLINGS: [(&str, Format); 5] = [
    ("application/toml", Format::Toml),
    ("application/yaml", Format::Yaml),
    ("application/json", Format::Yaml),
    ("text/x-toml", Format::Toml),
    ("text/yaml", Format::Yaml),
];

/// `GET /api/v1/policy`: the text that is decided with, as it was written.
pub(super) async fn get(State(shared): State<Shared>) -> Result<Response, Refusal> {
    let policy = shared.aside(|shared| shared.station.policy()).await?;
    let media_type = match policy.format {
        Format::Toml => "application/toml",
        Format::Yaml => "application/yaml",
    };
    let tag = tag(&policy);
    let mut response = written(StatusCode::OK, media_type, policy.text);
    response.headers_mut().insert("tidegate-policy-version", policy.version.into());
    response.headers_mut().extend(tag.map(|tag| (ETAG, tag)));
    Ok(response)
}

/// `PUT /api/v1/policy`: takes another, or says everything that is wrong with it.
pub(super) async fn put(
    State(shared): State<Shared>,
    headers: HeaderMap,
    by: By,
    body: Body,
) -> Result<Response, Refusal> {
    let format = format(&headers)?;
    let text = input::bytes(body).await?;
    let taken = shared.read_policy(move |shared| {
        let replaces = precondition(&headers, &shared.station.policy())?;
        let was = spoken(&shared.station.policy());
        let taken = shared.station.take(Offer { text: &text, format, replaces });
        if taken.is_ok() {
            let now = spoken(&shared.station.policy());
            by.changed(&*shared.station, "policy".to_owned(), was, now, None);
        }
        taken.map(|taken| (taken, tag(&shared.station.policy()))).map_err(not_taken)
    });
    let (taken, tag) = taken.await??;
    Ok(taken_json(&taken, tag))
}

/// `POST /api/v1/policy/confirm`: takes the policy on disk that is held because of what it loses.
pub(super) async fn confirm(State(shared): State<Shared>, by: By) -> Result<Response, Refusal> {
    let taken = shared.aside(move |shared| {
        let was = spoken(&shared.station.policy());
        let taken = shared.station.confirm().map_err(not_confirmed)?;
        let now = spoken(&shared.station.policy());
        by.changed(&*shared.station, "policy that was held".to_owned(), was, now, None);
        Ok((taken, tag(&shared.station.policy())))
    });
    let (taken, tag) = taken.await??;
    Ok(taken_json(&taken, tag))
}

fn not_confirmed(why: NotConfirmed) -> Refusal {
    match why {
        NotConfirmed::NothingHeld => Refusal::missing("no policy is held that could be confirmed"),
        NotConfirmed::Changed => {
            let detail = "the file is not the one that was held any more; it is looked at again";
            Refusal::new(StatusCode::CONFLICT, detail)
        }
        NotConfirmed::NotTaken(why) => not_taken(why),
    }
}

fn taken_json(taken: &Taken, tag: Option<HeaderValue>) -> Response {
    let answer = json!({
        "v": 1,
        "policy_version": taken.version,
        "lost": taken.lost,
        "warnings": taken.warnings.list,
    });
    let mut response = Json::ok(answer).into_response();
    response.headers_mut().extend(tag.map(|tag| (ETAG, tag)));
    response
}

/// `POST /api/v1/policy/check`
pub(super) async fn check(
    State(shared): State<Shared>,
    headers: HeaderMap,
    body: Body,
) -> Result<Json, Refusal> {
    let format = format(&headers)?;
    let text = input::bytes(body).await?;
    let checked = shared.read_policy(move |shared| shared.station.check(&text, format)).await?;
    Ok(Json::ok(json!({
        "v": 1,
        "ok": checked.is_fine,
        "problems": checked.findings.list,
        "summary": checked.findings.summary,
        "text": checked.findings.text,
    })))
}

/// `POST /api/v1/explain`: what would happen to a request now, as `tidegate explain` says it.
pub(super) async fn explain(
    State(shared): State<Shared>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Refusal> {
    let fields = Fields::read(body, &["method", "path", "headers", "client"]).await?;
    let method = fields.text("method", "a method such as \"POST\"")?.unwrap_or("GET").to_owned();
    let path = fields.needed_text("path", "a path such as \"/v1/charges\"")?.to_owned();
    let client = fields.text("client", "an address such as \"192.0.2.1\"")?;
    let client = client.map(|text| {
        text.parse().map_err(|_| Refusal::bad(format!("`client` is `{text}`, but must be an address")))
    });
    let request = Imagined::new(&method, &path, sent(fields.given("headers"))?, client.transpose()?);
    let request = request.map_err(Refusal::bad)?;
    let explained = shared.aside(move |shared| {
        let station = &shared.station;
        request.ask(station.gate(), |attributes| station.explain(attributes))
    });
    let explanation = explained.await?.map_err(Refusal::bad)?;
    let wants_text = headers.get(ACCEPT).is_some_and(|accept| accept.as_bytes().starts_with(b"text/plain"));
    Ok(if wants_text {
        written(StatusCode::OK, "text/plain; charset=utf-8", explanation.to_string())
    } else {
        Json::ok(explanation.to_json()).into_response()
    })
}

/// The header fields of an imagined request: each a text, or a list of the lines it has.
fn sent(headers: Option<&Value>) -> Result<Vec<(String, String)>, Refusal> {
    let wrong = |name: &str| Refusal::bad(format!("header `{name}` must be a text, or a list of texts"));
    let fields = match headers {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Object(fields)) => fields,
        Some(_) => {
            return Err(Refusal::bad("`headers` must be an object such as {\"x-api-key\": \"a\"}"));
        }
    };
    let mut sent = Vec::new();
    for (name, value) in fields {
        let lines = match value {
            Value::Array(lines) => lines.as_slice(),
            other => std::slice::from_ref(other),
        };
        for line in lines {
            let line = line.as_str().ok_or_else(|| wrong(name))?;
            sent.push((name.to_ascii_lowercase(), line.to_owned()));
        }
    }
    Ok(sent)
}

fn format(headers: &HeaderMap) -> Result<Format, Refusal> {
    let written = headers.get(CONTENT_TYPE).and_then(|field| field.to_str().ok()).unwrap_or_default();
    let media_type = written.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let known = SPELLINGS.iter().find(|(name, _)| *name == media_type);
    known.map(|(_, format)| *format).ok_or_else(|| {
        let known = either(&["application/toml", "application/yaml", "application/json"]);
        let found = if written.is_empty() { "nothing".to_owned() } else { format!("`{written}`") };
        let detail = format!("the content-type says {found}; a policy's must be {known}");
        Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail)
    })
}

fn spoken(policy: &PolicyText) -> String {
    format!("version {} ({})", policy.version, policy.name)
}

/// A policy's tag: its number, and a hash of its text, since numbers begin anew with every start.
fn tag(policy: &PolicyText) -> Option<HeaderValue> {
    let mut hasher = DefaultHasher::new();
    policy.text.hash(&mut hasher);
    HeaderValue::from_str(&format!("\"{}-{:016x}\"", policy.version, hasher.finish())).ok()
}

/// The number of the policy that must be there, when the request is for one in particular.
fn precondition(headers: &HeaderMap, policy: &PolicyText) -> Result<Option<u64>, Refusal> {
    let Some(wanted) = headers.get(IF_MATCH) else { return Ok(None) };
    let is_there = |written: &str| {
        let written = written.trim();
        written == "*" || tag(policy).is_some_and(|tag| tag.as_bytes() == written.as_bytes())
    };
    if wanted.to_str().is_ok_and(|tags| tags.split(',').any(is_there)) {
        return Ok(Some(policy.version));
    }
    Err(replaced(policy.version))
}

fn replaced(version: u64) -> Refusal {
    let detail = format!("the policy has changed: it is version {version} now; read it again");
    Refusal::new(StatusCode::PRECONDITION_FAILED, detail).saying("policy_version", version.into())
}

fn not_taken(why: NotTaken) -> Refusal {
    match why {
        NotTaken::Wrong(findings) => {
            let detail = format!("{} The policy stays as it is.", findings.summary);
            let refusal = Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, detail);
            refusal.saying("problems", findings.list).saying("text", findings.text.into())
        }
        NotTaken::Replaced { version } => replaced(version),
        NotTaken::NeedsRestart(what) => Refusal::new(StatusCode::CONFLICT, what),
        NotTaken::Held => Refusal::new(StatusCode::CONFLICT, "it loses something and is held"),
        NotTaken::Failed(what) => Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, what),
    }
}
