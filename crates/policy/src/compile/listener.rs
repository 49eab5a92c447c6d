//! Where callers connect to, and how much of a connection is borne with.

use std::net::{IpAddr, SocketAddr};

use super::range::{count, patience, size};
use super::{check_name, twice};
use crate::document::read::Field;
use crate::document::server::{ListenerDoc, Protocol, TlsDoc};
use crate::document::top::PolicyDoc;
use crate::policy::{Listener, Protocols, Tls};
use crate::problem::{Code, Problem, Problems};

/// The most connections: Linux gives a process no more files than that, unless it is told to.
const MOST_CONNECTIONS: u64 = 1_048_576;

/// The most header fields of a request that anybody may ask for.
const MOST_HEADERS: u64 = 1_024;

/// The least that the HTTP library reads into, and the most that one connection may hold.
const HEADER_BYTES: std::ops::RangeInclusive<u64> = 8 * 1_024..=1_024 * 1_024;

pub(super) fn compile(
    document: &PolicyDoc,
    admin: Option<SocketAddr>,
    problems: &mut Problems,
) -> Vec<Listener> {
    let mut found: Vec<Listener> = Vec::new();
    if let Some(listen) = &document.listen {
        beside_admin("listen", listen, admin, "listen", problems);
        found.push(Listener::new("default", listen.value));
    }
    for (index, field) in document.listener.iter().flat_map(|listeners| &listeners.value).enumerate() {
        let path = format!("listener[{index}]");
        let default = || match found.len() {
            0 => "default".to_owned(),
            others => format!("listener_{}", others + 1),
        };
        let name = field.value.name.as_ref();
        let span = name.map_or(field.span, |name| name.span);
        let name = name.map_or_else(default, |name| name.value.clone());
        check_name("listener", &name, span, &path, problems);
        let Some(bind) = &field.value.bind else { continue };
        beside_admin(&format!("listener `{name}`"), bind, admin, &path, problems);
        if found.iter().any(|other| other.name == name) {
            problems.push(twice(format!("there are two listeners `{name}`"), span, path.clone()));
        } else if let Some(other) = found.iter().find(|other| collide(other.bind, bind.value)) {
            let message =
                both(&format!("listeners `{}`", other.name), other.bind, &format!("`{name}`"), bind);
            problems.push(twice(message, bind.span, path.clone()));
        }
        found.push(listener(&field.value, Listener::new(name, bind.value), &path, problems));
    }
    found
}

fn beside_admin(
    what: &str,
    bind: &Field<SocketAddr>,
    admin: Option<SocketAddr>,
    path: &str,
    problems: &mut Problems,
) {
    if let Some(admin) = admin.filter(|admin| collide(*admin, bind.value)) {
        problems.push(twice(both("admin", admin, what, bind), bind.span, path.to_owned()));
    }
}

fn both(one: &str, at: SocketAddr, other: &str, bind: &Field<SocketAddr>) -> String {
    match at == bind.value {
        true => format!("{one} and {other} both bind {at}"),
        false => format!("{one} and {other} are in each other's way: {at} and {}", bind.value),
    }
}

/// Whether two cannot both listen. Port 0 is any that is free, so there each gets its own; all addresses of the machine
/// have its loopback among them, and those of IPv6 the ones of IPv4.
fn collide(one: SocketAddr, other: SocketAddr) -> bool {
    let (a, b) = (one.ip().to_canonical(), other.ip().to_canonical());
    let takes_all = |ip: IpAddr, beside: IpAddr| ip.is_unspecified() && (ip.is_ipv6() || beside.is_ipv4());
    one.port() == other.port() && one.port() != 0 && (a == b || takes_all(a, b) || takes_all(b, a))
}

fn listener(written: &ListenerDoc, default: Listener, path: &str, problems: &mut Problems) -> Listener {
    let of = |key: &str| format!("{path}.{key}");
    let connections = |field: &Option<Field<u64>>, key: &str, problems: &mut Problems| {
        count(field.as_ref(), 1..=MOST_CONNECTIONS, &of(key), problems)
    };
    let header_bytes = written.max_header_bytes.as_ref();
    Listener {
        protocols: protocols(written, &of("protocols"), problems).unwrap_or(default.protocols),
        tls: written.tls.as_ref().and_then(|field| tls(&field.value, &of("tls"), problems)),
        max_connections: connections(&written.max_connections, "max_connections", problems)
            .unwrap_or(default.max_connections),
        max_connections_per_address: connections(
            &written.max_connections_per_address,
            "max_connections_per_address",
            problems,
        )
        .unwrap_or(default.max_connections_per_address),
        max_header_bytes: size(
            header_bytes,
            HEADER_BYTES,
            "from 8KiB to 1MiB",
            &of("max_header_bytes"),
            problems,
        )
        .unwrap_or(default.max_header_bytes),
        max_headers: count(written.max_headers.as_ref(), 1..=MOST_HEADERS, &of("max_headers"), problems)
            .unwrap_or(default.max_headers),
        head_timeout: patience(written.head_timeout.as_ref(), &of("head_timeout"), problems)
            .unwrap_or(default.head_timeout),
        body_idle_timeout: patience(written.body_idle_timeout.as_ref(), &of("body_idle_timeout"), problems)
            .unwrap_or(default.body_idle_timeout),
        idle_timeout: patience(written.idle_timeout.as_ref(), &of("idle_timeout"), problems)
            .unwrap_or(default.idle_timeout),
        ..default
    }
}

fn protocols(written: &ListenerDoc, path: &str, problems: &mut Problems) -> Option<Protocols> {
    let list = written.protocols.as_ref()?;
    if list.value.is_empty() && !problems.mentions(path) {
        let problem = Problem::new(Code::MissingKey, "`protocols` names none").at(list.span).path(path);
        problems.push(problem.label("add \"http/1.1\", or remove it for both"));
    }
    for (index, field) in list.value.iter().enumerate() {
        if list.value[..index].iter().any(|earlier| earlier.value == field.value) {
            let message = "`protocols` names the same twice".to_owned();
            problems.push(twice(message, field.span, path.to_owned()).label("remove one of them"));
        }
    }
    let speaks = |protocol| list.value.iter().any(|field| field.value == protocol);
    Some(Protocols { http1: speaks(Protocol::Http1), h2: speaks(Protocol::H2) })
}

fn tls(written: &TlsDoc, path: &str, problems: &mut Problems) -> Option<Tls> {
    let (cert, key) = (written.cert.as_ref()?, written.key.as_ref()?);
    for (name, field) in [("cert", cert), ("key", key)] {
        if field.value.is_empty() {
            let problem = Problem::new(Code::BadName, format!("`{name}` of `tls` names no file"));
            problems.push(problem.at(field.span).path(format!("{path}.{name}")).label("write a file"));
        }
    }
    Some(Tls { cert: cert.value.clone(), key: key.value.clone() })
}
