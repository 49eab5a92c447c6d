//! A route's cheaper answer.

use super::range::count;
use super::twice;
use crate::document::read::Field;
use crate::document::route::{DegradeDoc, DegradeWord, RouteDoc};
use crate::document::values::is_token;
use crate::policy::{Degrade, DegradeWhen};
use crate::problem::{Code, Problem, Problems};
use crate::quantity::shown;

/// Fields that say how an answer travels: the gateway knows, and nobody else.
const TRAVEL: [&str; 8] = [
    "connection",
    "content-length",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

pub(super) fn compile(
    route: &str,
    written: &RouteDoc,
    path: &str,
    problems: &mut Problems,
) -> Option<Degrade> {
    let field = written.degrade.as_ref()?;
    let path = format!("{path}.degrade");
    if written.exempt.as_ref().is_some_and(|exempt| exempt.value) {
        let message = format!("route `{}` is exempt and has a cheaper answer", shown(route));
        let problem = Problem::new(Code::ExemptWithRules, message).at(field.key_span).path(&path);
        problems.push(problem.label("remove this, or `exempt`"));
    }
    let written = &field.value;
    let status = count(written.status.as_ref(), 200..=599, &format!("{path}.status"), problems);
    let status = status.and_then(|status| u16::try_from(status).ok()).unwrap_or(200);
    if let Some(body) = written.body.as_ref().filter(|body| !body.value.is_empty())
        && let 204 | 205 | 304 = status
    {
        let message = format!("an answer with status {status} has no body");
        let problem = Problem::new(Code::NotForThis, message).at(body.key_span).path(format!("{path}.body"));
        problems.push(problem.label("remove it, or change `status`"));
    }
    Some(Degrade {
        when: written.when.as_ref().map_or(DegradeWhen::default(), |field| match field.value {
            DegradeWord::Shedding => DegradeWhen::Shedding,
            DegradeWord::Switched => DegradeWhen::Switched,
        }),
        status,
        body: written.body.as_ref().map_or_else(String::new, |body| body.value.clone()),
        headers: headers(written, &format!("{path}.headers"), problems),
    })
}

fn headers(written: &DegradeDoc, path: &str, problems: &mut Problems) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    for (name, value) in written.headers.iter().flat_map(|headers| &headers.value.0) {
        let lower = name.to_ascii_lowercase();
        if let Some(problem) = wrong(name, &lower, value) {
            problems.push(problem.path(path));
        } else if found.iter().any(|(other, _)| *other == lower) {
            let problem = twice(format!("`headers` has `{lower}` twice"), value.key_span, path.to_owned());
            problems.push(problem.label("remove one of them"));
        }
        found.push((lower, value.value.clone()));
    }
    found
}

/// What is wrong with a header field, if anything is.
fn wrong(name: &str, lower: &str, value: &Field<String>) -> Option<Problem> {
    let is_visible = |character: char| character == '\t' || !character.is_control();
    let (message, at, label) = if !is_token(name) {
        let message = format!("`{}` does not name a header field", shown(name));
        (message, value.key_span, "write letters, digits and hyphens")
    } else if TRAVEL.contains(&lower) {
        let message = format!("`{lower}` says how an answer travels, which only the gateway knows");
        (message, value.key_span, "remove it")
    } else if !value.value.chars().all(is_visible) || value.value.trim() != value.value {
        let message = format!("`{name}` has a value that no header field can have");
        (message, value.span, "write one line, without blanks around it")
    } else {
        return None;
    };
    Some(Problem::new(Code::BadField, message).at(at).label(label))
}
