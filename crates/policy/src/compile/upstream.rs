//! The services behind the gateway: where they are, and how long they may take.

use std::sync::Arc;

use super::range::{count, patience};
use super::{check_name, concurrency};
use crate::document::read::{Either, Field};
use crate::document::top::PolicyDoc;
use crate::document::upstream::{ProtocolWord, UpstreamDoc};
use crate::policy::{Endpoint, Upstream, UpstreamProtocol};
use crate::problem::{Code, Problem, Problems};
use crate::quantity::shown;

/// The most connections to one endpoint: one address has no more ports.
const MOST_CONNECTIONS: u64 = 65_535;

/// The most endpoints of one upstream.
const MOST_ENDPOINTS: usize = 1_024;

pub(super) fn compile(document: &PolicyDoc, problems: &mut Problems) -> Vec<Arc<Upstream>> {
    let Some(written) = &document.upstream else { return Vec::new() };
    let tables = match &written.value {
        Either::Single(endpoint) => {
            return vec![Arc::new(Upstream::new("default", vec![endpoint.clone()]))];
        }
        Either::Larger(tables) => tables,
    };
    let compile = |(name, table): &(String, Field<UpstreamDoc>)| {
        let path = format!("upstream.{name}");
        check_name("upstream", name, table.key_span, &path, problems);
        Arc::new(upstream(name, &table.value, &path, problems))
    };
    tables.0.iter().map(compile).collect()
}

fn upstream(name: &str, written: &UpstreamDoc, path: &str, problems: &mut Problems) -> Upstream {
    let default = Upstream::new(name, endpoints(name, written, path, problems));
    let connect = written.connect_timeout.as_ref();
    let connections = written.max_connections.as_ref();
    let compiled = Upstream {
        protocol: written.protocol.as_ref().map_or(default.protocol, |field| match field.value {
            ProtocolWord::Http1 => UpstreamProtocol::Http1,
            ProtocolWord::H2 => UpstreamProtocol::H2,
            ProtocolWord::Auto => UpstreamProtocol::Auto,
        }),
        timeout: match &written.timeout {
            Some(field) => Some(field.value.duration).filter(|timeout| !timeout.is_zero()),
            None => default.timeout,
        },
        connect_timeout: patience(connect, &format!("{path}.connect_timeout"), problems)
            .unwrap_or(default.connect_timeout),
        max_connections: count(
            connections,
            1..=MOST_CONNECTIONS,
            &format!("{path}.max_connections"),
            problems,
        )
        .unwrap_or(default.max_connections),
        idle_timeout: patience(written.idle_timeout.as_ref(), &format!("{path}.idle_timeout"), problems)
            .unwrap_or(default.idle_timeout),
        concurrency: concurrency::compile(name, written, path, problems),
        ..default
    };
    too_short(&compiled, written, path, problems);
    concurrency::too_patient(&compiled, written, path, problems);
    compiled
}

fn endpoints(name: &str, written: &UpstreamDoc, path: &str, problems: &mut Problems) -> Vec<Endpoint> {
    let Some(list) = &written.endpoints else { return Vec::new() };
    let path = format!("{path}.endpoints");
    if list.value.is_empty() && !problems.mentions(&path) {
        let message = format!("upstream `{}` has no endpoints", shown(name));
        let problem = Problem::new(Code::MissingKey, message).at(list.span).path(&path);
        problems.push(problem.label("add \"http://127.0.0.1:3000\""));
    }
    if list.value.len() > MOST_ENDPOINTS {
        let message = format!(
            "upstream `{}` has {} endpoints, more than {MOST_ENDPOINTS}",
            shown(name),
            list.value.len()
        );
        let problem = Problem::new(Code::TooMany, message).at(list.key_span).path(&path);
        problems.push(problem.label("put a balancer in between"));
    }
    let mut found: Vec<Endpoint> = Vec::new();
    for field in list.value.iter().take(MOST_ENDPOINTS) {
        if found.contains(&field.value) {
            let message = format!("upstream `{}` has the endpoint {} twice", shown(name), field.value);
            let problem = Problem::new(Code::EndpointTwice, message).at(field.span).path(&path);
            problems.push(problem.label("remove one of them"));
        } else {
            found.push(field.value.clone());
        }
    }
    found
}

/// Who may not take as long as connecting may take, can only fail by the longer of the two.
fn too_short(compiled: &Upstream, written: &UpstreamDoc, path: &str, problems: &mut Problems) {
    let Some(timeout) = compiled.timeout.filter(|timeout| *timeout < compiled.connect_timeout) else {
        return;
    };
    let (key, span) = match (&written.timeout, &written.connect_timeout) {
        (Some(field), _) => ("timeout", field.span),
        (None, Some(field)) => ("connect_timeout", field.span),
        (None, None) => return,
    };
    let message =
        format!("timeout {timeout:?} is shorter than connect_timeout {:?}", compiled.connect_timeout);
    let problem = Problem::new(Code::TimeoutTooShort, message).at(span).path(format!("{path}.{key}"));
    let shorter = format!("\"{timeout:?}\"");
    let entry = problems.entry("connect_timeout", &shorter);
    problems.push(problem.label(format!("raise it, or write {entry} or less")));
}
