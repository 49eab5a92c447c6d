//! The process itself: its admin API, its end, and whom it believes.

use std::net::SocketAddr;

use super::range::count;
use crate::document::read::Field;
use crate::document::server::{ClientAddressWord, FieldsWord, GuardWord, LegacyWord, SecretDoc, ServerDoc};
use crate::document::top::PolicyDoc;
use crate::policy::{ClientAddress, Guard, LegacyReset, Network, RatelimitFields, Secret, Server};
use crate::problem::{Code, Problem, Problems};

/// The most networks of trusted proxies: each connection is compared with all of them.
const MOST_NETWORKS: usize = 1_024;

/// What the command line says of the admin API wins over the document.
pub(super) fn compile(document: &PolicyDoc, admin: Option<SocketAddr>, problems: &mut Problems) -> Server {
    let default = Server::default();
    criticality_is_heard(document, problems);
    let written = document.server.as_ref().map(|field| &field.value);
    open_admin(written, admin, problems);
    let Some(written) = written else { return Server { admin, ..default } };
    let trusted_proxies = trusted(written, problems);
    let prefix = count(written.ipv6_prefix.as_ref(), 1..=128, "server.ipv6_prefix", problems);
    Server {
        admin: admin.or(written.admin.as_ref().map(|field| field.value)),
        admin_token: written
            .admin_token
            .as_ref()
            .and_then(|field| secret(field, "server.admin_token", "\"TIDEGATE_TOKEN\"", problems)),
        workers: count(written.workers.as_ref(), 1..=1_024, "server.workers", problems),
        drain: written.drain.as_ref().map_or(default.drain, |field| field.value.duration),
        drain_delay: written.drain_delay.as_ref().map_or(default.drain_delay, |field| field.value.duration),
        client_address: client_address(written, &trusted_proxies, problems),
        trusted_proxies,
        ipv6_prefix: prefix.and_then(|prefix| u8::try_from(prefix).ok()).unwrap_or(default.ipv6_prefix),
        ratelimit_fields: match written.ratelimit_fields.as_ref().map(|field| field.value) {
            None | Some(FieldsWord::Always) => RatelimitFields::Always,
            Some(FieldsWord::Refused) => RatelimitFields::Refused,
            Some(FieldsWord::Never) => RatelimitFields::Never,
        },
        legacy_ratelimit_fields: written.legacy_ratelimit_fields.as_ref().map(|field| match field.value.0 {
            LegacyWord::Seconds => LegacyReset::Seconds,
            LegacyWord::Epoch => LegacyReset::UnixTime,
        }),
        guard: match written.guard.as_ref().map(|field| field.value) {
            None | Some(GuardWord::Warn) => Guard::Warn,
            Some(GuardWord::Refuse) => Guard::Refuse,
        },
        debug_headers: written.debug_headers.as_ref().is_some_and(|field| field.value),
    }
}

/// Where others can reach it, the admin API must ask for a token.
fn open_admin(written: Option<&ServerDoc>, told: Option<SocketAddr>, problems: &mut Problems) {
    let field = written.and_then(|server| server.admin.as_ref());
    let Some(address) = told.or(field.map(|field| field.value)) else { return };
    let has_token = written.is_some_and(|server| server.admin_token.is_some());
    if address.ip().to_canonical().is_loopback() || has_token || problems.mentions("server.admin_token") {
        return;
    }
    let message = format!("admin {address} can be reached by others and asks for no token");
    let problem = Problem::new(Code::OpenAdmin, message).path("server.admin");
    let token = problems.inner_entry("admin_token", "env", "\"TIDEGATE_TOKEN\"");
    let port = address.port();
    problems.push(match (told, field) {
        (None, Some(field)) => {
            problem.at(field.span).label(format!("add {token}, or write \"127.0.0.1:{port}\""))
        }
        // The command line has no lines to point at.
        _ => problem.help(format!("add {token} to `server`, or ask for 127.0.0.1:{port}")),
    });
}

/// Where a secret is, by the path of its key and a variable that could hold it.
pub(super) fn secret(
    field: &Field<SecretDoc>,
    path: &str,
    variable: &str,
    problems: &mut Problems,
) -> Option<Secret> {
    let name = path.rsplit('.').next().unwrap_or(path);
    let what = if name == "admin_token" { "token" } else { "key" };
    for (key, written) in [("env", &field.value.env), ("file", &field.value.file)] {
        if let Some(empty) = written.as_ref().filter(|written| written.value.is_empty()) {
            let problem = Problem::new(Code::BadName, format!("`{key}` of `{name}` is empty"));
            let problem = problem.at(empty.span).path(format!("{path}.{key}"));
            problems.push(problem.label(format!("say where the {what} is")));
        }
    }
    match (&field.value.env, &field.value.file) {
        (Some(env), None) => Some(Secret::Env(env.value.clone())),
        (None, Some(file)) => Some(Secret::File(file.value.clone())),
        (Some(_), Some(file)) => {
            let message = format!("`{name}` has both `env` and `file`");
            let problem = Problem::new(Code::TwoPlaces, message).at(file.key_span);
            problems.push(problem.path(path).label("remove one of them"));
            None
        }
        (None, None) => {
            if !problems.mentions(path) {
                let message = format!("`{name}` does not say where the {what} is");
                let problem = Problem::new(Code::MissingKey, message);
                let entry = problems.inner_entry(name, "env", variable);
                problems.push(problem.at(field.key_span).path(path).label(format!("write {entry}")));
            }
            None
        }
    }
}

fn trusted(written: &ServerDoc, problems: &mut Problems) -> Vec<Network> {
    let path = "server.trusted_proxies";
    let Some(list) = &written.trusted_proxies else { return Vec::new() };
    if list.value.len() > MOST_NETWORKS {
        let message =
            format!("`trusted_proxies` has {} networks, more than {MOST_NETWORKS}", list.value.len());
        let problem = Problem::new(Code::TooMany, message).at(list.key_span).path(path);
        problems.push(problem.label("write larger networks"));
    }
    for network in list.value.iter().filter(|network| network.value.is_everybody()) {
        let message =
            format!("trusted_proxies {} believes anybody who says it sends for others", network.value);
        let problem = Problem::new(Code::TrustsEverybody, message).at(network.span).path(path);
        problems.push(problem.label("write the networks of your proxies"));
    }
    list.value.iter().map(|network| network.value).collect()
}

/// What callers say of their criticality is believed from trusted proxies only. Whoever embeds the gate has no upstream
/// here, and knows by itself whom to believe.
fn criticality_is_heard(document: &PolicyDoc, problems: &mut Problems) {
    let path = "criticality.from";
    let trusted = document.server.as_ref().and_then(|server| server.value.trusted_proxies.as_ref());
    let is_heard = trusted.is_some_and(|list| !list.value.is_empty());
    if is_heard || document.upstream.is_none() || problems.mentions("server.trusted_proxies") {
        return;
    }
    let from = document.criticality.as_ref().and_then(|written| written.value.from.as_ref());
    if let Some(from) = from.filter(|from| !from.value.0.is_empty()) {
        let message = "nobody is trusted to say how critical a request is, so it is never read";
        let problem = Problem::new(Code::NobodyTrusted, message).at(from.span).path(path);
        let entry = problems.entry("trusted_proxies", "[\"10.0.0.0/8\"]");
        problems.push(problem.label(format!("add {entry} to `server`, with the networks of your proxies")));
    }
}

fn client_address(written: &ServerDoc, trusted: &[Network], problems: &mut Problems) -> ClientAddress {
    let path = "server.client_address";
    let Some(field) = &written.client_address else { return ClientAddress::default() };
    let is_unheard = trusted.is_empty() && !problems.mentions("server.trusted_proxies");
    let code = match field.value {
        ClientAddressWord::XForwardedFor => return ClientAddress::XForwardedFor,
        ClientAddressWord::Forwarded => Code::NobodyTrusted,
        ClientAddressWord::ProxyProtocol => Code::ProxyProtocolFromNobody,
    };
    if is_unheard {
        let message = match code {
            Code::NobodyTrusted => "nobody is trusted to send `forwarded`, so it is never read",
            _ => "nobody is trusted to speak the PROXY protocol",
        };
        let problem = Problem::new(code, message).at(field.span).path(path);
        let entry = problems.entry("trusted_proxies", "[\"10.0.0.0/8\"]");
        problems.push(problem.label(format!("add {entry}, with the networks of your proxies")));
    }
    match field.value {
        ClientAddressWord::XForwardedFor => ClientAddress::XForwardedFor,
        ClientAddressWord::Forwarded => ClientAddress::Forwarded,
        ClientAddressWord::ProxyProtocol => ClientAddress::ProxyProtocol,
    }
}
