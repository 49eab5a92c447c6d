//! What came of a scenario over real sockets.

use std::fmt::Write as _;
use std::ops::Range;
use std::time::Duration;

use serde_json::{Value, json};
use tidegate_scenario::{Finding, Pace, Record, Scenario, Variant};

use crate::report::Report;

/// The version of the shape of [`Outcome::to_json`].
pub const FORMAT: &str = "tidegate.drill/1";

/// What came of a run.
#[derive(Debug)]
pub struct Outcome {
    /// What was played.
    pub scenario: Scenario,
    /// What was counted.
    pub record: Record,
    /// What the generator saw, class by class and second by second.
    pub report: Report,
}

impl Outcome {
    /// What it shows, assertion by assertion.
    #[must_use]
    pub fn findings(&self, variant: Variant) -> Vec<Finding> {
        self.scenario.findings(&self.record, Pace::Real, variant)
    }

    /// The share of the requests that the generator could not send: where it is not small, the machine was too busy to
    /// measure with.
    #[must_use]
    pub fn unsent(&self) -> f64 {
        let total = &self.report.total;
        total.unsent as f64 / total.due().max(1) as f64
    }

    /// The limit of the gateway at the beginning of each second, where a probe told it.
    #[must_use]
    pub fn limits(&self) -> Vec<f64> {
        let all = Duration::ZERO..self.scenario.timeline.length(Pace::Real);
        self.record.limits(&all).collect()
    }

    /// Of what arrived in each second, the share that was answered right and in time.
    #[must_use]
    pub fn served(&self) -> Vec<f64> {
        let classes: Vec<usize> = (0..self.scenario.classes.len()).collect();
        self.seconds().map(|second| self.record.success(&classes, &second)).collect()
    }

    /// What was answered right and in time in each second, as a share of what the service can do.
    #[must_use]
    pub fn goodput(&self) -> Vec<f64> {
        self.seconds().map(|second| self.record.goodput(&second)).collect()
    }

    fn seconds(&self) -> impl Iterator<Item = Range<Duration>> {
        let second = |at| Duration::from_secs(at)..Duration::from_secs(at + 1);
        (0..self.scenario.timeline.length(Pace::Real).as_secs()).map(second)
    }

    /// For people.
    #[must_use]
    pub fn table(&self, variant: Variant) -> String {
        let mut page = format!("{}  {}\n", self.scenario.id, self.scenario.what);
        // Writing to a text cannot fail.
        for Finding { what, value, expected } in self.findings(variant) {
            let bound = expected.map_or_else(String::new, |bound| bound.to_string());
            let verdict = match expected {
                Some(bound) if !bound.holds(value) => "NO",
                Some(_) => "ok",
                None => "",
            };
            writeln!(page, "  {value:>12.4}  {bound:<10} {verdict:<3} {what}").unwrap_or_default();
        }
        let late = self.report.late.map_or(0, |late| late.p99.as_micros());
        for class in &self.report.classes {
            let (due, ok, refused) = (class.due(), class.answers.ok, class.answers.refused());
            let p99 = class.admitted.map_or(0.0, |admitted| admitted.p99.as_secs_f64() * 1e3);
            let failed = due.saturating_sub(ok + refused);
            let name = &class.name;
            writeln!(
                page,
                "  {name:<16} due {due:>7}  ok {ok:>7}  refused {refused:>7}  failed {failed:>7}  p99 {p99:>8.1} ms"
            )
            .unwrap_or_default();
        }
        let percent = |shares: Vec<f64>| {
            let shares: Vec<String> = shares.iter().map(|share| format!("{:.0}", share * 100.0)).collect();
            shares.join(" ")
        };
        writeln!(page, "  served by the second, of 100: {}", percent(self.served())).unwrap_or_default();
        writeln!(page, "  goodput by the second, of 100: {}", percent(self.goodput())).unwrap_or_default();
        let limits: Vec<String> = self.limits().iter().map(|limit| format!("{limit:.0}")).collect();
        if !limits.is_empty() {
            writeln!(page, "  limit by the second: {}", limits.join(" ")).unwrap_or_default();
        }
        writeln!(page, "  generator: unsent {:.4}, late p99 {late} us", self.unsent()).unwrap_or_default();
        page
    }

    /// For programs.
    #[must_use]
    pub fn to_json(&self, variant: Variant) -> Value {
        let finding = |finding: &Finding| {
            json!({
                "what": finding.what,
                "value": finding.value,
                "expected": finding.expected.map(|bound| bound.to_string()),
                "holds": finding.holds(),
            })
        };
        json!({
            "format": FORMAT,
            "scenario": self.scenario.id,
            "variant": match variant {
                Variant::Naive => "naive",
                Variant::Protected => "protected",
            },
            "findings": self.findings(variant).iter().map(finding).collect::<Vec<_>>(),
            "unsent": self.unsent(),
            "served": self.served(),
            "goodput": self.goodput(),
            "limits": self.limits(),
            "report": self.report.to_json(),
        })
    }
}
