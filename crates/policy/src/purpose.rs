//! Who is to carry a policy out, and what it must and must not say for that.
//!
//! The language is one, but not everybody needs all of it: a gateway that listens nowhere is of no use, and the gate
//! around a service has nobody who would listen. What is asked for and not carried out is refused, never skipped.

use std::net::SocketAddr;

use crate::policy::{Capacity, ClientAddress, Limit, Policy, Server};
use crate::problem::{Code, Problem, Problems};
use crate::text::{self, Node, Source, Span, Value};

/// Who is to carry a policy out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Purpose {
    /// Not said: only what is wrong for everybody is a problem.
    #[default]
    Any,
    /// The gateway.
    Run {
        /// Where the admin API listens, if the command line says so: it wins over the policy.
        admin: Option<SocketAddr>,
    },
    /// The gate around a service.
    Library,
}

impl Purpose {
    pub(crate) const fn admin(self) -> Option<SocketAddr> {
        match self {
            Self::Run { admin } => admin,
            Self::Any | Self::Library => None,
        }
    }
}

/// What `purpose` wants of a policy besides being right.
pub(crate) fn judge(purpose: Purpose, policy: &Policy, root: &Node, problems: &mut Problems) {
    match purpose {
        Purpose::Any => {}
        Purpose::Run { .. } => needs_of_a_gateway(policy, problems),
        Purpose::Library => {
            for problem in beyond_library(policy) {
                let place = place(root, &problem.path);
                problems.push(match place {
                    Some(span) => problem.at(span),
                    None => problem,
                });
            }
        }
    }
}

fn needs_of_a_gateway(policy: &Policy, problems: &mut Problems) {
    let start = Span::default();
    let is_told = |key: &str| problems.mentions(key) || problems.suggests(key);
    let (is_listener_told, is_upstream_told) =
        (is_told("listen") || is_told("listener"), is_told("upstream"));
    if policy.listeners.is_empty() && !is_listener_told {
        let problem = Problem::new(Code::NoListener, "the policy does not say where to listen").at(start);
        let entry = problems.entry("listen", "\"0.0.0.0:8080\"");
        problems.push(problem.path("listen").help(format!("add {entry}")));
    }
    if policy.upstreams.is_empty() && !is_upstream_told {
        let problem = Problem::new(Code::NoUpstream, "the policy does not say where requests go").at(start);
        let entry = problems.entry("upstream", "\"http://127.0.0.1:3000\"");
        problems.push(problem.path("upstream").help(format!("add {entry}")));
    }
}

/// What a policy asks for that the gate around a service does not carry out, each part with the keys that lead to it.
///
/// ```
/// use tidegate_policy::{Source, beyond_library, read};
///
/// let text = b"listen = \"0.0.0.0:8080\"\n[rule.everybody]\nquota = \"10/s\"\n";
/// let (policy, _) = read(Source::named("tidegate.toml", text), None).unwrap();
/// assert_eq!(beyond_library(&policy)[0].path, "listen");
/// ```
#[must_use]
pub fn beyond_library(policy: &Policy) -> Vec<Problem> {
    let mut parts: Vec<(String, &str)> = Vec::new();
    if !policy.listeners.is_empty() {
        parts.push(("listen".to_owned(), "the service itself says where it listens"));
    }
    if !policy.upstreams.is_empty() {
        parts.push(("upstream".to_owned(), "the layer calls the service it is put around"));
    }
    of_server(&policy.server, &mut parts);
    if policy.access_log.is_some() {
        parts.push(("telemetry.access_log".to_owned(), "the service writes its own log"));
    }
    if policy.fingerprint_key.is_some() {
        parts.push(("telemetry.fingerprint_key".to_owned(), "whoever makes the gate gives it its seed"));
    }
    let steered =
        "nobody measures for the layer; measure and tell `Gate::steer`, and make it by `GateLayer::new`";
    if !policy.signals.is_empty() {
        parts.push(("signal".to_owned(), steered));
    }
    for rule in &policy.rules {
        let is_steered = match &rule.limit {
            Limit::Shed(_) => true,
            Limit::Reserve(reserve) => matches!(reserve.capacity, Capacity::Upstream(_)),
            Limit::Rate(_) | Limit::Concurrency(_) => false,
        };
        if is_steered {
            parts.push((format!("rule.{}", rule.name), steered));
        }
    }
    for (index, route) in policy.routes.iter().enumerate() {
        if route.degrade.is_some() {
            parts.push((format!("route[{index}].degrade"), "the service gives its own cheaper answers"));
        }
        if !route.upgrades.is_empty() {
            parts.push((format!("route[{index}].upgrade"), "the service itself changes protocols"));
        }
    }
    parts.into_iter().map(|(path, why)| not_carried_out(path, why)).collect()
}

fn of_server(server: &Server, parts: &mut Vec<(String, &str)>) {
    let default = Server::default();
    let process = "the process belongs to the service";
    let believed =
        "whoever accepts connections says whom to believe: put a `Peer` among the request's extensions";
    let found = [
        (server.admin != default.admin, "admin", process),
        (server.admin_token != default.admin_token, "admin_token", process),
        (server.workers != default.workers, "workers", process),
        (server.drain != default.drain, "drain", process),
        (server.guard != default.guard, "guard", process),
        (server.drain_delay != default.drain_delay, "drain_delay", process),
        (!server.trusted_proxies.is_empty(), "trusted_proxies", believed),
        (server.client_address != ClientAddress::default(), "client_address", believed),
    ];
    let found = found.iter().filter(|(is_there, ..)| *is_there);
    parts.extend(found.map(|(_, key, why)| (format!("server.{key}"), *why)));
}

fn not_carried_out(path: String, why: &str) -> Problem {
    let message = format!("`{path}` is not carried out by the library");
    Problem::new(Code::NotForLibrary, message).path(path).help(format!("remove it: {why}"))
}

/// Gives problems that were found elsewhere the places of the keys that lead to them, as far as they can be found.
#[must_use]
pub fn locate(source: Source<'_>, found: Vec<Problem>) -> Vec<Problem> {
    let Some(root) = text::read(source, &mut Problems::of(source.format)) else { return found };
    let placed = found.into_iter().map(|problem| match place(&root, &problem.path) {
        Some(span) => problem.at(span),
        None => problem,
    });
    placed.collect()
}

/// The keys that lead to a listener of a policy that was read from this text, by its position among all of them.
#[must_use]
pub fn listener_path(source: Source<'_>, position: usize) -> String {
    let root = text::read(source, &mut Problems::of(source.format));
    let is_short = root.is_some_and(|root| root.get("listen").is_some());
    match (is_short, position) {
        (true, 0) => "listen".to_owned(),
        _ => format!("listener[{}]", position - usize::from(is_short)),
    }
}

/// Where the value of a path stands; of a table its key. Of a path that leads nowhere, the nearest above it that stands
/// somewhere.
fn place(root: &Node, path: &str) -> Option<Span> {
    let (mut node, mut rest, mut found) = (root, path, None);
    while let Some((span, next, left)) = step(node, rest) {
        (node, rest, found) = (next, left, Some(span));
    }
    // The short form and the long one of the same.
    if found.is_none() && path == "listen" { place(root, "listener") } else { found }
}

/// One key or one place in a list. Names may have dots themselves, so keys are tried rather than cut out.
fn step<'a, 'p>(node: &'a Node, path: &'p str) -> Option<(Span, &'a Node, &'p str)> {
    match &node.value {
        Value::Table(entries) => entries.iter().find_map(|entry| {
            let rest = path.strip_prefix(entry.key.as_str())?;
            let rest = if rest.starts_with('[') { rest } else { past(rest, '.')? };
            let is_single = !matches!(entry.value.value, Value::Table(_) | Value::List(_));
            Some((if is_single { entry.value.span } else { entry.key_span }, &entry.value, rest))
        }),
        Value::List(items) => {
            let (index, rest) = path.strip_prefix('[')?.split_once(']')?;
            let item = items.get(index.parse::<usize>().ok()?)?;
            Some((item.span, item, past(rest, '.')?))
        }
        Value::Text(_) | Value::Number(_) | Value::Boolean(_) | Value::Other(_) => None,
    }
}

/// What follows a sign, or nothing at the end.
fn past(text: &str, sign: char) -> Option<&str> {
    if text.is_empty() { Some(text) } else { text.strip_prefix(sign) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
listen = \"0.0.0.0:8080\"
[[listener]]
bind = \"0.0.0.0:8443\"
tls = { cert = \"a.crt\", key = \"a.key\" }
[rule.\"per.key\"]
quota = \"10/s\"
";

    fn found(path: &str) -> Option<&'static str> {
        let source = Source::named("a.toml", TEXT.as_bytes());
        let problems = locate(source, vec![Problem::new(Code::NoFile, "lost").path(path)]);
        problems[0].span.map(|span| &TEXT[span.start..span.end])
    }

    #[test]
    fn a_path_leads_to_its_place_in_the_text() {
        assert_eq!(found("listen"), Some("\"0.0.0.0:8080\""));
        assert_eq!(found("listener[0].bind"), Some("\"0.0.0.0:8443\""));
        assert_eq!(found("listener[0].tls.key"), Some("\"a.key\""));
        assert_eq!(found("rule.per.key.quota"), Some("\"10/s\""));
        assert_eq!(found("rule.per.key.burst"), Some("\"per.key\""), "the nearest above");
        assert_eq!(found("server.admin"), None);
        assert_eq!(found("listener[7]"), Some("[[listener]]"));
    }
}
