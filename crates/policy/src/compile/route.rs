//! Routes: which requests go where, and which rules they meet.

use std::sync::Arc;

use tidegate_core::Cost;

use super::rule::CompiledRule;
use super::{check_name, degrade, line, matcher, twice, unknown_rule, unknown_upstream};
use crate::document::read::{Either, Field, Named};
use crate::document::route::{RouteDoc, Upgrade};
use crate::document::top::PolicyDoc;
use crate::document::values::method;
use crate::policy::{Line, MOST_RULES_A_ROUTE, Matcher, MethodCosts, Route, Upstream, UpstreamProtocol};
use crate::problem::{Code, Problem, Problems};
use crate::quantity::shown;
use crate::text::{Positions, Span};

pub(super) fn compile(
    document: &PolicyDoc,
    rules: &[CompiledRule<'_>],
    upstreams: &[Arc<Upstream>],
    positions: &Positions<'_>,
    problems: &mut Problems,
) -> Vec<Route> {
    let written: &[Field<RouteDoc>] = document.route.as_ref().map_or(&[], |routes| &routes.value);
    if document.route.is_none() || written.is_empty() {
        return vec![everything(document, rules, upstreams, problems)];
    }
    let mut routes: Vec<Route> = Vec::with_capacity(written.len());
    for (index, field) in written.iter().enumerate() {
        let path = format!("route[{index}]");
        let route = route(index, field, rules, upstreams, positions, problems);
        let name = field.value.name.as_ref().map_or(field.span, |name| name.span);
        check_name("route", &route.name, name, &path, problems);
        if routes.iter().any(|other| other.name == route.name) {
            let problem = Problem::new(Code::NameTwice, format!("there are two routes `{}`", route.name));
            problems.push(problem.at(name).path(format!("{path}.name")).label("change one of them"));
        }
        let is_read = |index: usize| !problems.mentions(&format!("route[{index}].match"));
        let mut earlier =
            routes.iter().enumerate().filter(|(earlier, _)| is_read(*earlier) && is_read(index));
        if let Some((_, earlier)) = earlier.find(|(_, earlier)| earlier.matcher.covers(&route.matcher)) {
            let message = format!("route `{}` is never reached: `{}` takes it all", route.name, earlier.name);
            let problem = Problem::new(Code::NeverReached, message).at(name).path(path);
            problems.push(problem.label(format!("move it before `{}`", earlier.name)));
        }
        routes.push(route);
    }
    unused_upstreams(document, &routes, problems);
    if !upstreams.is_empty() {
        all_are_taken(written, &routes, problems);
    }
    routes
}

/// Where requests are sent on, one that no route takes has nowhere to go.
fn all_are_taken(written: &[Field<RouteDoc>], routes: &[Route], problems: &mut Problems) {
    let takes_all = |route: &Route| route.matcher.covers(&Matcher::default());
    let mut indices = 0..written.len();
    let is_unread = indices.any(|index| problems.mentions(&format!("route[{index}].match")));
    if let Some(last) = written.last().filter(|_| !is_unread && !routes.iter().any(takes_all)) {
        let message = "no route takes everything: requests that none of them takes get 404";
        let problem = Problem::new(Code::NotAllTaken, message).at(last.span).path("route");
        problems.push(problem.label("add a route without `match` after it"));
    }
}

/// What stands in where the file has no routes.
fn everything(
    document: &PolicyDoc,
    rules: &[CompiledRule<'_>],
    upstreams: &[Arc<Upstream>],
    problems: &mut Problems,
) -> Route {
    let all: Vec<usize> = (0..rules.len()).collect();
    if let Some(last) = rules.last().filter(|_| checks(&all, rules) > MOST_RULES_A_ROUTE) {
        let who = "without routes, every request";
        problems.push(too_many(who, checks(&all, rules), last.key_span, "rule"));
    }
    let upstream = default_upstream(upstreams);
    if let Some(field) = document.upstream.as_ref().filter(|_| upstream.is_none()) {
        let message =
            "there are several upstreams, none called `default`, and no routes to choose between them";
        let problem = Problem::new(Code::UnknownUpstream, message).at(field.key_span).path("upstream");
        problems.push(problem.label("add routes, or call one of them `default`"));
    }
    Route {
        name: "default".to_owned(),
        line: Line::NOWHERE,
        matcher: Matcher::default(),
        upstream,
        rules: all,
        cost: MethodCosts::ONE,
        is_exempt: false,
        upgrades: Vec::new(),
        degrade: None,
    }
}

fn route(
    index: usize,
    field: &Field<RouteDoc>,
    rules: &[CompiledRule<'_>],
    upstreams: &[Arc<Upstream>],
    positions: &Positions<'_>,
    problems: &mut Problems,
) -> Route {
    let (written, path) = (&field.value, format!("route[{index}]"));
    let default_name = || format!("route_{}", index + 1);
    let name = written.name.as_ref().map_or_else(default_name, |name| name.value.clone());
    let is_exempt = written.exempt.as_ref().is_some_and(|exempt| exempt.value);
    let chosen = written.rules.as_ref().filter(|rules| !rules.value.is_empty());
    if let Some(chosen) = chosen.filter(|_| is_exempt) {
        let message = format!("route `{}` is exempt and lists rules", shown(&name));
        let problem = Problem::new(Code::ExemptWithRules, message).at(chosen.key_span);
        problems.push(problem.path(format!("{path}.rules")).label("remove this, or `exempt`"));
    }
    let matches = written.matches.as_ref().map(|field| &field.value);
    let upstream = upstream(&name, field, upstreams, &path, problems);
    upgrades_speak_http1(written, upstreams, upstream.as_deref(), &path, problems);
    Route {
        line: line(positions, field.span),
        matcher: matcher::compile(matches, &format!("{path}.match"), problems),
        upstream,
        rules: rules_of(&name, chosen, rules, &path, problems),
        cost: written.cost.as_ref().map_or(MethodCosts::ONE, |cost| costs(&cost.value, &path, problems)),
        is_exempt,
        upgrades: upgrades(written, &path, problems),
        degrade: degrade::compile(&name, written, &path, problems),
        name,
    }
}

fn upgrades_speak_http1(
    written: &RouteDoc,
    upstreams: &[Arc<Upstream>],
    chosen: Option<&str>,
    path: &str,
    problems: &mut Problems,
) {
    let list = written.upgrade.as_ref().filter(|list| !list.value.is_empty());
    let other = upstreams.iter().find(|upstream| Some(upstream.name.as_str()) == chosen);
    let other = other.filter(|upstream| match upstream.protocol {
        UpstreamProtocol::Http1 => false,
        UpstreamProtocol::H2 => true,
        UpstreamProtocol::Auto => upstream.endpoints.iter().any(|endpoint| endpoint.is_tls),
    });
    if let (Some(list), Some(upstream)) = (list, other) {
        let message =
            format!("upstream `{}` may be spoken to in HTTP/2, which has no upgrades", upstream.name);
        let problem = Problem::new(Code::UpgradeNeedsHttp1, message).at(list.span);
        let fix = problems.entry("protocol", "\"http/1.1\"");
        problems.push(problem.path(format!("{path}.upgrade")).label(format!("write {fix} in the upstream")));
    }
}

fn upgrades(written: &RouteDoc, path: &str, problems: &mut Problems) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for field in written.upgrade.iter().flat_map(|list| &list.value) {
        let name = match field.value {
            Upgrade::Websocket => "websocket",
        };
        if found.iter().any(|other| other == name) {
            let message = "`upgrade` names the same twice".to_owned();
            let problem = twice(message, field.span, format!("{path}.upgrade"));
            problems.push(problem.label("remove one of them"));
        } else {
            found.push(name.to_owned());
        }
    }
    found
}

fn rules_of(
    name: &str,
    chosen: Option<&Field<Vec<Field<String>>>>,
    rules: &[CompiledRule<'_>],
    path: &str,
    problems: &mut Problems,
) -> Vec<usize> {
    let Some(chosen) = chosen else { return Vec::new() };
    let path = format!("{path}.rules");
    let mut found = Vec::new();
    for field in &chosen.value {
        match rules.iter().position(|compiled| compiled.rule.name == field.value) {
            None => {
                let problem = unknown_rule(&field.value, field.span, rules, problems).path(&path);
                problems.push(problem);
            }
            Some(position) if found.contains(&position) => {
                let message = format!("route `{}` lists rule `{}` twice", shown(name), field.value);
                let problem = Problem::new(Code::NameTwice, message).at(field.span).path(&path);
                problems.push(problem.label("remove one of them"));
            }
            Some(position) => found.push(position),
        }
    }
    if checks(&found, rules) > MOST_RULES_A_ROUTE {
        let who = format!("every request of route `{}`", shown(name));
        problems.push(too_many(&who, checks(&found, rules), chosen.key_span, &path));
    }
    found
}

/// How many limits are asked: rules, and shadow values beside them.
fn checks(chosen: &[usize], rules: &[CompiledRule<'_>]) -> usize {
    let shadows = chosen.iter().filter(|index| rules[**index].rule.shadow.is_some()).count();
    chosen.len() + shadows
}

fn too_many(who: &str, count: usize, span: Span, path: &str) -> Problem {
    let message = format!("{who} meets {count} rules and shadow values, more than {MOST_RULES_A_ROUTE}");
    let problem = Problem::new(Code::TooManyRules, message);
    problem.at(span).path(path).label("split the route, or merge rules")
}

fn default_upstream(upstreams: &[Arc<Upstream>]) -> Option<String> {
    let only = upstreams.first().filter(|_| upstreams.len() == 1);
    upstreams.iter().find(|upstream| upstream.name == "default").or(only).map(|found| found.name.clone())
}

fn upstream(
    route: &str,
    field: &Field<RouteDoc>,
    upstreams: &[Arc<Upstream>],
    path: &str,
    problems: &mut Problems,
) -> Option<String> {
    let path = format!("{path}.upstream");
    let names = || upstreams.iter().map(|upstream| upstream.name.as_str());
    let Some(written) = &field.value.upstream else {
        let default = default_upstream(upstreams);
        if default.is_none() && !upstreams.is_empty() {
            let message = format!("route `{}` does not say to which upstream", shown(route));
            let problem = Problem::new(Code::UnknownUpstream, message).at(field.span).path(path);
            let name = format!("\"{}\"", names().next().unwrap_or_default());
            let entry = problems.entry("upstream", &name);
            problems.push(problem.label(format!("add {entry}")));
        }
        return default;
    };
    if !names().any(|name| name == written.value) {
        let problem = unknown_upstream(&written.value, written.span, upstreams, problems);
        problems.push(problem.path(path));
    }
    Some(written.value.clone())
}

fn costs(written: &Either<Cost, Named<Cost>>, path: &str, problems: &mut Problems) -> MethodCosts {
    let by_name = match written {
        Either::Single(cost) => return MethodCosts { by_method: Vec::new(), default: *cost },
        Either::Larger(by_name) => by_name,
    };
    let mut costs = MethodCosts::ONE;
    for (name, cost) in &by_name.0 {
        match name.as_str() {
            "default" => costs.default = cost.value,
            name => match method(name) {
                Ok(method) => costs.by_method.push((method.0, cost.value)),
                Err(problem) => {
                    let message = format!("cost of {}", problem.message);
                    let found = Problem::new(problem.code, message).at(cost.key_span);
                    problems.push(found.path(format!("{path}.cost")).help(problem.help));
                }
            },
        }
    }
    costs
}

fn unused_upstreams(document: &PolicyDoc, routes: &[Route], problems: &mut Problems) {
    let Some(Either::Larger(tables)) = document.upstream.as_ref().map(|field| &field.value) else { return };
    // A name that was mistyped is the reason then, and has been reported.
    if problems.has(Code::UnknownUpstream) {
        return;
    }
    for (name, table) in &tables.0 {
        if !routes.iter().any(|route| route.upstream.as_ref() == Some(name)) {
            let message = format!("no route uses upstream `{}`", shown(name));
            let problem = Problem::new(Code::UnusedUpstream, message).at(table.key_span);
            problems.push(problem.path(format!("upstream.{name}")).label("remove it, or name it in a route"));
        }
    }
}
