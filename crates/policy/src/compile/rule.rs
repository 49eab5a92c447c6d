//! Rules: what they count, whom, and with which numbers.

use std::collections::BTreeMap;
use std::sync::Arc;

use tidegate_core::{Cost, Criticality};

use super::limit::{Numbers, Placed, Settings};
use super::{Known, check_name, line, max_keys, reserve, shed};
use crate::document::read::{Field, Named};
use crate::document::rule::{Kind, LimitDoc, ModeWord, RuleCostDoc, RuleDoc};
use crate::document::top::PolicyDoc;
use crate::policy::{KeySource, KeySpec, Limit, MOST_PLANS_A_RULE, MOST_SOURCES_A_KEY, Mode, Rule, RuleCost};
use crate::problem::{Code, Problem, Problems, nearest};
use crate::quantity::shown;
use crate::text::{Positions, Span};

/// A rule, and what later checks want to know of how it was written.
pub(super) struct CompiledRule<'a> {
    pub(super) rule: Arc<Rule>,
    pub(super) written: &'a RuleDoc,
    pub(super) key_span: Span,
    /// Its limits with their places, its own first.
    pub(super) limits: Vec<Placed>,
    /// What its limits have in common.
    pub(super) settings: Settings<'a>,
}

pub(super) fn compile<'a>(
    document: &'a PolicyDoc,
    known: Known<'_>,
    positions: &Positions<'_>,
    problems: &mut Problems,
) -> Vec<CompiledRule<'a>> {
    let written = document.rule.iter().flat_map(|rules| &rules.value.0);
    let compile = |(name, field): &'a (String, Field<RuleDoc>)| rule(name, field, known, positions, problems);
    written.map(compile).collect()
}

fn rule<'a>(
    name: &str,
    field: &'a Field<RuleDoc>,
    known: Known<'_>,
    positions: &Positions<'_>,
    problems: &mut Problems,
) -> CompiledRule<'a> {
    let (written, path) = (&field.value, format!("rule.{name}"));
    check_name("rule", name, field.key_span, &path, problems);
    let what = format!("rule `{}`", shown(name));
    let kind = kind(written, &path, problems);
    if let Some(kind) = kind {
        missing(kind, field, &what, &path, problems);
    }
    let settings = Settings::new(written, kind.unwrap_or(Kind::Rate), what.clone(), path.clone(), problems);
    let own = Numbers {
        quota: written.quota.as_ref(),
        burst: written.burst.as_ref(),
        limit: written.limit.as_ref(),
    };
    let mut limits: Vec<Placed> =
        settings.limit(own, field.key_span, &what, &path, problems).into_iter().collect();
    let limit = match kind {
        Some(Kind::Rate | Kind::Concurrency) | None => limits.first().map(|own| own.limit.clone()),
        Some(Kind::Reserve) => {
            reserve::compile(written, known.upstreams, &path, problems).map(Limit::Reserve)
        }
        Some(Kind::Shed) => shed::compile(written, known.signals, &path, problems).map(Limit::Shed),
    };
    let others = others(written, &settings, &what, &path, problems);
    limits.extend(others.placed);
    let keys = max_keys(written.max_keys.as_ref(), &format!("{path}.max_keys"), problems);
    let rule = Rule {
        name: name.to_owned(),
        line: line(positions, field.key_span),
        mode: mode(written),
        key: key(written, &path, problems),
        // Where there is none, an error has been reported, and nobody gets to see this.
        limit: limit.unwrap_or(Limit::Concurrency(1)),
        plans: others.plans,
        per_criticality: others.per_criticality,
        shadow: others.shadow,
        max_keys: keys.unwrap_or(known.max_keys),
        cost: cost(written, &path, problems),
    };
    CompiledRule { rule: Arc::new(rule), written, key_span: field.key_span, limits, settings }
}

/// Limits that stand in for a rule's own.
#[derive(Default)]
struct Others {
    plans: BTreeMap<String, Limit>,
    per_criticality: BTreeMap<Criticality, Limit>,
    shadow: Option<Limit>,
    /// Those of plans and criticalities with their places.
    placed: Vec<Placed>,
}

fn others(
    written: &RuleDoc,
    settings: &Settings<'_>,
    what: &str,
    path: &str,
    problems: &mut Problems,
) -> Others {
    let mut others = Others::default();
    if !settings.has_numbers() {
        return others;
    }
    let mut vary = |name: &str, entry: &Field<LimitDoc>, group: &str, problems: &mut Problems| {
        let noun = if group == "plans" { "plan" } else { group };
        let what = format!("{noun} `{}` of {what}", shown(name));
        let limit =
            settings.vary(&entry.value, entry.key_span, what, format!("{path}.{group}.{name}"), problems)?;
        others.placed.push(limit.clone());
        Some(limit.limit)
    };
    for (plan, entry) in named(written.plans.as_ref()) {
        others.plans.extend(vary(plan, entry, "plans", problems).map(|limit| (plan.clone(), limit)));
    }
    if let Some(field) = written.plans.as_ref().filter(|field| field.value.0.len() > MOST_PLANS_A_RULE) {
        let message = format!("{what} has {} plans, more than {MOST_PLANS_A_RULE}", field.value.0.len());
        let problem = Problem::new(Code::TooMany, message).at(field.key_span);
        problems.push(problem.path(format!("{path}.plans")).label("merge some of them"));
    }
    for (level, entry) in named(written.per_criticality.as_ref()) {
        match level.parse::<Criticality>() {
            Ok(level) => {
                let limit = vary(level.as_str(), entry, "per_criticality", problems);
                others.per_criticality.extend(limit.map(|limit| (level, limit)));
            }
            Err(_) => {
                problems.push(unknown_level(level, entry.key_span, &format!("{path}.per_criticality")));
            }
        }
    }
    let shadow = written.shadow.as_ref().and_then(|entry| {
        let what = format!("shadow of {what}");
        settings.vary(&entry.value, entry.key_span, what, format!("{path}.shadow"), problems)
    });
    others.shadow = shadow.map(|shadow| shadow.limit);
    others
}

fn named<T>(group: Option<&Field<Named<T>>>) -> impl Iterator<Item = &(String, Field<T>)> {
    group.into_iter().flat_map(|group| &group.value.0)
}

/// What the rule limits, or nothing when that cannot be known.
fn kind(written: &RuleDoc, path: &str, problems: &Problems) -> Option<Kind> {
    let is_reserve = written.capacity.is_some() || written.reserve.is_some();
    match &written.kind {
        Some(kind) => Some(kind.value),
        None if written.quota.is_some() => Some(Kind::Rate),
        None if written.limit.is_some() => Some(Kind::Concurrency),
        None if is_reserve => Some(Kind::Reserve),
        None if written.target.is_some() => Some(Kind::Shed),
        // A quota that could not be read has been reported already, and so has everything unsupported.
        None if problems.mentions(path) => None,
        None => Some(Kind::Rate),
    }
}

/// Reports what a rule of this kind needs and does not have.
fn missing(kind: Kind, field: &Field<RuleDoc>, what: &str, path: &str, problems: &mut Problems) {
    let written = &field.value;
    let needed = match kind {
        Kind::Rate => [Some(("quota", written.quota.is_some(), problems.entry("quota", "\"10/s\""))), None],
        Kind::Concurrency => [Some(("limit", written.limit.is_some(), problems.entry("limit", "20"))), None],
        Kind::Reserve => {
            let entry = problems.inner_entry("reserve", "critical", "\"20%\"");
            [
                Some(("capacity", written.capacity.is_some(), problems.entry("capacity", "400"))),
                Some(("reserve", written.reserve.is_some(), entry)),
            ]
        }
        Kind::Shed => {
            let entry = problems.inner_entry("target", "cpu", "\"85%\"");
            [Some(("target", written.target.is_some(), entry)), None]
        }
    };
    for (key, is_there, entry) in needed.into_iter().flatten() {
        if !is_there && !problems.mentions(&format!("{path}.{key}")) {
            let problem = Problem::new(Code::MissingKey, format!("{what} has no `{key}`"));
            problems.push(problem.at(field.key_span).path(path).label(format!("add {entry}")));
        }
    }
}

fn mode(written: &RuleDoc) -> Mode {
    match written.mode.as_ref().map(|mode| mode.value) {
        None | Some(ModeWord::Enforce) => Mode::Enforce,
        Some(ModeWord::Shadow) => Mode::Shadow,
        Some(ModeWord::Disabled) => Mode::Disabled,
    }
}

fn key(written: &RuleDoc, path: &str, problems: &mut Problems) -> KeySpec {
    let Some(key) = &written.key else { return KeySpec(vec![KeySource::Global]) };
    if key.value.0.is_empty() && !problems.mentions(&format!("{path}.key")) {
        let problem = Problem::new(Code::MissingKey, "`key` names no source").at(key.span);
        problems
            .push(problem.path(format!("{path}.key")).label("write \"global\" to count everybody together"));
    }
    if key.value.0.len() > MOST_SOURCES_A_KEY {
        let message = format!("`key` has {} sources, more than {MOST_SOURCES_A_KEY}", key.value.0.len());
        let problem = Problem::new(Code::TooMany, message).at(key.span).path(format!("{path}.key"));
        problems.push(problem.label("use fewer"));
    }
    KeySpec(key.value.0.iter().map(|source| source.value.clone()).collect())
}

fn cost(written: &RuleDoc, path: &str, problems: &mut Problems) -> Option<RuleCost> {
    let cost = &written.cost.as_ref()?.value;
    let estimate = cost.estimate.as_ref().map_or(Cost::ONE, |estimate| estimate.value);
    let settle = cost.settle.as_ref().map(|settle| settle.value.clone());
    let abandoned = abandoned(cost, estimate, &format!("{path}.cost"), problems);
    Some(RuleCost { estimate, settle, abandoned })
}

/// What stays charged when the true cost is never heard of. Below the estimate, leaving would pay.
fn abandoned(cost: &RuleCostDoc, estimate: Cost, path: &str, problems: &mut Problems) -> Option<Cost> {
    let written = cost.abandoned.as_ref()?;
    let path_of = |key: &str| format!("{path}.{key}");
    if cost.settle.is_none() && !problems.mentions(&path_of("settle")) {
        let message = "`abandoned` does nothing without `settle`: the estimate is the cost";
        let problem = Problem::new(Code::NotForThis, message).at(written.key_span).path(path_of("abandoned"));
        problems.push(problem.label("remove it, or say with `settle` where the true cost comes from"));
    }
    let most = written.value.0?;
    if most < estimate {
        let message = format!("abandoned max:{most} is below the estimate {estimate}");
        let problem = Problem::new(Code::EmptyRange, message).at(written.span).path(path_of("abandoned"));
        let label =
            format!("write \"max:{estimate}\" or more, so that nothing is cheaper for those who leave");
        problems.push(problem.label(label));
        return None;
    }
    Some(most)
}

pub(super) fn unknown_level(level: &str, span: Span, path: &str) -> Problem {
    let names = Criticality::ALL.map(Criticality::as_str);
    let message = format!("`{}` is no criticality", shown(level));
    let meant = nearest(level, names).map(|meant| format!("did you mean `{meant}`?"));
    let label =
        meant.unwrap_or_else(|| "write critical_plus, critical, sheddable_plus or sheddable".to_owned());
    Problem::new(Code::UnknownChoice, message).at(span).path(path).label(label)
}
