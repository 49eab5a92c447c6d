//! Whether a play is evidence.
//!
//! A play shows what the gateway does only while the machine does what it is asked to. One that misses something while a
//! hypervisor gave time to others proves nothing, so whoever judges plays it again, a few times. What misses something on a
//! machine that was left alone has failed.
//!
//! A generator that is late or cannot send excuses nothing: the gateway may have brought that about, since callers who give up
//! on it open new connections, and the generator falls behind. If that were an excuse, a fault that shows now and then would
//! be played again until it does not show. It is said, but only beside a theft.

use std::time::Duration;

use tidegate_scenario::Variant;

use super::Outcome;

/// The most requests that the generator may fail to send before its figures mean nothing.
const MOST_UNSENT: f64 = 0.001;

/// How late the generator may be for one request in a hundred before that is said: callers wait for 200 ms, and a service
/// that has to catch up with what came at once refuses some that it would have served.
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
    let theft = (stolen > MOST_STOLEN)
        .then(|| format!("{:.1} % of the machine's time went to others", stolen * 100.0))?;
    let late =
        (late > MOST_LATE).then(|| format!("one request in a hundred was sent more than {late:.0?} late"));
    let unsent = (unsent > MOST_UNSENT).then(|| format!("{unsent:.4} of the requests could not be sent"));
    let said: Vec<String> = [Some(theft), late, unsent].into_iter().flatten().collect();
    Some(said.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_that_was_left_alone_disturbs_nothing() {
        assert_eq!(disturbance(MOST_STOLEN, MOST_LATE, MOST_UNSENT), None);
    }

    #[test]
    fn a_generator_that_falls_behind_by_itself_is_no_excuse() {
        assert_eq!(disturbance(0.0, Duration::from_secs(1), 0.5), None);
    }

    #[test]
    fn a_disturbance_says_what_it_was_and_what_came_with_it() {
        let said =
            [disturbance(0.002, Duration::ZERO, 0.0), disturbance(0.002, Duration::from_millis(6), 0.01)];
        let expected = [
            "0.2 % of the machine's time went to others",
            "0.2 % of the machine's time went to others, one request in a hundred was sent more than 6ms late, \
             0.0100 of the requests could not be sent",
        ];
        assert_eq!(said.map(Option::unwrap), expected);
    }
}
