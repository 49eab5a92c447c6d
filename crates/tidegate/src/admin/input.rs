//! What is asked: bodies in JSON and queries, read so that every mistake gets a precise answer.

use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{FromRequestParts, Path};
use axum::http::StatusCode;
use axum::http::request::Parts;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use tidegate_policy::identity_fault;
use tidegate_policy::quantity::{Length, QuotaText};

use super::answer::Refusal;

/// The largest body: as large as a policy with many thousand callers, and small enough to hold some of them.
pub(super) const LARGEST_BODY: usize = 4 << 20;

/// How long a body may take.
const BODY_TIME: Duration = Duration::from_secs(10);

/// The whole body.
pub(super) async fn bytes(body: Body) -> Result<Bytes, Refusal> {
    let collected = tokio::time::timeout(BODY_TIME, Limited::new(body, LARGEST_BODY).collect()).await;
    let Ok(collected) = collected else {
        return Err(Refusal::new(StatusCode::REQUEST_TIMEOUT, "the body did not come within 10 seconds"));
    };
    collected.map(http_body_util::Collected::to_bytes).map_err(|problem| {
        if problem.is::<LengthLimitError>() {
            let detail = format!("the body is longer than {LARGEST_BODY} bytes");
            return Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, detail);
        }
        Refusal::bad("the body broke off")
    })
}

/// What stands for the names in a path.
#[derive(Debug)]
pub(super) struct InPath<T>(pub(super) T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for InPath<T> {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        let path = Path::from_request_parts(parts, state).await;
        path.map(|Path(found)| Self(found)).map_err(|problem| Refusal::bad(problem.body_text()))
    }
}

/// A caller's identity as an operator may write it.
pub(super) fn identity(written: &str) -> Result<&str, Refusal> {
    match identity_fault(written) {
        None => Ok(written),
        Some(fault) => Err(Refusal::bad(format!("the caller's identity {fault}"))),
    }
}

/// The fields of a JSON object.
#[derive(Debug)]
pub(super) struct Fields(Map<String, Value>);

impl Fields {
    /// The body as an object with no fields but these.
    pub(super) async fn read(body: Body, known: &[&str]) -> Result<Self, Refusal> {
        let bytes = bytes(body).await?;
        let value = serde_json::from_slice(&bytes)
            .map_err(|problem| Refusal::bad(format!("the body is not JSON: {problem}")))?;
        let Value::Object(fields) = value else {
            return Err(Refusal::bad(format!("the body must be a JSON object with {}", listed(known))));
        };
        match fields.keys().find(|name| !known.contains(&name.as_str())) {
            None => Ok(Self(fields)),
            Some(unknown) => {
                Err(Refusal::bad(format!("unknown field `{unknown}`; known are {}", listed(known))))
            }
        }
    }

    /// The value of a field, unless it is absent.
    pub(super) fn given(&self, name: &str) -> Option<&Value> {
        self.0.get(name)
    }

    /// A text, unless it is absent.
    pub(super) fn text(&self, name: &str, such_as: &str) -> Result<Option<&str>, Refusal> {
        match self.0.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(not_this(name, other, such_as)),
        }
    }

    /// A text that must be there.
    pub(super) fn needed_text(&self, name: &str, such_as: &str) -> Result<&str, Refusal> {
        self.text(name, such_as)?
            .ok_or_else(|| Refusal::bad(format!("`{name}` is missing; it must be {such_as}")))
    }

    /// A length of time with its unit, unless it is absent.
    pub(super) fn length(&self, name: &str) -> Result<Option<Duration>, Refusal> {
        let Some(text) = self.text(name, "a length of time such as \"10min\"")? else { return Ok(None) };
        let length = Length::read(text)
            .map_err(|problem| Refusal::bad(format!("`{name}`: {}; {}", problem.message, problem.help)))?;
        if length.duration.is_zero() {
            return Err(Refusal::bad(format!("`{name}` is no time at all; it must be above 0")));
        }
        Ok(Some(length.duration))
    }

    /// A quota with its unit, unless it is absent.
    pub(super) fn quota(&self, name: &str) -> Result<Option<QuotaText>, Refusal> {
        let Some(text) = self.text(name, "a quota such as \"50/s\"")? else { return Ok(None) };
        let quota = QuotaText::read(text);
        quota
            .map(Some)
            .map_err(|problem| Refusal::bad(format!("`{name}`: {}; {}", problem.message, problem.help)))
    }

    /// A number as it is written, unless it is absent.
    pub(super) fn number(&self, name: &str) -> Result<Option<String>, Refusal> {
        match self.0.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Number(number)) => Ok(Some(number.to_string())),
            Some(other) => Err(not_this(name, other, "a number such as 100")),
        }
    }
}

/// The parameters of a query.
#[derive(Debug)]
pub(super) struct Query<'a>(Vec<(&'a str, &'a str)>);

impl<'a> Query<'a> {
    /// Parameters with no names but these, each at most once.
    pub(super) fn read(query: Option<&'a str>, known: &[&str]) -> Result<Self, Refusal> {
        let mut found: Vec<(&str, &str)> = Vec::new();
        for pair in query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            if !known.contains(&name) {
                let detail = format!("unknown parameter `{name}`; known are {}", listed(known));
                return Err(Refusal::bad(detail));
            }
            if found.iter().any(|(before, _)| *before == name) {
                return Err(Refusal::bad(format!("`{name}` is given twice")));
            }
            found.push((name, value));
        }
        Ok(Self(found))
    }

    /// A parameter's value, unless it is absent.
    pub(super) fn given(&self, name: &str) -> Option<&'a str> {
        self.0.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
    }

    /// A number from 1 to `most`.
    pub(super) fn count(&self, name: &str, usual: usize, most: usize) -> Result<usize, Refusal> {
        let Some(text) = self.given(name) else { return Ok(usual) };
        let count = text.parse().ok().filter(|count| (1..=most).contains(count));
        count.ok_or_else(|| Refusal::bad(format!("`{name}` is `{text}`, but must be from 1 to {most}")))
    }

    /// Whether something is asked for: `1` or `0`.
    pub(super) fn flag(&self, name: &str) -> Result<bool, Refusal> {
        match self.given(name) {
            None | Some("0") => Ok(false),
            Some("1") => Ok(true),
            Some(text) => Err(Refusal::bad(format!("`{name}` is `{text}`, but must be 0 or 1"))),
        }
    }
}

/// `a, b and c`, in backquotes.
pub(super) fn listed(names: &[&str]) -> String {
    joined(names, "and")
}

/// `a, b or c`, in backquotes.
pub(super) fn either(names: &[&str]) -> String {
    joined(names, "or")
}

fn joined(names: &[&str], word: &str) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    match quoted.as_slice() {
        [] => "none".to_owned(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} {word} {last}", first.join(", ")),
    }
}

fn not_this(name: &str, found: &Value, expected: &str) -> Refusal {
    let found: String = found.to_string().chars().take(60).collect();
    Refusal::bad(format!("`{name}` is {found}, but must be {expected}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(refusal: Refusal) -> String {
        format!("{refusal:?}")
    }

    #[test]
    fn queries_are_read_strictly() {
        let query = Query::read(Some("n=5&refused=1"), &["n", "refused"]).unwrap();
        assert_eq!(query.count("n", 20, 100).unwrap(), 5);
        assert!(query.flag("refused").unwrap());
        for (text, why) in
            [("m=1", "unknown parameter `m`; known are `n` and `refused`"), ("n=1&n=2", "`n` is given twice")]
        {
            assert!(said(Query::read(Some(text), &["n", "refused"]).unwrap_err()).contains(why));
        }
        let query = Query::read(Some("n=0&refused=yes"), &["n", "refused"]).unwrap();
        assert!(
            said(query.count("n", 20, 100).unwrap_err()).contains("`n` is `0`, but must be from 1 to 100")
        );
        assert!(said(query.flag("refused").unwrap_err()).contains("but must be 0 or 1"));
    }
}
