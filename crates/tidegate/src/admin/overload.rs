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
use tidegate_core::Criticality;
use tidegate_policy::policy::{Limit, Policy, SignalName, SignalUnit};

use super::answer::{by_level, ratio};
use super::station::{
    CapacityStatus, ConcurrencyStatus, DegradeStatus, SheddingStatus, SignalStatus, Station, UpstreamStatus,
};

/// From here on more capacity is worth a word: below it is noise.
const WANTED: f64 = 1.05;

/// Everything about overload at one moment.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Overload {
    pub(super) upstreams: Vec<UpstreamStatus>,
    pub(super) rules: Vec<SheddingStatus>,
    pub(super) signals: Vec<SignalStatus>,
    pub(super) capacity: CapacityStatus,
    pub(super) routes: Vec<DegradeStatus>,
}

impl Overload {
    pub(super) fn of(station: &dyn Station) -> Self {
        Self {
            upstreams: station.upstreams(),
            rules: station.shedding(),
            signals: station.signals(),
            capacity: station.capacity(),
            routes: station.degraded(),
        }
    }

    /// The share of each level that is refused: the greatest of all upstreams and rules.
    pub(super) fn shed(&self) -> [f64; 4] {
        let of_upstreams = self.upstreams.iter().map(|upstream| &upstream.concurrency.shed);
        let all = of_upstreams.chain(self.rules.iter().map(|rule| &rule.shed));
        all.fold([0.0; 4], |most, shed| std::array::from_fn(|level| f64::max(most[level], shed[level])))
    }

    /// Who is shed and why, if anybody is.
    pub(super) fn sentence(&self, policy: &Policy) -> Option<String> {
        let upstreams = self.upstreams.iter().filter(|upstream| is_any(&upstream.concurrency.shed));
        let others = upstreams.clone().count().saturating_sub(1);
        let worst = upstreams.max_by(|a, b| compared(&a.concurrency.shed, &b.concurrency.shed));
        let by_upstream = worst.map(|worst| of_upstream(worst, others));
        let rules = self.rules.iter().filter(|rule| is_any(&rule.shed));
        let worst = rules.max_by(|a, b| compared(&a.shed, &b.shed));
        let by_rule = worst.map(|worst| {
            format!("{} by rule {}{}", levels(&worst.shed), worst.rule, self.cause(policy, &worst.rule))
        });
        let clauses: Vec<String> = by_upstream.into_iter().chain(by_rule).collect();
        (!clauses.is_empty()).then(|| format!("Shedding: {}.", clauses.join("; ")))
    }

    /// Which routes give a cheaper answer because an operator wants it.
    pub(super) fn switched(&self) -> Option<String> {
        let switched = self.routes.iter().filter(|route| route.is_switched);
        let names: Vec<&str> = switched.map(|route| route.route.as_str()).collect();
        let sentence = match names.as_slice() {
            [] => return None,
            [one] => format!("Degraded: route {one} gives its cheaper answer, as an operator wants."),
            [first, others @ ..] => {
                let others = others.len();
                format!(
                    "Degraded: route {first} and {others} more give their cheaper answers, as an operator wants."
                )
            }
        };
        Some(sentence)
    }

    /// The signal that is furthest above its target.
    fn cause(&self, policy: &Policy, rule: &str) -> String {
        let rule = policy.rules.iter().find(|known| known.name == rule);
        let targets = match rule.map(|rule| &rule.limit) {
            Some(Limit::Shed(shed)) => shed.targets.as_slice(),
            Some(Limit::Rate(_) | Limit::Concurrency(_) | Limit::Reserve(_)) | None => &[],
        };
        let above = targets.iter().filter_map(|(signal, target)| {
            let value = self.reading(signal)?;
            (value > *target).then_some((signal, *target, value))
        });
        let excess = |(_, target, value): &(&SignalName, f64, f64)| value / target.max(f64::MIN_POSITIVE);
        let worst = above.max_by(|a, b| excess(a).total_cmp(&excess(b)));
        worst.map_or_else(
            || ", which lets them back slowly".to_owned(),
            |(signal, target, value)| {
                let (value, target) = (spoken(value, signal.unit()), spoken(target, signal.unit()));
                format!(", since {signal} is at {value}, target {target}")
            },
        )
    }

    fn reading(&self, signal: &SignalName) -> Option<f64> {
        self.signals.iter().find(|known| known.name == signal.as_str()).and_then(|known| known.value)
    }

    pub(super) fn to_json(&self) -> Value {
        let degraded = self.routes.iter().filter(|route| route.is_active).map(|route| &route.route);
        json!({
            "shed": by_level(self.shed(), ratio),
            "rules": self.rules.iter().map(|rule| json!({
                "rule": rule.rule,
                "shed": by_level(rule.shed, ratio),
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
    let (levels, name) = (levels(&concurrency.shed), &upstream.name);
    format!("{levels} for upstream {name}, {}{others}{wanted}", of_limit(concurrency))
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
pub(super) fn spoken(value: f64, unit: SignalUnit) -> String {
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
