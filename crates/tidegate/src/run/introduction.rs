//! What is said at the start: what listens where, how much the policy holds, and what the machine allows.

use std::net::SocketAddr;

use tidegate_policy::policy::{Listener, Policy};

use super::keeper::Keeper;
use super::limits;
use crate::admin::Admin;

/// First which policy is in force and where it serves; then a line for each listener, one for the policy, and one for
/// what the machine allows.
pub(super) fn lines(keeper: &Keeper, admin: Option<&Admin>) -> Vec<String> {
    let admin = admin.map_or_else(|| "off".to_owned(), |admin| format!("on {}", admin.address()));
    let bound = keeper.gateway().addresses();
    let addresses: Vec<String> = bound.iter().map(SocketAddr::to_string).collect();
    let name = keeper.policy().name;
    let mut lines = vec![format!("{name} in force, admin API {admin}, serving {}", addresses.join(", "))];
    let policy = keeper.gateway().gate().policy();
    let listeners = policy.listeners.iter().zip(bound);
    lines.extend(listeners.map(|(listener, address)| listening(listener, *address)));
    lines.push(format!("the policy has {}", held(&policy)));
    let workers = if policy.server.workers.is_some() { "" } else { ", one for each processor" };
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let workers = format!("{}{workers}", several(policy.server.workers.unwrap_or(processors), "worker"));
    let files =
        limits::open_files().map_or_else(|| "any number of".to_owned(), |most| format!("at most {most}"));
    lines.push(format!("the machine allows {files} open files; {workers}"));
    lines
}

fn listening(listener: &Listener, address: SocketAddr) -> String {
    let spoken = match (listener.protocols.h2, listener.protocols.http1) {
        (true, true) => "HTTP/2 and HTTP/1.1",
        (true, false) => "HTTP/2",
        (false, _) => "HTTP/1.1",
    };
    let way = if listener.tls.is_some() { "with TLS" } else { "without TLS" };
    let (name, most) = (&listener.name, listener.max_connections);
    format!("listener `{name}` on {address} speaks {spoken} {way}, at most {most} connections")
}

fn held(policy: &Policy) -> String {
    let (rules, routes) = (several(policy.rules.len(), "rule"), several(policy.routes.len(), "route"));
    format!("{rules}, {routes}, {}", several(policy.upstreams.len(), "upstream"))
}

fn several(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}
