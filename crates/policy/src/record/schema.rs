//! The schema of a record, as it is published.

use serde_json::{Map, Value, json};
use tidegate_core::Criticality;
use tidegate_core::permit::Outcome;

use super::{Decided, Record, outcome_name};

/// The JSON Schema of one line of the access log.
#[must_use]
pub fn schema() -> Value {
    let properties: Map<String, Value> = fields()
        .into_iter()
        .map(|(name, mut kind, description)| {
            if let Value::Object(kind) = &mut kind {
                kind.insert("description".to_owned(), description.into());
            }
            (name.to_owned(), kind)
        })
        .collect();
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A line of Tidegate's access log",
        "description": "One request. Fields that say nothing are left out; new ones may come under the same version.",
        "type": "object",
        "required": ["v", "time", "decision"],
        "properties": properties,
    })
}

/// Name, kind and meaning of each field.
fn fields() -> Vec<(&'static str, Value, &'static str)> {
    let mut fields = of_request();
    fields.extend(of_decision());
    fields.extend(of_answer());
    fields
}

fn text() -> Value {
    json!({ "type": "string" })
}

fn bounded(most: usize) -> Value {
    json!({ "type": "string", "maxLength": most })
}

fn number() -> Value {
    json!({ "type": "number", "minimum": 0 })
}

fn count() -> Value {
    json!({ "type": "integer", "minimum": 0 })
}

fn digits() -> Value {
    json!({ "type": "string", "pattern": "^[0-9a-f]{16}$" })
}

/// A member for each rule.
fn by_rule(kind: &Value) -> Value {
    json!({ "type": "object", "additionalProperties": kind })
}

fn of_request() -> Vec<(&'static str, Value, &'static str)> {
    let short = || bounded(Record::MOST_OF_TEXT);
    vec![
        ("v", json!({ "type": "integer", "const": Record::VERSION }), "The version of this schema."),
        ("time", json!({ "type": "string", "format": "date-time" }), "When it was decided, in UTC."),
        ("id", digits(), "The decision's number; none where nothing was decided."),
        (
            "request_id",
            short(),
            "What it is called on its whole way: a trusted peer's `x-request-id`, else the decision's \
             number.",
        ),
        ("listener", text(), "The listener it came to."),
        ("method", short(), "Its method."),
        ("host", short(), "The host it was sent to, without the port."),
        ("path", bounded(Record::MOST_OF_PATH), "Its path without the query."),
        ("client", text(), "The address it came from, as far as proxies can be believed."),
        ("user_agent", short(), "What program its caller says it is."),
        ("route", text(), "The route it took."),
        ("caller", text(), "Who sent it, as far as it may be shown."),
        ("fingerprint", digits(), "Who sent it, as a hash that tells callers apart."),
        (
            "fingerprints",
            by_rule(&digits()),
            "Its key in each rule that was asked, as a hash, by the rule's name.",
        ),
    ]
}

fn of_decision() -> Vec<(&'static str, Value, &'static str)> {
    let levels: Vec<&str> = Criticality::ALL.iter().map(|level| level.as_str()).collect();
    let decisions: Vec<&str> = Decided::ALL.iter().map(|decided| decided.as_str()).collect();
    let cost = || json!({ "type": ["number", "string"] });
    vec![
        ("criticality", json!({ "type": "string", "enum": levels }), "How late it is shed."),
        ("cost", cost(), "What its route says it costs; as a text where a number would lose digits."),
        (
            "settled",
            by_rule(&cost()),
            "What it turned out to cost, by the rule whose charge was settled to it.",
        ),
        (
            "decision",
            json!({ "type": "string", "enum": decisions }),
            "Whether it passed or was refused; or that it could not be read, so that nothing was decided.",
        ),
        ("rule", text(), "Who refused it: a rule, or `upstream:NAME`."),
        ("reason", text(), "Why it was refused, in one word."),
        (
            "retry_ms",
            json!({ "type": ["number", "string"] }),
            "When it may work, as the limiter says, or `never`; 0 where that is not known. Callers of a 503 are \
             told other times, each its own.",
        ),
        (
            "shadow",
            json!({ "type": "array", "items": { "type": "string", "description": "A rule." } }),
            "The rules in shadow that would have refused it.",
        ),
        ("wait_ms", number(), "How long a rule let it wait."),
    ]
}

fn of_answer() -> Vec<(&'static str, Value, &'static str)> {
    let outcomes = [Outcome::Ok, Outcome::Failed, Outcome::Overloaded, Outcome::Abandoned];
    let outcomes: Vec<&str> = outcomes.into_iter().map(outcome_name).collect();
    vec![
        ("endpoint", text(), "The endpoint that answered it, or that was asked last."),
        ("attempts", count(), "How often an upstream was asked."),
        ("upstream_ms", number(), "From asking the upstream until the head of its answer."),
        ("duration_ms", number(), "How long it took, to the last byte of the answer."),
        ("status", count(), "What it was answered with."),
        ("sent_bytes", count(), "Bytes of the answer's body."),
        ("received_bytes", count(), "Bytes of the request's body that came."),
        ("error", text(), "What went wrong, in one word."),
        ("detail", bounded(Record::MOST_OF_PATH), "The same in a sentence."),
        ("outcome", json!({ "type": "string", "enum": outcomes }), "How its work ended."),
        ("stands_for", number(), "How many requests the line stands for; 1 where it is left out."),
    ]
}
