//! What is legal by itself and wrong together.

use tidegate_core::Cost;

use super::limit::Placed;
use super::rule::CompiledRule;
use crate::document::top::PolicyDoc;
use crate::policy::{KeySource, Limit, Rate, Route, Shape};
use crate::problem::{Code, Problem, Problems};
use crate::quantity::shown;

/// No request may cost more than can ever be paid.
pub(super) fn costs(
    rules: &[CompiledRule<'_>],
    overrides: &[(usize, Placed)],
    routes: &[Route],
    problems: &mut Problems,
) {
    for (index, compiled) in rules.iter().enumerate() {
        let own = overrides.iter().filter(|(rule, _)| *rule == index).map(|(_, placed)| placed);
        for placed in compiled.limits.iter().chain(own) {
            let Limit::Rate(rate) = &placed.limit else { continue };
            let Some(most) = most(rate) else { continue };
            if let Some(cost) = &compiled.rule.cost {
                if cost.estimate > most {
                    let problem = below(placed, cost.estimate, "its own estimate", problems);
                    problems.push_in(placed.file, problem);
                }
                continue;
            }
            let users = routes.iter().filter(|route| !route.is_exempt && route.rules.contains(&index));
            for route in users.filter(|route| dearest(route) > most) {
                let whose = format!("route `{}`", shown(&route.name));
                let problem = below(placed, dearest(route), &whose, problems);
                problems.push_in(placed.file, problem);
            }
        }
    }
}

fn below(placed: &Placed, cost: Cost, whose: &str, problems: &Problems) -> Problem {
    let what = if whose.starts_with("route") {
        format!("the cost {cost} of {whose}")
    } else {
        format!("{whose} {cost}")
    };
    let message = format!("{} is below {what}: no such request could ever pass", placed.number);
    let (key, _) = placed.number.split_once(' ').unwrap_or_default();
    let problem =
        Problem::new(Code::BurstBelowCost, message).at(placed.span).path(format!("{}.{key}", placed.path));
    problem.help(match placed.is_default {
        true => format!(
            "without `burst`, it is the number in the quota: write {} at least",
            problems.entry("burst", &cost.to_string())
        ),
        false => format!("raise {key} to {} at least, or lower the cost", least(placed, cost)),
    })
}

/// The burst that a cost needs: of a leaky bucket, the one that passes does not wait.
fn least(placed: &Placed, cost: Cost) -> Cost {
    match &placed.limit {
        Limit::Rate(rate) if matches!(rate.shape, Shape::LeakyBucket(_)) => cost.minus(Cost::ONE),
        Limit::Rate(_) | Limit::Concurrency(_) | Limit::Reserve(_) | Limit::Shed(_) => cost,
    }
}

/// The most that can be taken at once, where there is such a bound.
fn most(rate: &Rate) -> Option<Cost> {
    match rate.shape {
        Shape::TokenBucket(_)
        | Shape::LeakyBucket(_)
        | Shape::FixedWindow(_)
        | Shape::Calendar(_)
        | Shape::SlidingWindow(_)
        | Shape::SlidingLog(_) => Some(rate.most()),
        // They grant any request at once and let the next one wait for it.
        Shape::Smooth(_) | Shape::WarmUp(_) => None,
    }
}

/// What the dearest request of a route costs.
fn dearest(route: &Route) -> Cost {
    if route.matcher.methods.is_empty() {
        let by_method = route.cost.by_method.iter().map(|(_, cost)| *cost);
        return by_method.fold(route.cost.default, Cost::max);
    }
    route.matcher.methods.iter().map(|method| route.cost.of(method)).max().unwrap_or(route.cost.default)
}

/// Every rule should be met by somebody, and every plan have somebody on it.
pub(super) fn use_of_rules(
    document: &PolicyDoc,
    rules: &[CompiledRule<'_>],
    routes: &[Route],
    problems: &mut Problems,
) {
    let has_table = document.caller.as_ref().is_some_and(|caller| caller.value.table.is_some());
    for (index, compiled) in rules.iter().enumerate() {
        let name = &compiled.rule.name;
        let is_used = routes.iter().any(|route| route.rules.contains(&index));
        // A name that was mistyped is the reason then, and has been reported.
        if !is_used && !problems.has(Code::UnknownRule) {
            let problem = Problem::new(Code::UnusedRule, format!("no route uses rule `{}`", shown(name)));
            let problem = problem.at(compiled.key_span).path(format!("rule.{name}"));
            problems.push(problem.label("add it to the `rules` of a route"));
        }
        let is_empty = !has_table && compiled.settings.has_numbers();
        if let Some(plans) = compiled.written.plans.as_ref().filter(|_| is_empty) {
            let message =
                format!("nobody is on the plans of rule `{}`: there is no table of callers", shown(name));
            let problem = Problem::new(Code::PlansWithoutCallers, message).at(plans.key_span);
            problems.push(problem.path(format!("rule.{name}.plans")).label("add `table` to `[caller]`"));
        }
    }
}

/// A header that a request may lack should not be all there is to tell callers apart.
pub(super) fn keys(document: &PolicyDoc, rules: &[CompiledRule<'_>], problems: &mut Problems) {
    for compiled in rules {
        let Some(key) = &compiled.written.key else { continue };
        if key.value.0.iter().any(|source| source.value == KeySource::ClientIp) {
            continue;
        }
        let headers = key.value.0.iter().filter_map(|source| match &source.value {
            KeySource::Header(name) => Some((name, source.span)),
            KeySource::Caller
            | KeySource::ClientIp
            | KeySource::Path
            | KeySource::Route
            | KeySource::Global => None,
        });
        for (header, span) in headers {
            let name = &compiled.rule.name;
            let message =
                format!("requests without `{}` share one counter of rule `{}`", shown(header), shown(name));
            let problem = Problem::new(Code::MayBeAbsent, message).at(span).path(format!("rule.{name}.key"));
            let key = problems.entry("key", "\"caller\"");
            let from = problems.entry("from", &format!("[\"header:{header}\", \"client-ip\"]"));
            let help = format!("to count them by address, write {key} here and {from} in `caller`");
            problems.push(problem.help(help));
        }
    }
    let from = document.caller.as_ref().and_then(|caller| caller.value.from.as_ref());
    let Some(from) = from.filter(|from| !from.value.0.is_empty()) else { return };
    if !from.value.0.iter().any(|source| source.value.0 == KeySource::ClientIp) {
        let message = "callers without any of these headers share one counter of each rule";
        let problem = Problem::new(Code::MayBeAbsent, message).at(from.span).path("caller.from");
        problems.push(problem.help("add \"client-ip\" as the last source to tell them apart by address"));
    }
}
