//! The walk of a decision, looked at instead of taken.

use std::time::Duration;

use tidegate_core::{Cost, Criticality, Refusal, Usage, Verdict};

use super::check::Check;
use super::keys::{self, Found, NoPart, Part};
use super::plan::{Choice, Measure, plan_names};
use super::reserving::Room;
use super::walk::{Ask, Given, Walk};
use super::{Gate, Now};
use crate::attributes::Attributes;
use crate::decision::places;
use crate::explain::{
    Answer, Because, BlockSeen, CallerSeen, Explanation, KeyPart, RouteTaken, RuleExplanation, RuleKind,
};
use crate::policy::{KeySource, Limit, Mode, Variation};

impl Gate {
    /// What [`decide`](Self::decide) would answer, and why; charges nothing.
    #[must_use]
    pub fn explain(&self, now: Now, attributes: &Attributes<'_>) -> Explanation {
        let current = self.current.read();
        let walk = Walk::new(&current, attributes, now.moment);
        let blocked = blocked(&walk);
        let rules = (0..).zip(walk.checks()).map(|(place, check)| explain(&walk, now, place, check));
        Explanation {
            method: attributes.method.to_owned(),
            path: attributes.path.to_owned(),
            version: current.version,
            route: walk.route.map(|(_, route)| RouteTaken {
                name: route.name.clone(),
                line: route.line,
                is_exempt: route.is_exempt,
            }),
            criticality: walk.criticality,
            because: match walk.given {
                Given::Assigned(index) => Because::Assigned(index + 1),
                Given::Said => Because::Said,
                Given::Default => Because::Default,
            },
            caller: (!walk.checks().is_empty() || blocked.is_some()).then(|| caller(&walk)),
            cost: walk.cost,
            blocked,
            rules: rules.collect(),
            upstream: None,
        }
    }
}

fn blocked(walk: &Walk<'_>) -> Option<BlockSeen> {
    if !walk.current.has_blocks {
        return None;
    }
    // A caller that can be read in two ways is told beside, with its header field.
    let barred = walk.barred()?.ok()?;
    let rule = barred.rule.map(|rule| walk.ruled(rule).rule.name.clone());
    Some(BlockSeen { rule, left: barred.until.map(|until| until.since(walk.now)) })
}

fn caller(walk: &Walk<'_>) -> CallerSeen {
    let identity = walk.known.map(|known| known.identity.as_str());
    let plan = identity.and_then(|identity| walk.plan().policy.callers.get(identity)?.plan.clone());
    CallerSeen {
        shown: walk.caller.ok().map(|part| part.to_string()),
        fingerprint: walk.caller_key.map(tidegate_core::keyed::Key::bits),
        plan,
        repeated: repeated(walk.caller).map(str::to_owned),
        passed_over: keys::passed_over(&walk.plan().policy, walk.attributes).map(str::to_owned),
    }
}

fn repeated<'a>(found: Found<'a>) -> Option<&'a str> {
    match found {
        Err(NoPart::Repeated(header)) => Some(header),
        Ok(_) | Err(NoPart::Missing) => None,
    }
}

fn explain<'a>(walk: &Walk<'a>, now: Now, place: u8, check: &'a Check) -> RuleExplanation {
    let ruled = walk.ruled(check.rule);
    let switch = walk.current.modes.get(usize::from(check.rule)).copied();
    let mode = walk.current.mode(check.rule, walk.now);
    let standing = switch.and_then(|switch| switch.switched);
    let standing = standing.filter(|(_, until)| until.is_none_or(|until| walk.now < until));
    let ask = walk.ask(place, check, mode == Mode::Enforce && !check.is_shadow_value);
    let (usage, written) =
        ask.as_ref().map_or_else(|_| default_state(walk, check), |(ask, _)| state(walk, ask, now));
    let answer = match &ask {
        _ if mode == Mode::Disabled => Answer::Nothing,
        Err(header) => Answer::BadKey { header: (*header).to_owned() },
        Ok((ask, _)) => match peek(walk, ask, now) {
            Ok(wait) => Answer::Pass { wait },
            Err(refusal) => Answer::Refuse(refusal),
        },
    };
    RuleExplanation {
        rule: ruled.rule.name.clone(),
        line: ruled.rule.line,
        mode,
        until: standing.and_then(|(_, until)| until),
        is_switched: standing.is_some(),
        is_shadow_value: check.is_shadow_value,
        key: key(walk, check),
        variation: ask.as_ref().map_or(Variation::Default, |(_, choice)| variation(walk, *choice)),
        written,
        kind: kind(walk, now, check),
        cost: ask.as_ref().map_or_else(|_| walk.cost, |(ask, _)| ask.cost),
        usage,
        answer,
    }
}

fn key(walk: &Walk<'_>, check: &Check) -> Vec<KeyPart> {
    let ruled = walk.ruled(check.rule);
    let parts = ruled.rule.key.0.iter().zip(walk.parts(ruled));
    parts.map(|(source, part)| KeyPart { source: source.clone(), value: shown(source, part) }).collect()
}

/// Paths and routes are no secrets; whatever else a caller sent may be.
fn shown(source: &KeySource, part: Found<'_>) -> Option<String> {
    let part = part.ok()?;
    match (source, part) {
        (KeySource::Path | KeySource::Route, Part::Text(text)) => {
            Some(String::from_utf8_lossy(text).into_owned())
        }
        (_, part) => Some(part.to_string()),
    }
}

fn variation(walk: &Walk<'_>, choice: Choice) -> Variation {
    match choice {
        Choice::Default => Variation::Default,
        Choice::Criticality(level) => Variation::Criticality(level),
        Choice::Plan(number) => {
            let names = plan_names(&walk.plan().policy);
            let name = names.get(usize::from(number)).copied().unwrap_or_default();
            Variation::Plan(name.to_owned())
        }
        Choice::Override => {
            Variation::Override(walk.caller.map_or_else(|_| String::new(), |part| part.to_string()))
        }
    }
}

/// What kind of rule it is, and what only that kind has to say.
fn kind(walk: &Walk<'_>, now: Now, check: &Check) -> RuleKind {
    let limits = &walk.current.limits.rules[usize::from(check.rule)];
    match (&limits.default.measure, &walk.ruled(check.rule).rule.limit) {
        (Measure::Places(..), _) => RuleKind::Concurrency,
        (Measure::Reserved(reserved), _) => {
            let (criticality, open) = (walk.criticality, reserved.room().open);
            RuleKind::Reserve { criticality, open, kept_for: reserved.level() }
        }
        (Measure::Shed(shedder), Limit::Shed(spec)) => {
            let (edge, cohort) = (shedder.edge.edge(), walk.cohort(now.wall));
            RuleKind::Shed {
                criticality: walk.criticality,
                refused: edge.refused(walk.criticality),
                cohort,
                passes_as: Criticality::ALL.into_iter().find(|level| edge.admits(*level, cohort)),
                signals: shedder.signals(spec),
            }
        }
        (Measure::Rate(_) | Measure::Shed(_), _) => RuleKind::Rate,
    }
}

fn state(walk: &Walk<'_>, ask: &Ask<'_>, now: Now) -> (Usage, String) {
    match &ask.chosen.measure {
        Measure::Rate(counter) => (counter.usage(ask.key, now), counter.rate().written.clone()),
        Measure::Places(table, limit) => {
            (places(table.in_flight(ask.key), *limit), format!("{limit} in flight"))
        }
        Measure::Reserved(reserved) => {
            let Room { capacity, open } = reserved.room();
            let taken = reserved.in_flight(ask.key);
            let most = if walk.criticality < reserved.level() { open } else { capacity };
            let remaining = Cost::of(most.saturating_sub(taken));
            (Usage { remaining, ..places(taken, capacity) }, format!("{capacity} in flight"))
        }
        Measure::Shed(_) => (places(0, 0), String::new()),
    }
}

/// What a rule allows when its key cannot be read.
fn default_state(walk: &Walk<'_>, check: &Check) -> (Usage, String) {
    match &walk.ruled(check.rule).rule.limit {
        Limit::Rate(rate) => {
            let most = rate.most();
            let usage = Usage { limit: most, used: Cost::ZERO, remaining: most, reset: Duration::ZERO };
            (usage, rate.written.clone())
        }
        Limit::Concurrency(limit) => (places(0, *limit), format!("{limit} in flight")),
        // They have no key that could not be read.
        Limit::Reserve(_) | Limit::Shed(_) => (places(0, 0), String::new()),
    }
}

fn peek(walk: &Walk<'_>, ask: &Ask<'_>, now: Now) -> Result<Duration, Refusal> {
    match &ask.chosen.measure {
        Measure::Rate(counter) => match counter.peek(ask.key, now, ask.cost) {
            Verdict::Admit(wait) => Ok(wait),
            Verdict::Refuse(refusal) => Err(refusal),
        },
        Measure::Places(..) | Measure::Reserved(_) | Measure::Shed(_) => {
            super::charge::peek(walk, ask, now).map_or(Ok(Duration::ZERO), Err)
        }
    }
}
