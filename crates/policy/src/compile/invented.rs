//! Keys that callers can invent.
//!
//! A header field says what its sender likes. Who sends another key with every request meets no quota of a key, and takes
//! a place in the table of keys each time. What cannot be invented is the address, so a rule by address beside the rule by
//! key bounds that; or only keys count that stand in a table.

use super::rule::CompiledRule;
use crate::document::top::{KnownWord, PolicyDoc};
use crate::policy::{KeySource, KeySpec, KnownCallers, Limit, Mode, Route};
use crate::problem::{Code, Problem, Problems};
use crate::quantity::shown;

/// Which identities count.
pub(super) fn known(document: &PolicyDoc, caller: &KeySpec, problems: &mut Problems) -> KnownCallers {
    let written = document.caller.as_ref().map(|field| &field.value);
    let Some(known) = written.and_then(|caller| caller.known.as_ref()) else { return KnownCallers::All };
    let problem = |code, message| Problem::new(code, message).at(known.key_span).path("caller.known");
    let has_table = written.is_some_and(|caller| caller.table.is_some());
    if !has_table && !problems.mentions("caller.table") {
        let message = "`known` needs the table of callers that are";
        let entry = problems.entry("table", "\"callers.toml\"");
        problems.push(problem(Code::MissingKey, message).label(format!("add {entry}")));
    }
    if header(caller).is_none() && !problems.mentions("caller.from") {
        let message =
            "`known` does nothing where no caller is recognised by a header: addresses always count";
        let entry = problems.entry("from", "[\"header:x-api-key\", \"client-ip\"]");
        problems.push(problem(Code::NotForThis, message).label(format!("remove it, or add {entry}")));
    }
    match known.value {
        KnownWord::Table => KnownCallers::Table,
    }
}

/// Rules by keys that anybody can invent stand beside a rule by address.
pub(super) fn check(
    document: &PolicyDoc,
    caller: &KeySpec,
    known: KnownCallers,
    (rules, routes): (&[CompiledRule<'_>], &[Route]),
    problems: &mut Problems,
) {
    let open = |index: &usize| is_unbounded(*index, rules, routes);
    let mut from_is_told = false;
    for index in (0..rules.len()).filter(open) {
        let compiled = &rules[index];
        let name = &compiled.rule.name;
        let Some(key) = &compiled.written.key else { continue };
        let has_address = key.value.0.iter().any(|source| source.value == KeySource::ClientIp);
        for source in &key.value.0 {
            let (header, span, path) = match &source.value {
                // Without an address there is another warning, which leads to this one.
                KeySource::Header(_) if !has_address => continue,
                KeySource::Header(name) => (name, source.span, format!("rule.{}.key", compiled.rule.name)),
                KeySource::Caller if known == KnownCallers::All && !from_is_told => {
                    let from = document.caller.as_ref().and_then(|caller| caller.value.from.as_ref());
                    let Some((header, from)) = header(caller).zip(from) else { continue };
                    from_is_told = true;
                    (header, from.span, "caller.from".to_owned())
                }
                KeySource::Caller
                | KeySource::ClientIp
                | KeySource::Path
                | KeySource::Route
                | KeySource::Global => continue,
            };
            let message = format!(
                "callers can send another `{}` with every request and never meet rule `{}`",
                shown(header),
                shown(name)
            );
            let problem = Problem::new(Code::CanBeInvented, message).at(span).path(path);
            let entry = problems.entry("key", "\"client-ip\"");
            problems.push(problem.help(format!("add a rule with {entry} beside it, for a whole address")));
            break;
        }
    }
}

/// Whether a rule is enforced on a route on which no rule bounds an address.
fn is_unbounded(index: usize, rules: &[CompiledRule<'_>], routes: &[Route]) -> bool {
    let counts = |index: usize| {
        rules.get(index).is_some_and(|compiled| {
            compiled.rule.mode == Mode::Enforce
                && matches!(compiled.rule.limit, Limit::Rate(_) | Limit::Concurrency(_))
        })
    };
    let bounds = |index: usize| {
        counts(index) && rules.get(index).is_some_and(|rule| rule.rule.key.0 == [KeySource::ClientIp])
    };
    counts(index)
        && routes.iter().any(|route| {
            !route.is_exempt
                && route.rules.contains(&index)
                && !route.rules.iter().any(|beside| bounds(*beside))
        })
}

/// A header field by which callers are recognised.
fn header(caller: &KeySpec) -> Option<&String> {
    caller.0.iter().find_map(|source| match source {
        KeySource::Header(name) => Some(name),
        KeySource::Caller | KeySource::ClientIp | KeySource::Path | KeySource::Route | KeySource::Global => {
            None
        }
    })
}
