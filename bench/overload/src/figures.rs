//! What is shown of a play, in the words of the table.
//!
//! The measures are the scenario's own, over the stretch in which it hurts:
//!
//! | figure | of |
//! |---|---|
//! | goodput | right answers in time ÷ what the service can do |
//! | critical and above, each level | share of its requests that were answered right and in time |
//! | p99 ÷ unloaded | latency of what was not refused ÷ that of a service at rest |
//! | back after | seconds until goodput is back for ten seconds; where the scenario is long enough to see that |
//! | cost | processor time of the gateway for a forwarded answer and for a refusal |

use std::ops::Range;
use std::time::Duration;

use tidegate_load::drill::Outcome;
use tidegate_scenario::{Assertion, Bound, Measure, Pace, Scenario};

use crate::plan::Part;

/// The levels, the highest first.
pub(crate) const LEVELS: [&str; 4] = ["critical_plus", "critical", "sheddable_plus", "sheddable"];

/// How long goodput must be back, and so how much time a scenario needs after its worst.
const KEPT: Duration = Duration::from_secs(10);

/// What one play came to. What cannot be measured is not a number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Figures {
    pub(crate) goodput: f64,
    pub(crate) critical: f64,
    /// In the order of [`LEVELS`].
    pub(crate) levels: [f64; 4],
    pub(crate) p99: f64,
    pub(crate) recovery: f64,
    pub(crate) cost: Cost,
    /// The share of the requests that the generator could not send.
    pub(crate) unsent: f64,
}

/// Processor time of a gateway, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Cost {
    pub(crate) forwarded: f64,
    pub(crate) refused: f64,
}

impl Figures {
    pub(crate) fn of(part: &Part, outcome: &Outcome) -> Self {
        let scenario = &outcome.scenario;
        let of = |measure, words: &[&str]| {
            let is_there =
                words.is_empty() || words.iter().any(|word| !scenario.classes_called(word).is_empty());
            if !is_there {
                return f64::NAN;
            }
            asked(part, measure, words).value(scenario, &outcome.record, Pace::Real)
        };
        Self {
            goodput: of(Measure::Goodput, &[]),
            critical: of(Measure::Success, &LEVELS[..2]),
            levels: LEVELS.map(|level| of(Measure::Success, &[level])),
            p99: of(Measure::P99Ratio, &[]),
            recovery: recovery(part, outcome),
            cost: cost(part, outcome).unwrap_or(Cost { forwarded: f64::NAN, refused: f64::NAN }),
            unsent: outcome.unsent(),
        }
    }
}

fn asked(part: &Part, measure: Measure, of: &[&str]) -> Assertion {
    Assertion {
        what: String::new(),
        measure,
        of: of.iter().map(|&word| word.to_owned()).collect(),
        over: part.over.iter().map(|&phase| phase.to_owned()).collect(),
        from: part.from,
        until: None,
        against: None,
        pass: Bound::AtLeast(0.0),
        naive: None,
        only: None,
    }
}

fn recovery(part: &Part, outcome: &Outcome) -> f64 {
    let timeline = &outcome.scenario.timeline;
    let end = timeline.during(part.ends, Pace::Real).last().map_or(Duration::MAX, |time| time.end);
    if end.saturating_add(KEPT) > timeline.length(Pace::Real) {
        return f64::NAN;
    }
    outcome.record.recovery(end).map_or(f64::INFINITY, |time| time.as_secs_f64())
}

fn cost(part: &Part, outcome: &Outcome) -> Option<Cost> {
    let effort = |phase: &str| outcome.record.effort(&whole_seconds(&outcome.scenario, phase, part.from)?);
    let forwarded = effort(part.calm?)?.of_forwarding()?;
    Some(Cost { forwarded, refused: effort(part.over.first()?)?.of_refusing(forwarded)? })
}

fn whole_seconds(scenario: &Scenario, phase: &str, from: Duration) -> Option<Range<Duration>> {
    let time = scenario.timeline.during(phase, Pace::Real).first()?.clone();
    Some(time.start + from..time.end)
}
