//! What is legal by itself and wrong together.

use tidegate_core::Cost;
use tidegate_core::keyed::{CellTable, MaxKeys};
use tidegate_core::rate::Algorithm;

use super::limit::Placed;
use super::rule::CompiledRule;
use crate::document::top::PolicyDoc;
use crate::policy::{KEYS_OF_ONE_CALLER, KeySource, Limit, Rate, Route, Rule, Shape};
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
        // Their bound is what they store and grant within `max_wait`, not a number that stands in the file.
        Shape::Smooth(_) | Shape::WarmUp(_) => None,
    }
}

/// What the counters of one rule may come to take from the heap while its callers come and go. A small machine has
/// that much to spare; of one that has more, a single rule should not take more either.
const MOST_HEAP: usize = 1 << 30;

/// Where counters grow with what is asked of them, their growth has a bound that a machine can bear.
pub(super) fn memory(rules: &[CompiledRule<'_>], overrides: &[(usize, Placed)], problems: &mut Problems) {
    for (index, compiled) in rules.iter().enumerate() {
        let rule = &*compiled.rule;
        let (many, few) = told_apart(rule);
        // The rule's own limit and those of its plans share a table; every other limit has its own.
        let own = rule.plans.values().chain([&rule.limit]).map(|limit| heap(limit, many)).max();
        let others = rule.per_criticality.values().chain(&rule.shadow).map(|limit| heap(limit, many));
        let everybody = own.into_iter().chain(others).fold(0, usize::saturating_add);
        let callers = overrides.iter().filter(|(of, _)| *of == index).map(|(_, own)| heap(&own.limit, few));
        let callers = callers.fold(0, usize::saturating_add);
        if everybody.saturating_add(callers) > MOST_HEAP {
            let problem = too_much(compiled, (everybody, callers), many, problems);
            problems.push(problem);
        }
    }
}

/// How many keys the rule tells apart, and how many of one caller that has its own limit.
fn told_apart(rule: &Rule) -> (usize, usize) {
    match rule.key.0.as_slice() {
        [] | [KeySource::Global] => (1, 1),
        [_] => (rule.max_keys.get(), 1),
        _ => (rule.max_keys.get(), KEYS_OF_ONE_CALLER),
    }
}

fn heap(limit: &Limit, keys: usize) -> usize {
    let Limit::Rate(rate) = limit else { return 0 };
    match &rate.shape {
        Shape::SlidingLog(log) => heap_of(log, keys),
        Shape::SlidingWindow(window) => heap_of(window, keys),
        Shape::TokenBucket(_)
        | Shape::LeakyBucket(_)
        | Shape::Smooth(_)
        | Shape::WarmUp(_)
        | Shape::FixedWindow(_)
        | Shape::Calendar(_) => 0,
    }
}

/// Of a table for one key, one cell at most is ever used.
fn heap_of<A: Algorithm + Clone>(rule: &A, keys: usize) -> usize {
    match MaxKeys::new(keys) {
        Ok(many) if keys > 1 => CellTable::most_heap(rule, many),
        Ok(_) | Err(_) => rule.most_heap(),
    }
}

/// `everybody` is what the tables of all callers may take, `callers` what those of single ones may.
fn too_much(
    compiled: &CompiledRule<'_>,
    (everybody, callers): (usize, usize),
    keys: usize,
    problems: &Problems,
) -> Problem {
    let (name, most_mib) = (shown(&compiled.rule.name), MOST_HEAP >> 20);
    let mib = everybody.saturating_add(callers).div_ceil(1 << 20);
    let message =
        format!("rule `{name}` could come to take {mib} MiB for {keys} keys, more than {most_mib} MiB");
    let problem = Problem::new(Code::TooMuchMemory, message).path(format!("rule.{}", compiled.rule.name));
    let at = compiled.limits.first().map_or(compiled.key_span, |own| own.span);
    // Tables have a few cells more than their keys need, so a little less than in proportion.
    let left = MOST_HEAP.saturating_sub(callers) as u128;
    let fitting = keys as u128 * left / everybody.max(1) as u128 * 99 / 100;
    let otherwise = "use `sliding_window` without buckets";
    problem.at(at).help(match fitting {
        0 => otherwise.to_owned(),
        _ => format!("write {} at most, or {otherwise}", problems.entry("max_keys", &fitting.to_string())),
    })
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
