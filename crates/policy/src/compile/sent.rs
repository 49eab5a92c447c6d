//! Header fields that rules cannot be about, since no service gets in them what a caller wrote.
//!
//! A field that ends at the next hop, or that a gateway writes itself, is invented by its caller at no cost: every value
//! would be a key of its own, and the service would see none of them.

use crate::document::read::{Field, Named};
use crate::document::route::MatchDoc;
use crate::document::top::PolicyDoc;
use crate::policy::KeySource;
use crate::problem::{Code, Problem, Problems};
use crate::quantity::shown;
use crate::text::Span;

/// What asks for a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asks {
    Key,
    Match,
}

/// Finds keys and conditions that are about such fields.
pub(super) fn check(document: &PolicyDoc, problems: &mut Problems) {
    // Who embeds the gate is no gateway: nothing is written there, and what is for one hop is still for one hop.
    let is_gateway = document.upstream.is_some();
    let mut refuse = |name: &str, span: Span, path: String, asks: Asks| {
        if let Some((why, instead)) = never_sent(&name.to_ascii_lowercase(), asks, is_gateway) {
            let message = format!("header field `{}` {why}", shown(name));
            problems.push(Problem::new(Code::NeverSent, message).at(span).path(path).label(instead));
        }
    };
    for (name, rule) in document.rule.iter().flat_map(|rules| &rules.value.0) {
        for source in rule.value.key.iter().flat_map(|key| &key.value.0) {
            if let KeySource::Header(header) = &source.value {
                refuse(header, source.span, format!("rule.{name}.key"), Asks::Key);
            }
        }
    }
    let caller = document.caller.as_ref().and_then(|caller| caller.value.from.as_ref());
    for source in caller.iter().flat_map(|from| &from.value.0) {
        if let KeySource::Header(header) = &source.value.0 {
            refuse(header, source.span, "caller.from".to_owned(), Asks::Key);
        }
    }
    for (path, matcher) in matchers(document) {
        for (name, value) in fields(matcher) {
            refuse(name, value.key_span, format!("{path}.match.header"), Asks::Match);
        }
    }
}

fn matchers(document: &PolicyDoc) -> impl Iterator<Item = (String, &MatchDoc)> {
    let routes = document.route.iter().flat_map(|routes| &routes.value).enumerate();
    let routes = routes.filter_map(|(index, route)| Some((index, route.value.matches.as_ref()?)));
    let routes = routes.map(|(index, matcher)| (format!("route[{index}]"), &matcher.value));
    let assigned = document.criticality.iter().filter_map(|written| written.value.assign.as_ref());
    let assigned = assigned.flat_map(|list| &list.value).enumerate();
    let assigned = assigned.filter_map(|(index, assign)| Some((index, assign.value.matches.as_ref()?)));
    routes.chain(assigned.map(|(index, matcher)| (format!("criticality.assign[{index}]"), &matcher.value)))
}

fn fields(matcher: &MatchDoc) -> &[(String, Field<String>)] {
    matcher.header.as_ref().map_or(&[], |Field { value: Named(fields), .. }| fields)
}

/// Why no service gets what a caller wrote in a field, and what to write instead.
fn never_sent(name: &str, asks: Asks, is_gateway: bool) -> Option<(&'static str, &'static str)> {
    match name {
        "connection" | "http2-settings" | "keep-alive" | "proxy-connection" | "te" | "transfer-encoding"
        | "upgrade" => Some(("is for one hop only: it ends here", "use a field that goes on")),
        "content-length" => {
            Some(("is about the way a body is sent, not about the body", "use another field"))
        }
        "forwarded" | "x-forwarded-for" if is_gateway => {
            Some(("is written by every proxy on the way", "write \"client-ip\" in a key"))
        }
        "via" | "max-forwards" if is_gateway => {
            Some(("is written by every proxy on the way", "use another field"))
        }
        "baggage" | "x-criticality" if is_gateway => {
            Some(("is written by the gateway, with the criticality it found", "use `from` of `criticality`"))
        }
        "x-forwarded-proto" if is_gateway && asks == Asks::Key => {
            Some(("is written by the gateway, unless a trusted proxy did", "use it in a `match`"))
        }
        _ => None,
    }
}
