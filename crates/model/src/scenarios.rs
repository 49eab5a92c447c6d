//! The scenarios: what "protected" means, as measurements.
//!
//! Each scenario is a model in two variants that differ in nothing but the protection, and a list of
//! checks. A check says what the protected run must reach and, where the failure is the point, what the
//! naive run shows: a naive run that does not fail would mean that the model proves nothing.

use std::fmt;
use std::ops::Range;
use std::time::Duration;

use tidegate_core::Moment;

use crate::arrivals::{Mix, Schedule};
use crate::caller::Stubborn;
use crate::measure::Record;
use crate::protect;
use crate::spec::{Link, Service, Source, Spec, Work};
use crate::world;

mod d2_poor_dependency;
mod d3_hanging;
mod d4_return;
mod d5_storm;
mod d6_partial;
mod m1_retries;
mod m3_crowd;
mod m6_ratchet;
mod m7_slow_dependency;
mod o1_step;
mod o2_flood;
mod o3_low_class;
mod o5_ramp;
mod o6_waves;
mod o7_two_costs;

/// All of them.
pub const ALL: &[Scenario] = &[
    o1_step::STEP,
    o1_step::STEP_WITH_EDGE,
    o1_step::STEP_OF_TWO_WORKERS,
    o2_flood::FITS,
    o2_flood::FITS_WITH_EDGE,
    o2_flood::FITS_OF_TWO_WORKERS,
    o2_flood::DOES_NOT_FIT,
    o2_flood::DOES_NOT_FIT_WITH_EDGE,
    o2_flood::DOES_NOT_FIT_OF_TWO_WORKERS,
    o3_low_class::LOW_CLASS,
    o3_low_class::LOW_CLASS_WITH_EDGE,
    o5_ramp::RAMP,
    o5_ramp::RAMP_WITH_EDGE,
    o6_waves::WAVES,
    o7_two_costs::TWO_COSTS,
    d2_poor_dependency::POOR_DEPENDENCY,
    d3_hanging::HANGING,
    d4_return::RETURN,
    d5_storm::STORM,
    d6_partial::ONE,
    d6_partial::FIVE,
    d6_partial::NINE,
    m1_retries::RETRIES,
    m3_crowd::CROWD,
    m6_ratchet::RATCHET,
    m7_slow_dependency::SLOW_DEPENDENCY,
];

/// A check that the protected run does not pass, and why.
#[derive(Clone, Copy, Debug)]
pub struct Gap {
    /// The scenario.
    pub id: &'static str,
    /// The check, by its words.
    pub what: &'static str,
    /// What is in the way.
    pub why: &'static str,
}

/// What does not pass yet. A gap that has closed must leave this list; the tests see to it.
pub const GAPS: &[Gap] = &[
    Gap {
        id: "D6/.1",
        what: "A",
        why: "one refusal in ten and up to three attempts make 1 + p + p² = 1.11; with less, more than p³ fail",
    },
    Gap {
        id: "O1/two",
        what: "P: p99 of the accepted ÷ unloaded",
        why: "two workers at .9 have a median of three times the baseline, so more places are found before the step than \
              P allows, and they go by halves in five seconds",
    },
    Gap {
        id: "O1/two",
        what: "R in seconds",
        why: "at .9, two workers keep 4.4 % waiting for more than 50 ms, and R allows 5 % in every second of ten",
    },
    Gap {
        id: "O2a/two",
        what: "S of critical and above, from the first second of the flood",
        why: "e^-4 = 1.8 % of what is .6 of two workers' capacity waits for more than 50 ms; .999 needs 86 ms",
    },
    Gap {
        id: "O2b/two",
        what: "S of critical_plus",
        why: "a level that is all of the capacity loses 1 in 1 + 200 · 0.05 = 11 to a queue of 50 ms; .95 needs 95 ms",
    },
    Gap {
        id: "O2b/two",
        what: "share of critical that is served",
        why: "what critical_plus loses, an eleventh of the capacity, goes to critical: 1/11 of 1 is 2.3 % of 4",
    },
];

/// With or without protection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    /// As services are without any.
    Naive,
    /// With the core's limiters.
    Protected,
}

/// One scenario.
#[derive(Clone, Copy, Debug)]
pub struct Scenario {
    /// Its name in the table of scenarios.
    pub id: &'static str,
    /// What happens, in one line.
    pub what: &'static str,
    /// The model.
    pub spec: fn(Variant) -> Spec,
    /// What is looked at.
    pub checks: &'static [Check],
}

/// One thing to look at after a run.
#[derive(Clone, Copy, Debug)]
pub struct Check {
    /// The measure, in words.
    pub what: &'static str,
    /// Its value.
    pub value: fn(&Record) -> f64,
    /// What the protected run must reach.
    pub pass: Bound,
    /// What the naive run shows, where the failure is the point.
    pub naive: Option<Bound>,
}

/// A bound on a measure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bound {
    /// This or more.
    AtLeast(f64),
    /// This or less.
    AtMost(f64),
}

impl Bound {
    /// Whether the value keeps to it. What never happened (not a number) keeps to nothing.
    #[must_use]
    pub fn holds(self, value: f64) -> bool {
        match self {
            Self::AtLeast(bound) => value >= bound,
            Self::AtMost(bound) => value <= bound,
        }
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtLeast(bound) => write!(f, ">= {bound}"),
            Self::AtMost(bound) => write!(f, "<= {bound}"),
        }
    }
}

/// A check with what was measured.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The measure, in words.
    pub what: &'static str,
    /// What was measured.
    pub value: f64,
    /// What was expected of this variant, if anything.
    pub expected: Option<Bound>,
}

impl Finding {
    /// Whether it is as expected.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.expected.is_none_or(|bound| bound.holds(self.value))
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {:.4}", self.what, self.value)?;
        match self.expected {
            Some(bound) => write!(f, " (expected {bound})"),
            None => Ok(()),
        }
    }
}

impl Scenario {
    /// Runs one variant.
    #[must_use]
    pub fn run(&self, variant: Variant, seed: u64) -> Record {
        world::run((self.spec)(variant), seed)
    }

    /// What the record of a run shows.
    #[must_use]
    pub fn findings(&self, variant: Variant, record: &Record) -> Vec<Finding> {
        let finding = |check: &Check| Finding {
            what: check.what,
            value: (check.value)(record),
            expected: match variant {
                Variant::Naive => check.naive,
                Variant::Protected => Some(check.pass),
            },
        };
        self.checks.iter().map(finding).collect()
    }
}

/// The moment this many seconds after the origin.
const fn second(seconds: u64) -> Moment {
    Moment::from_nanos(seconds * 1_000_000_000)
}

/// The stretch between two seconds.
const fn seconds(range: Range<u64>) -> Range<Moment> {
    second(range.start)..second(range.end)
}

const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// R in seconds; what never recovers takes for ever.
fn recovery(record: &Record, end: Moment) -> f64 {
    record.recovery(end).map_or(f64::INFINITY, |time| time.as_secs_f64())
}

/// What the 99th of 100 requests takes when nobody else is there: ln(100) · 10 ms.
const UNLOADED_P99: Duration = Duration::from_micros(46_052);

/// The usual service: ten workers, 10 ms on average, so a thousand requests a second.
const WORKERS: u32 = 10;
const WORK: Work = Work::Exponential(Duration::from_millis(10));
/// Users wait for 200 ms, a good four times the unloaded p99.
const PATIENCE: Duration = Duration::from_millis(200);
/// Saying no costs a worker 20 µs, a five-hundredth of the work.
const REFUSAL_COST: Duration = Duration::from_micros(20);

/// The usual service under these users.
fn one_service(schedule: Schedule, mix: Mix, variant: Variant) -> Spec {
    let length = schedule.ends().since(Moment::ORIGIN);
    let gate = match variant {
        Variant::Naive => protect::nothing(),
        Variant::Protected => protect::gate(PATIENCE),
    };
    let service = Service { gate, refusal_cost: REFUSAL_COST, ..Service::plain(WORKERS, WORK) };
    Spec { sources: vec![users(schedule, mix)], services: vec![service], changes: vec![], length }
}

/// The same with an edge before the gate of the protected variant.
fn with_edge(mut spec: Spec, variant: Variant) -> Spec {
    if variant == Variant::Protected {
        spec.services[0].gate = protect::edged_gate(PATIENCE);
    }
    spec
}

/// The same with two workers instead of ten, and a fifth of the traffic: a machine of two cores.
fn of_two_workers(mut spec: Spec) -> Spec {
    spec.services[0].workers = 2;
    spec
}

/// Users who try once.
fn users(schedule: Schedule, mix: Mix) -> Source {
    let link = Link { target: 0, timeout: PATIENCE, manners: Box::new(Stubborn::times(1)) };
    Source { schedule, mix, patience: PATIENCE, link }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_core::Criticality;

    #[test]
    fn the_unloaded_p99_is_what_an_unloaded_run_shows() {
        let schedule = Schedule::default().steady(millis(600_000), crate::arrivals::Load(0.05));
        let spec = one_service(schedule, Mix::only(Criticality::Critical), Variant::Naive);
        let shown = world::run(spec, 1).slowest_percent(&seconds(0..600)).as_secs_f64();
        let expected = UNLOADED_P99.as_secs_f64();
        assert!((shown / expected - 1.0).abs() < 0.05, "{shown} is not {expected}");
    }

    #[test]
    fn what_never_happened_keeps_to_no_bound() {
        assert!(!Bound::AtLeast(1.0).holds(f64::NAN) && !Bound::AtMost(1.0).holds(f64::NAN));
        assert!(Bound::AtLeast(1.0).holds(1.0) && Bound::AtMost(1.0).holds(1.0));
        assert!(!Bound::AtMost(1.0).holds(f64::INFINITY));
    }
}
