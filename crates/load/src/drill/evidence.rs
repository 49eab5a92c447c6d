//! Whether a play is evidence.
//!
//! A play shows what the gateway does only while the machine does what it is asked to. One that a neighbour slowed down and
//! that misses something proves nothing, so whoever judges plays it again. What misses something on a machine that was left
//! alone has failed.

use std::time::Duration;

use tidegate_scenario::Variant;

use super::Outcome;

/// The most requests that the generator may fail to send before its figures mean nothing.
const MOST_UNSENT: f64 = 0.001;

/// How late the generator may be for one request in a hundred: callers wait for 200 ms, and a service that has to catch
/// up with what came at once refuses some that it would have served.
const MOST_LATE: Duration = Duration::from_millis(5);

/// The most of the machine's time that a hypervisor may give to others. A pause of a tenth of a second on one of two cores
/// is 2.5 thousandths of twenty seconds, and is enough to miss what is asked of every second.
const MOST_STOLEN: f64 = 0.001;

impl Outcome {
    /// What kept the machine from its work, if anything did, where `stolen` is the [share](crate::machine::Stretch::stolen)
    /// of its time that went to others during the play.
    #[must_use]
    pub fn disturbance(&self, stolen: f64) -> Option<String> {
        let late = self.report.late.map_or(Duration::ZERO, |late| late.p99);
        disturbance(stolen, late, self.unsent())
    }

    /// What a play should have shown and did not, each in words.
    #[must_use]
    pub fn missed(&self, variant: Variant) -> Vec<String> {
        let findings = self.findings(variant);
        let mut missed: Vec<String> =
            findings.iter().filter(|finding| !finding.holds()).map(ToString::to_string).collect();
        if variant == Variant::Protected && self.unsent() > MOST_UNSENT {
            missed.push("the generator could not keep up".to_owned());
        }
        missed
    }
}

fn disturbance(stolen: f64, late: Duration, unsent: f64) -> Option<String> {
    if stolen > MOST_STOLEN {
        Some(format!("{:.1} % of the machine's time went to others", stolen * 100.0))
    } else if late > MOST_LATE {
        Some(format!("one request in a hundred was sent more than {late:.0?} late"))
    } else if unsent > MOST_UNSENT {
        Some(format!("{unsent:.4} of the requests could not be sent"))
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_that_was_left_alone_disturbs_nothing() {
        assert_eq!(disturbance(MOST_STOLEN, MOST_LATE, MOST_UNSENT), None);
    }

    #[test]
    fn a_disturbance_says_what_it_was() {
        let said = [
            disturbance(0.002, Duration::ZERO, 0.0),
            disturbance(0.0, Duration::from_millis(6), 0.0),
            disturbance(0.0, Duration::ZERO, 0.01),
        ];
        let expected = [
            "0.2 % of the machine's time went to others",
            "one request in a hundred was sent more than 6ms late",
            "0.0100 of the requests could not be sent",
        ];
        assert_eq!(said.map(Option::unwrap), expected);
    }
}
