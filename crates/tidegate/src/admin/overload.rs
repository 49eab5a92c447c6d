//! What is shed and why, gathered once for all who tell of it.
//!
//! In an incident the first question is who is being refused and whether that is right. The answer is one sentence: which
//! levels, for which upstream or by which rule, what that one is up against, and how much more would be needed.
//!
//! ```text
//! Shedding: all of sheddable and 40 % of sheddable_plus for upstream orders, which holds its limit of 64 (queueing);
//! 1.8 times its capacity is wanted.
//! ```

use std::cmp::Ordering;

use serde_json::{Value, json};
use tidegate_core::{Criticality, Ratio};
use tidegate_policy::gate::{Shedding, SignalReading};
use tidegate_policy::policy::{DegradeWhen, Mode, Policy, Route, SignalUnit};

use super::answer::{by_level, ratio};
use super::station::{
    CapacityStatus, ConcurrencyStatus, SignalStatus, Station, SwitchedRoute, UpstreamStatus,
};

/// From here on more capacity is worth a word: below it is noise.
const WANTED: f64 = 1.05;

/// Everything about overload at one moment.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Overload {
    pub(super) upstreams: Vec<UpstreamStatus>,
    /// Rules of kind shed that are in force.
    pub(super) rules: Vec<Shedding>,
    pub(super) signals: Vec<SignalStatus>,
    pub(super) capacity: CapacityStatus,
    pub(super) switched: Vec<SwitchedRoute>,
}

/// Who gets a route's cheaper answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GivenTo {
    /// Everybody, since an operator wants it.
    All,
    /// Those who would be refused, since some are shed.
    Shed,
    Nobody,
}

impl GivenTo {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Shed => "shed",
            Self::Nobody => "nobody",
        }
    }
}

impl Overload {
    pub(super) fn of(station: &dyn Station) -> Self {
        let mut enforced = station.gate().shedding(station.now());
        enforced.retain(|rule| rule.mode == Mode::Enforce);
        Self {
            upstreams: station.upstreams(),
            rules: enforced,
            signals: station.signals(),
            capacity: station.capacity(),
            switched: station.switched_routes(),
        }
    }

    /// The share of each level that is refused: the greatest of all upstreams and rules.
    pub(super) fn shed(&self) -> [f64; 4] {
        let of_upstreams = self.upstreams.iter().map(|upstream| upstream.shed());
        let all = of_upstreams.chain(self.rules.iter().map(shares));
        all.fold([0.0; 4], |most, shed| std::array::from_fn(|level| f64::max(most[level], shed[level])))
    }

    /// Who is shed and why, if anybody is.
    pub(super) fn sentence(&self) -> Option<String> {
        let upstreams = self.upstreams.iter().filter(|upstream| is_any(&upstream.shed()));
        let others = upstreams.clone().count().saturating_sub(1);
        let worst = upstreams.max_by(|a, b| compared(&a.shed(), &b.shed()));
        let by_upstream = worst.map(|worst| of_upstream(worst, others));
        let rules = self.rules.iter().filter(|rule| rule.is_shedding());
        let by_rule = rules.max_by_key(|rule| rule.edge).map(of_rule);
        let clauses: Vec<String> = by_upstream.into_iter().chain(by_rule).collect();
        (!clauses.is_empty()).then(|| format!("Shedding: {}.", clauses.join("; ")))
    }

    /// Which routes give a cheaper answer because an operator wants it, if any does.
    pub(super) fn degraded(&self) -> Option<String> {
        match self.switched.as_slice() {
            [] => None,
            [SwitchedRoute { route, .. }] => {
                Some(format!("Degraded: route {route} gives its cheaper answer, as an operator wants."))
            }
            [SwitchedRoute { route, .. }, others @ ..] => {
                let give = "give their cheaper answers, as an operator wants";
                Some(format!("Degraded: route {route} and {} more {give}.", others.len()))
            }
        }
    }

    /// Who gets a route's cheaper answer at this moment.
    pub(super) fn given_to(&self, route: &Route, policy: &Policy) -> GivenTo {
        let Some(degrade) = &route.degrade else { return GivenTo::Nobody };
        if self.switched.iter().any(|switched| switched.route == route.name) {
            return GivenTo::All;
        }
        let upstreams =
            self.upstreams.iter().filter(|upstream| route.upstream.as_ref() == Some(&upstream.name));
        let by_upstream = upstreams.map(|upstream| upstream.shed());
        let meets = |rule: &&Shedding| {
            let mut met = route.rules.iter().filter_map(|position| policy.rules.get(*position));
            met.any(|met| met.name == rule.rule)
        };
        let is_shed =
            by_upstream.chain(self.rules.iter().filter(meets).map(shares)).any(|shed| is_any(&shed));
        match degrade.when {
            DegradeWhen::Shedding if is_shed => GivenTo::Shed,
            DegradeWhen::Shedding | DegradeWhen::Switched => GivenTo::Nobody,
        }
    }

    pub(super) fn to_json(&self, policy: &Policy) -> Value {
        let is_given = |route: &&Route| self.given_to(route, policy) != GivenTo::Nobody;
        let degraded = policy.routes.iter().filter(is_given).map(|route| &route.name);
        json!({
            "shed": by_level(self.shed(), ratio),
            "rules": self.rules.iter().map(|rule| json!({
                "rule": rule.rule,
                "shed": by_level(shares(rule), ratio),
            })).collect::<Vec<_>>(),
            "degraded": degraded.collect::<Vec<_>>(),
            "wanted_ratio": ratio(self.capacity.wanted_ratio),
        })
    }
}

fn of_upstream(upstream: &UpstreamStatus, others: usize) -> String {
    let concurrency = &upstream.concurrency;
    let others = match others {
        0 => String::new(),
        1 => ", and for another one".to_owned(),
        others => format!(", and for {others} others"),
    };
    let wanted = if concurrency.wanted_ratio >= WANTED {
        format!("; {:.1} times its capacity is wanted", concurrency.wanted_ratio)
    } else {
        String::new()
    };
    let (levels, name) = (levels(&upstream.shed()), &upstream.name);
    format!("{levels} for upstream {name}, {}{others}{wanted}", of_limit(concurrency))
}

/// What a rule sheds, and the signal that presses hardest.
fn of_rule(rule: &Shedding) -> String {
    let shed = format!("{} by rule {}", levels(&shares(rule)), rule.rule);
    let pressing = rule.hardest().and_then(|signal| Some((signal, signal.value?)));
    match pressing.filter(|(signal, value)| *value > signal.target) {
        None => format!("{shed}, which lets them back slowly"),
        Some((SignalReading { signal, target, .. }, value)) => {
            let (value, target) = (spoken(value, signal.unit()), spoken(*target, signal.unit()));
            format!("{shed}, since {signal} is at {value}, target {target}")
        }
    }
}

fn shares(rule: &Shedding) -> [f64; 4] {
    rule.ratios().map(Ratio::value)
}

fn of_limit(concurrency: &ConcurrencyStatus) -> String {
    let limit = concurrency.limit;
    let Some(last) = concurrency.last else { return format!("whose limit is {limit}") };
    let why = last.why.as_str().replace('_', " ");
    match last.to.cmp(&last.from) {
        Ordering::Equal => format!("which holds its limit of {limit} ({why})"),
        Ordering::Less => format!("which has lowered its limit to {limit} ({why})"),
        Ordering::Greater => format!("which has raised its limit to {limit} ({why})"),
    }
}

/// `all of sheddable and 40 % of sheddable_plus`, the least critical first.
pub(super) fn levels(shed: &[f64; 4]) -> String {
    let shed = Criticality::ALL.iter().zip(shed).filter(|(_, share)| **share > 0.0);
    let parts: Vec<String> = shed.map(|(level, share)| format!("{} of {level}", part(*share))).collect();
    match parts.as_slice() {
        [first @ .., last] if !first.is_empty() => format!("{} and {last}", first.join(", ")),
        few => few.concat(),
    }
}

/// `40 %`, and never nothing or everything when it is not.
fn part(share: f64) -> String {
    if share >= 1.0 {
        "all".to_owned()
    } else if share < 0.01 {
        "under 1 %".to_owned()
    } else {
        format!("{} %", (share * 100.0).floor())
    }
}

/// A reading with its unit.
fn spoken(value: f64, unit: SignalUnit) -> String {
    match unit {
        SignalUnit::Share => format!("{} %", (value * 100.0).round()),
        SignalUnit::Time => format!("{} ms", (value * 10_000.0).round() / 10.0),
        SignalUnit::Number => format!("{}", (value * 1_000.0).round() / 1_000.0),
    }
}

fn is_any(shed: &[f64; 4]) -> bool {
    shed.iter().any(|share| *share > 0.0)
}

/// Who sheds more of what is more critical comes last.
fn compared(one: &[f64; 4], other: &[f64; 4]) -> Ordering {
    one.iter().rev().partial_cmp(other.iter().rev()).unwrap_or(Ordering::Equal)
}

#[cfg(test)]
mod tests;
