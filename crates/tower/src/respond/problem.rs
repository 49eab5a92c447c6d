//! A refusal as `application/problem+json` (RFC 9457).

use bytes::Bytes;
use http::{HeaderValue, Response, header};
use tidegate_core::Retry;
use tidegate_policy::{DecisionId, Standing, Standings};

use super::detail::{self, seconds};
use super::json::{self, Object};
use super::kind::Kind;
use super::{Said, named};

/// One sentence for the caller: what it may do, or what to do instead.
pub(crate) fn detail(kind: Kind, rule: &str, standings: &Standings) -> String {
    match kind {
        Kind::Quota | Kind::Concurrency => {
            let violated = standings.iter().filter(|standing| standing.is_violated);
            violated.map(detail::detail).collect::<Vec<_>>().join("; ")
        }
        Kind::Blocked => format!("blocked by an operator in rule {rule}"),
        Kind::Unclear
        | Kind::Overloaded
        | Kind::Throttled
        | Kind::Late
        | Kind::NoRoute
        | Kind::Unreachable
        | Kind::Silent => general(kind).to_owned(),
    }
}

/// The same where no rule can be named.
pub(crate) const fn general(kind: Kind) -> &'static str {
    match kind {
        Kind::Quota => "the quota is used up for now",
        Kind::Concurrency => "too many requests are in flight",
        Kind::Blocked => "blocked by an operator",
        Kind::Unclear => "the request can be read in two ways",
        Kind::Overloaded => "too busy for this request at the moment",
        Kind::Throttled => "what would be called refuses too much at the moment",
        Kind::Late => "the deadline has passed, or would pass before the answer",
        Kind::NoRoute => "no route of this gateway takes the request",
        Kind::Unreachable => "the service behind this gateway could not be reached",
        Kind::Silent => "the service behind this gateway did not answer in time",
    }
}

/// The problem of a request that the gate refused.
pub(crate) fn refusal(said: &Said<'_>, id: DecisionId, standings: &Standings) -> Response<Bytes> {
    let mut problem = begin(said);
    if said.kind.shows_rules() {
        let violated = || standings.iter().filter(|standing| standing.is_violated);
        let names = violated().map(|standing| json::text(&standing.rule.name));
        problem = problem.raw("violated-policies", json::array(names));
        problem = problem.raw("quota", json::array(violated().map(quota)));
    }
    respond(said, problem.text("instance", &format!("urn:tidegate:decision:{}", id)))
}

/// The problem of a request that no rule refused.
pub(crate) fn plain(said: &Said<'_>) -> Response<Bytes> {
    respond(said, begin(said))
}

fn begin(said: &Said<'_>) -> Object {
    let (kind, title) = said.kind.problem();
    let problem = Object::new().text("type", kind).text("title", title);
    problem.raw("status", said.kind.status().as_u16()).text("detail", &said.detail)
}

/// How far one violated rule is used up.
fn quota(standing: &Standing) -> String {
    let mut quota = Object::new()
        .text("rule", &standing.rule.name)
        .raw("limit", standing.limit)
        .raw("used", standing.used);
    if !standing.is_concurrency {
        quota = quota.raw("window_seconds", seconds(standing.window));
    }
    if let Some(Retry::After(delay)) = standing.retry {
        quota = quota.raw("retry_after", seconds(named(delay)));
    }
    quota.finish()
}

fn respond(said: &Said<'_>, problem: Object) -> Response<Bytes> {
    let mut response = Response::new(Bytes::from(problem.finish()));
    *response.status_mut() = said.kind.status();
    let problem_json = HeaderValue::from_static("application/problem+json");
    response.headers_mut().insert(header::CONTENT_TYPE, problem_json);
    response
}
