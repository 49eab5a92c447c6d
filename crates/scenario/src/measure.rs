//! What is looked at after a run, and what it must be.

use std::fmt;
use std::ops::Range;
use std::time::Duration;

use crate::record::{Look, Record};
use crate::{Pace, Scenario};

/// With or without protection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    /// As services are without any.
    Naive,
    /// Protected.
    Protected,
}

/// One thing to look at after a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Assertion {
    /// It in words.
    pub what: String,
    /// What is measured.
    pub measure: Measure,
    /// Of which classes: their names, or criticalities. All where nothing is said.
    pub of: Vec<String>,
    /// In which phases; the whole run where nothing is said.
    pub over: Vec<String>,
    /// So much of each phase's beginning is left out.
    pub from: Duration,
    /// It is over so long after the phase began, if not with the phase.
    pub until: Option<Duration>,
    /// The phase to compare with.
    pub against: Option<String>,
    /// What the protected run must reach.
    pub pass: Bound,
    /// What the naive run shows, where the failure is the point.
    pub naive: Option<Shown>,
    /// The only runner that can measure it.
    pub only: Option<Pace>,
}

/// What a naive run shows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shown {
    /// How bad it is.
    pub bound: Bound,
    /// The only runner whose naive variant fails so.
    pub only: Option<Pace>,
}

/// What can be measured. How is said at [`Record`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// G: right answers in time ÷ what the service can do.
    Goodput,
    /// The same ÷ what was offered.
    GoodputOfOffered,
    /// S: share of the requests that were answered right and in time.
    Success,
    /// P: p99 of the accepted ÷ the unloaded p99, or ÷ p99 in the phase to compare with.
    P99Ratio,
    /// R: seconds from the end of the phase until goodput is back for ten seconds.
    Recovery,
    /// F: attempts that were refused; where classes are named, requests of theirs that ended so.
    Refusals,
    /// The share of a level that is served although a higher level is refused.
    Inversion,
    /// A: attempts at the service ÷ requests of callers.
    Attempts,
    /// Attempts at the service ÷ what it can do.
    LetIn,
    /// How often a minute the shed rate turned.
    Turns,
    /// The highest limit ÷ the one at the end of the phase to compare with, or ÷ the workers. Like the two after it not a
    /// number where more than one look in ten told nothing.
    HighestLimit,
    /// The lowest limit, divided in the same way.
    LowestLimit,
    /// The share of the seconds in which the gate put the latency down to what the service calls.
    BlamedElsewhere,
    /// The gateway's processor time for a refusal ÷ that for an answer it forwards, as in the phase to compare with.
    RefusalCost,
}

impl Measure {
    /// All of them, with the words that files use.
    pub const ALL: [(&'static str, Self); 14] = [
        ("goodput", Self::Goodput),
        ("goodput_of_offered", Self::GoodputOfOffered),
        ("success", Self::Success),
        ("p99_ratio", Self::P99Ratio),
        ("recovery", Self::Recovery),
        ("refusals", Self::Refusals),
        ("inversion", Self::Inversion),
        ("attempts", Self::Attempts),
        ("let_in", Self::LetIn),
        ("turns", Self::Turns),
        ("highest_limit", Self::HighestLimit),
        ("lowest_limit", Self::LowestLimit),
        ("blamed_elsewhere", Self::BlamedElsewhere),
        ("refusal_cost", Self::RefusalCost),
    ];

    /// Whether it looks at the gate's limit, which somebody must ask for while it runs.
    #[must_use]
    pub const fn is_of_the_limit(self) -> bool {
        matches!(self, Self::HighestLimit | Self::LowestLimit | Self::BlamedElsewhere)
    }

    /// Whether it looks at the gate, which a naive run over sockets does not have.
    const fn is_of_the_gate(self) -> bool {
        self.is_of_the_limit() || matches!(self, Self::RefusalCost)
    }
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

/// What was measured, and what it should have been.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// The measure, in words.
    pub what: String,
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

impl Assertion {
    /// Whether this runner can measure it.
    #[must_use]
    pub fn is_for(&self, pace: Pace) -> bool {
        self.only.is_none_or(|only| only == pace)
    }

    pub(crate) fn finding(
        &self,
        scenario: &Scenario,
        record: &Record,
        pace: Pace,
        variant: Variant,
    ) -> Finding {
        let expected = match variant {
            Variant::Protected => Some(self.pass),
            Variant::Naive if pace == Pace::Real && self.measure.is_of_the_gate() => None,
            Variant::Naive => {
                let shown = self.naive.filter(|shown| shown.only.is_none_or(|only| only == pace));
                shown.map(|shown| shown.bound)
            }
        };
        Finding { what: self.what.clone(), value: self.value(scenario, record, pace), expected }
    }

    /// What the record says.
    #[must_use]
    pub fn value(&self, scenario: &Scenario, record: &Record, pace: Pace) -> f64 {
        let classes = self.classes(scenario);
        let time = self.time(scenario, pace);
        let mean = |of: &dyn Fn(&Range<Duration>) -> f64| weighted(&time, of);
        match self.measure {
            Measure::Goodput => mean(&|time| record.goodput(time)),
            Measure::GoodputOfOffered => {
                mean(&|time| record.goodput(time)) / mean(&|time| record.offered(time))
            }
            Measure::Success => {
                let (arrived, good) = (time.iter().map(|time| record.served(&classes, time)))
                    .fold((0, 0), |(arrived, good), (more, right)| (arrived + more, good + right));
                f64::from(good) / f64::from(arrived).max(1.0)
            }
            Measure::P99Ratio => {
                let usual = match &self.against {
                    Some(phase) => record.p99(&classes, &scenario.timeline.during(phase, pace)),
                    None => scenario.service.unloaded_p99(),
                };
                record.p99(&classes, &time).as_secs_f64() / usual.as_secs_f64()
            }
            Measure::Recovery => {
                let end = time.last().map_or(Duration::ZERO, |time| time.end);
                record.recovery(end).map_or(f64::INFINITY, |time| time.as_secs_f64())
            }
            Measure::Refusals if self.of.is_empty() => {
                time.iter().map(|time| f64::from(record.refused(time))).sum()
            }
            Measure::Refusals => time.iter().map(|time| f64::from(record.refused_of(&classes, time))).sum(),
            Measure::Inversion => time.iter().map(|time| record.inversion(time)).fold(0.0, f64::max),
            Measure::Attempts => mean(&|time| record.let_in(time)) / mean(&|time| record.offered(time)),
            Measure::LetIn => mean(&|time| record.let_in(time)),
            Measure::Turns => {
                let smooth = match pace {
                    Pace::Virtual => Duration::from_secs(5),
                    Pace::Real => Duration::from_secs(1),
                };
                mean(&|time| record.turns(time, smooth))
            }
            Measure::HighestLimit => {
                limits(record, &time).into_iter().fold(f64::NAN, f64::max)
                    / self.usual_limit(scenario, record, pace)
            }
            Measure::LowestLimit => {
                limits(record, &time).into_iter().fold(f64::NAN, f64::min)
                    / self.usual_limit(scenario, record, pace)
            }
            Measure::BlamedElsewhere => {
                let told = told(record, &time, |look| look.is_elsewhere);
                // Not a number where nothing was told.
                told.iter().filter(|is_elsewhere| **is_elsewhere).count() as f64 / told.len() as f64
            }
            Measure::RefusalCost => self.refusal_cost(scenario, record, pace).unwrap_or(f64::NAN),
        }
    }

    /// The phase to compare with says what forwarding costs, as nothing is refused in it.
    fn refusal_cost(&self, scenario: &Scenario, record: &Record, pace: Pace) -> Option<f64> {
        let usual = scenario.timeline.during(self.against.as_deref()?, pace).first()?.clone();
        let forwarding = record.effort(&usual)?.of_forwarding()?;
        let time = self.time(scenario, pace).first()?.clone();
        Some(record.effort(&time)?.of_refusing(forwarding)? / forwarding)
    }

    /// The limit at the end of the phase to compare with, or the number of workers.
    fn usual_limit(&self, scenario: &Scenario, record: &Record, pace: Pace) -> f64 {
        match &self.against {
            Some(phase) => {
                let time = scenario.timeline.during(phase, pace);
                limits(record, &time).last().copied().unwrap_or(f64::NAN)
            }
            None => f64::from(scenario.service.workers),
        }
    }

    fn classes(&self, scenario: &Scenario) -> Vec<usize> {
        if self.of.is_empty() {
            return (0..scenario.classes.len()).collect();
        }
        self.of.iter().flat_map(|word| scenario.classes_called(word)).collect()
    }

    fn time(&self, scenario: &Scenario, pace: Pace) -> Vec<Range<Duration>> {
        if self.over.is_empty() {
            return vec![self.from..scenario.timeline.length(pace)];
        }
        let stretches = self.over.iter().flat_map(|phase| scenario.timeline.during(phase, pace));
        let cut = |time: Range<Duration>| {
            let until = self.until.map_or(time.end, |until| (time.start + until).min(time.end));
            (time.start + self.from).min(until)..until
        };
        stretches.map(cut).collect()
    }
}

/// The mean of a rate over stretches of different lengths.
fn weighted(time: &[Range<Duration>], of: &dyn Fn(&Range<Duration>) -> f64) -> f64 {
    let seconds = |time: &Range<Duration>| time.end.saturating_sub(time.start).as_secs_f64();
    let all: f64 = time.iter().map(seconds).sum();
    time.iter().filter(|time| seconds(time) > 0.0).map(|time| of(time) * seconds(time)).sum::<f64>() / all
}

fn limits(record: &Record, time: &[Range<Duration>]) -> Vec<f64> {
    told(record, time, |look| look.limit)
}

/// What the looks at these stretches told, or nothing where fewer than nine in ten told anything: a gateway too busy to
/// answer would be judged by its better moments alone. One in ten may be lost to a machine that was slow just then.
fn told<T>(record: &Record, time: &[Range<Duration>], what: impl Fn(&Look) -> Option<T>) -> Vec<T> {
    let looks: Vec<Option<T>> = time.iter().flat_map(|time| record.looks(time)).map(what).collect();
    let all = looks.len();
    let told: Vec<T> = looks.into_iter().flatten().collect();
    if told.len() * 10 >= all * 9 { told } else { Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_never_happened_keeps_to_no_bound() {
        assert!(!Bound::AtLeast(1.0).holds(f64::NAN) && !Bound::AtMost(1.0).holds(f64::NAN));
        assert!(Bound::AtLeast(1.0).holds(1.0) && Bound::AtMost(1.0).holds(1.0));
        assert!(!Bound::AtMost(1.0).holds(f64::INFINITY));
    }

    /// What three measures of the limit come to after so many looks that tell a limit of five and blame others, and so many
    /// that tell nothing. The service has ten workers.
    fn of_the_limit(told: u64, untold: u64) -> [f64; 3] {
        let text = r#"
            id = "X"
            what = "looks"
            timeline = [{ phase = "all", length = "40s" }]
            service = { workers = 10, work = { exact = "10ms" } }
            traffic = { load = { all = 1.0 }, timeout = "1s" }
            class.users = { share = "100%", criticality = "critical" }
            assert = [
                { what = "highest", measure = "highest_limit", at_most = 1 },
                { what = "lowest", measure = "lowest_limit", at_most = 1 },
                { what = "elsewhere", measure = "blamed_elsewhere", at_least = 1 },
            ]
        "#;
        let scenario = Scenario::read("x.toml", text).unwrap();
        let mut record = scenario.record();
        for second in 1..=told + untold {
            let seen = Look { limit: Some(5.0), is_elsewhere: Some(true), processor: None };
            record.look(Duration::from_secs(second), if second <= told { seen } else { Look::default() });
        }
        let findings = scenario.findings(&record, Pace::Virtual, Variant::Protected);
        <[Finding; 3]>::try_from(findings).unwrap().map(|finding| finding.value)
    }

    #[test]
    fn one_look_in_ten_may_tell_nothing() {
        let usual = [0.5, 0.5, 1.0];
        assert_eq!([of_the_limit(10, 0), of_the_limit(9, 1), of_the_limit(18, 2)], [usual; 3]);
    }

    #[test]
    fn a_gate_that_is_silent_more_often_is_not_judged_by_its_better_moments() {
        for [told, untold] in [[8, 1], [17, 2], [1, 9], [0, 10], [0, 0]] {
            assert!(of_the_limit(told, untold).into_iter().all(f64::is_nan), "{told} of {}", told + untold);
        }
    }
}
