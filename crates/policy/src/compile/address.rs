use std::collections::BTreeMap;
use std::net::SocketAddr;

use super::check_name;
use crate::document::read::Either;
use crate::document::top::PolicyDoc;
use crate::policy::Addresses;
use crate::problem::{Code, Problem, Problems};
use crate::text::Span;

pub(super) fn compile(document: &PolicyDoc, problems: &mut Problems) -> Addresses {
    let admin = document.server.as_ref().and_then(|server| server.value.admin.as_ref());
    if let Some(field) = admin.filter(|field| !field.value.ip().is_loopback()) {
        let message = format!("admin {} can be reached by others and asks for no token", field.value);
        let problem = Problem::new(Code::OpenAdmin, message).at(field.span).path("server.admin");
        problems.push(problem.label(format!("write \"127.0.0.1:{}\"", field.value.port())));
    }
    Addresses {
        listeners: listeners(document, problems),
        upstreams: upstreams(document, problems),
        admin: admin.map(|field| field.value),
    }
}

fn listeners(document: &PolicyDoc, problems: &mut Problems) -> Vec<(String, SocketAddr)> {
    let mut found: Vec<(String, SocketAddr)> = Vec::new();
    if let Some(listen) = &document.listen {
        found.push(("default".to_owned(), listen.value));
    }
    for listener in document.listener.iter().flat_map(|listeners| &listeners.value) {
        let path = format!("listener[{}]", found.len() - usize::from(document.listen.is_some()));
        let default = || match found.len() {
            0 => "default".to_owned(),
            others => format!("listener_{}", others + 1),
        };
        let name = listener.value.name.as_ref();
        let span = name.map_or(listener.span, |name| name.span);
        let name = name.map_or_else(default, |name| name.value.clone());
        check_name("listener", &name, span, &path, problems);
        let Some(bind) = &listener.value.bind else { continue };
        if found.iter().any(|(other, _)| *other == name) {
            problems.push(twice(format!("there are two listeners `{name}`"), span, path));
        } else if let Some((other, _)) = found.iter().find(|(_, address)| *address == bind.value) {
            let message = format!("listeners `{other}` and `{name}` both bind {}", bind.value);
            problems.push(twice(message, bind.span, path));
        }
        found.push((name, bind.value));
    }
    found
}

fn twice(message: String, span: Span, path: String) -> Problem {
    Problem::new(Code::NameTwice, message).at(span).path(path).label("change one of them")
}

fn upstreams(document: &PolicyDoc, problems: &mut Problems) -> BTreeMap<String, Vec<String>> {
    let Some(upstream) = &document.upstream else { return BTreeMap::new() };
    let tables = match &upstream.value {
        Either::Single(url) => return BTreeMap::from([("default".to_owned(), vec![url.0.clone()])]),
        Either::Larger(tables) => tables,
    };
    let mut found = BTreeMap::new();
    for (name, table) in &tables.0 {
        let path = format!("upstream.{name}");
        check_name("upstream", name, table.key_span, &path, problems);
        let endpoints = table.value.endpoints.as_ref();
        if let Some(empty) = endpoints.filter(|list| list.value.is_empty() && !problems.mentions(&path)) {
            let problem = Problem::new(Code::MissingKey, format!("upstream `{name}` has no endpoints"));
            problems.push(problem.at(empty.span).path(path).label("add \"http://127.0.0.1:3000\""));
        }
        let urls = endpoints.iter().flat_map(|endpoints| &endpoints.value).map(|url| url.value.0.clone());
        found.insert(name.clone(), urls.collect());
    }
    found
}
