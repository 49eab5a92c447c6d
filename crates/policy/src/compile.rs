//! From the document to the policy: names resolved, defaults filled in, contradictions found.
//!
//! Each part does what it can and reports what it cannot; a policy is handed out only when nobody reported
//! an error. So one look shows everything that is wrong.

mod check;
mod concurrency;
mod degrade;
mod invented;
mod limit;
mod listener;
mod matcher;
mod range;
mod reserve;
mod route;
mod rule;
mod sent;
mod server;
mod shed;
mod signal;
mod telemetry;
mod upstream;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use tidegate_core::Criticality;
use tidegate_core::keyed::MaxKeys;

use crate::document::callers::CallerEntryDoc;
use crate::document::read::{Field, Named};
use crate::document::top::PolicyDoc;
use crate::identity::identity_fault;
use crate::policy::{Caller, KeySource, KeySpec, Line, MOST_OVERRIDES, Policy, SignalSpec, Upstream};
use crate::problem::{Code, File, Problem, Problems, nearest};
use crate::quantity::shown;
use crate::text::{Positions, Span};
use limit::Placed;
use rule::CompiledRule;

/// The version of the language.
const VERSION: u64 = 1;

/// How many keys a rule can tell apart, unless the file says so: see the declaration of `max_keys`.
const MAX_KEYS: usize = 100_000;

/// What rules can refer to.
#[derive(Clone, Copy)]
struct Known<'a> {
    upstreams: &'a [Arc<Upstream>],
    signals: &'a [SignalSpec],
    /// How many keys a rule has unless it says so.
    max_keys: MaxKeys,
}

/// Makes a policy of what was written. It is complete only if no errors were found. What the command line says of the
/// admin API wins over the document.
pub(crate) fn compile(
    document: &PolicyDoc,
    callers: Option<Result<&Named<CallerEntryDoc>, &str>>,
    admin: Option<SocketAddr>,
    positions: &Positions<'_>,
    problems: &mut Problems,
) -> Policy {
    version(document, problems);
    let (caller, max_keys) = caller(document, callers, problems);
    let callers = callers.and_then(Result::ok);
    let upstreams = upstream::compile(document, problems);
    let signals = signal::compile(document, problems);
    let known = Known { upstreams: &upstreams, signals: &signals, max_keys };
    let rules = rule::compile(document, known, positions, problems);
    let server = server::compile(document, admin, problems);
    let listeners = listener::compile(document, server.admin, problems);
    let routes = route::compile(document, &rules, &upstreams, positions, problems);
    let (callers, overrides) = known_callers(callers, &rules, problems);
    check::costs(&rules, &overrides, &routes, problems);
    check::use_of_rules(document, &rules, &routes, problems);
    check::keys(document, &rules, problems);
    let known = invented::known(document, &caller, problems);
    invented::check(document, &caller, known, (&rules, &routes), problems);
    sent::check(document, problems);
    check::memory(&rules, &overrides, problems);
    let criticality = document.criticality.as_ref().map(|field| &field.value);
    let assignments = criticality.and_then(|written| written.assign.as_ref());
    let from = criticality.and_then(|written| written.from.as_ref());
    let default = criticality.and_then(|written| written.default.as_ref());
    Policy {
        rules: rules.into_iter().map(|compiled| compiled.rule).collect(),
        routes,
        caller,
        known,
        callers,
        criticality: assignments.map_or_else(Vec::new, |list| matcher::assignments(&list.value, problems)),
        criticality_from: from
            .map_or_else(Vec::new, |list| list.value.0.iter().map(|source| source.value.clone()).collect()),
        default_criticality: default.map_or(Criticality::Critical, |field| field.value),
        server,
        listeners,
        upstreams,
        signals,
        access_log: telemetry::access_log(document),
        log: telemetry::log(document),
        fingerprint_key: telemetry::fingerprint_key(document, problems),
    }
}

fn version(document: &PolicyDoc, problems: &mut Problems) {
    if let Some(field) = document.version.as_ref().filter(|field| field.value != VERSION) {
        let message = format!("version {} of the policy language is not known", field.value);
        problems
            .push(Problem::new(Code::BadVersion, message).at(field.span).path("version").label("write 1"));
    }
}

/// How callers are recognised, and how many keys a rule has unless it says so.
fn caller<T>(
    document: &PolicyDoc,
    callers: Option<Result<T, &str>>,
    problems: &mut Problems,
) -> (KeySpec, MaxKeys) {
    let written = document.caller.as_ref().map(|field| &field.value);
    let from = written.and_then(|caller| caller.from.as_ref());
    let sources = match from {
        Some(from) if from.value.0.is_empty() => {
            let problem = Problem::new(Code::MissingKey, "`from` of `caller` names no source");
            problems.push(problem.at(from.span).path("caller.from").label("add \"client-ip\""));
            Vec::new()
        }
        Some(from) => from.value.0.iter().map(|source| source.value.0.clone()).collect(),
        None => vec![KeySource::ClientIp],
    };
    let unread = match callers {
        Some(Ok(_)) => None,
        Some(Err(why)) => Some(format!("cannot be read: {why}")),
        None => Some("was not read".to_owned()),
    };
    let table = written.and_then(|caller| caller.table.as_ref());
    if let Some((table, unread)) = table.zip(unread) {
        let message = format!("the table of callers `{}` {unread}", shown(&table.value));
        let problem = Problem::new(Code::NoCallers, message).at(table.span).path("caller.table");
        problems.push(problem.label("put it there, or remove this"));
    }
    let written = written.and_then(|caller| caller.max_keys.as_ref());
    let max_keys = max_keys(written, "caller.max_keys", problems);
    (KeySpec(sources), max_keys.or_else(|| MaxKeys::new(MAX_KEYS).ok()).unwrap_or_else(least_keys))
}

/// Only for the case that the constant above were wrong, which a test would show.
fn least_keys() -> MaxKeys {
    MaxKeys::new(1).expect("one key is allowed")
}

fn max_keys(written: Option<&Field<u64>>, path: &str, problems: &mut Problems) -> Option<MaxKeys> {
    let field = written?;
    match MaxKeys::new(usize::try_from(field.value).unwrap_or(usize::MAX)) {
        Ok(keys) => Some(keys),
        Err(invalid) => {
            let problem = Problem::new(Code::BadNumber, invalid.to_string()).at(field.span).path(path);
            problems.push(problem.label("write a number in that range"));
            None
        }
    }
}

/// The callers, and their limits with their places.
fn known_callers(
    callers: Option<&Named<CallerEntryDoc>>,
    rules: &[CompiledRule<'_>],
    problems: &mut Problems,
) -> (BTreeMap<String, Caller>, Vec<(usize, Placed)>) {
    problems.turn_to(File::Callers);
    let mut known = BTreeMap::new();
    let mut placed = Vec::new();
    for (name, field) in callers.iter().flat_map(|callers| &callers.0) {
        if let Some(fault) = identity_fault(name) {
            let message = format!("caller `{}` {fault}", shown(name));
            let problem = Problem::new(Code::BadName, message).at(field.key_span).path(name.clone());
            problems.push(problem.label("callers like this cannot be named here"));
        }
        let mut caller = Caller::default();
        if let Some(plan) = &field.value.plan {
            if !rules.iter().any(|compiled| compiled.rule.plans.contains_key(&plan.value)) {
                problems.push(unknown_plan(name, plan, rules));
            }
            caller.plan = Some(plan.value.clone());
        }
        for (rule, numbers) in field.value.overrides.iter().flat_map(|overrides| &overrides.value.0) {
            let path = format!("{name}.overrides.{rule}");
            let Some(index) = rules.iter().position(|compiled| compiled.rule.name == *rule) else {
                let problem = unknown_rule(rule, numbers.key_span, rules, problems).path(path);
                problems.push(problem);
                continue;
            };
            let what = format!("override `{}` of caller `{}`", shown(rule), shown(name));
            let Some(limit) =
                rules[index].settings.vary(&numbers.value, numbers.key_span, what, path, problems)
            else {
                continue;
            };
            caller.overrides.insert(rule.clone(), limit.limit.clone());
            placed.push((index, Placed { file: File::Callers, ..limit }));
        }
        known.insert(name.clone(), caller);
    }
    if placed.len() > MOST_OVERRIDES {
        let message =
            format!("callers have {} limits of their own, more than {MOST_OVERRIDES}", placed.len());
        problems
            .push(Problem::new(Code::TooMany, message).help("put callers with the same limits on a plan"));
    }
    problems.turn_to(File::Policy);
    (known, placed)
}

fn unknown_plan(caller: &str, plan: &Field<String>, rules: &[CompiledRule<'_>]) -> Problem {
    let message = format!("no rule knows the plan `{}` of caller `{}`", shown(&plan.value), shown(caller));
    let plans = rules.iter().flat_map(|compiled| compiled.rule.plans.keys().map(String::as_str));
    let label = nearest(&plan.value, plans).map(|meant| format!("did you mean `{meant}`?"));
    let problem = Problem::new(Code::UnknownPlan, message).at(plan.span).path(format!("{caller}.plan"));
    problem.label(label.unwrap_or_else(|| "it changes nothing".to_owned()))
}

fn unknown_rule(name: &str, span: Span, rules: &[CompiledRule<'_>], problems: &Problems) -> Problem {
    let names = || rules.iter().map(|compiled| compiled.rule.name.as_str());
    let label = match nearest(name, names()) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None if rules.is_empty() => format!("add {}", problems.table("rule", &shown(name))),
        None => {
            format!("known: {}", names().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", "))
        }
    };
    Problem::new(Code::UnknownRule, format!("there is no rule `{}`", shown(name))).at(span).label(label)
}

fn unknown_upstream(name: &str, span: Span, upstreams: &[Arc<Upstream>], problems: &Problems) -> Problem {
    let label = match nearest(name, upstreams.iter().map(|upstream| upstream.name.as_str())) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => format!("add {}", problems.table("upstream", &shown(name))),
    };
    let message = format!("there is no upstream `{}`", shown(name));
    Problem::new(Code::UnknownUpstream, message).at(span).label(label)
}

/// Names appear in headers and metrics.
fn check_name(noun: &str, name: &str, span: Span, path: &str, problems: &mut Problems) {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    if !name.is_empty() && name.len() <= 64 && name.bytes().all(allowed) {
        return;
    }
    let message = format!("`{}` cannot be the name of a {noun}", shown(name));
    let problem = Problem::new(Code::BadName, message).at(span).path(path);
    problems.push(problem.label("use up to 64 letters, digits, `_`, `-` and `.`"));
}

fn twice(message: String, span: Span, path: String) -> Problem {
    Problem::new(Code::NameTwice, message).at(span).path(path).label("change one of them")
}

fn line(positions: &Positions<'_>, span: Span) -> Line {
    Line(positions.of(span.start).line)
}
