//! What is counted while requests come and go.

use std::time::Duration;

use http::StatusCode;

use crate::arrivals::Arrival;
use crate::connection::Failure;
use crate::latencies::Fine;
use crate::live::{Kind, Live};
use crate::plan::{Keep, Plan};
use crate::report::{Answers, Attempt, AttemptEnding, Failures};
use crate::timeline::Timeline;

/// What one thread saw; tallies of several threads add up.
#[derive(Clone, Debug)]
pub(crate) struct Tally {
    pub(crate) classes: Vec<ClassTally>,
    /// How late the generator itself was.
    pub(crate) late: Fine,
    /// Every attempt, where they are kept.
    pub(crate) attempts: Option<Vec<Attempt>>,
    /// Shared with all clones.
    pub(crate) live: Live,
    /// Answers count for goodput only if they end before this.
    length: Duration,
}

/// How an attempt ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attempted {
    pub(crate) number: u32,
    pub(crate) ended: Duration,
    pub(crate) how: Result<StatusCode, Failure>,
    pub(crate) is_last: bool,
}

/// One class.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClassTally {
    pub(crate) sent: u64,
    pub(crate) unsent: u64,
    pub(crate) answers: Answers,
    pub(crate) failures: Failures,
    /// 2xx that ended while the schedule ran.
    pub(crate) good: u64,
    /// From the moment a request was due to its answer's last byte, or to its time-out.
    pub(crate) all: Fine,
    pub(crate) admitted: Fine,
    pub(crate) refused: Fine,
    pub(crate) timeline: Timeline,
}

impl Tally {
    pub(crate) fn new(plan: &Plan) -> Self {
        Self {
            classes: vec![ClassTally::default(); plan.classes.len()],
            late: Fine::default(),
            attempts: (plan.keep == Keep::Attempts).then(Vec::new),
            live: Live::new(plan.classes.len()),
            length: plan.length(),
        }
    }

    /// A free lane took a request this long after it was due.
    pub(crate) fn late(&mut self, by: Duration) {
        self.late.record(by);
    }

    pub(crate) fn sent(&mut self, arrival: &Arrival) {
        if let Some(class) = self.classes.get_mut(arrival.class) {
            class.sent += 1;
            class.timeline.at(arrival.due).sent += 1;
        }
    }

    pub(crate) fn unsent(&mut self, arrival: &Arrival) {
        if let Some(class) = self.classes.get_mut(arrival.class) {
            class.unsent += 1;
            class.timeline.at(arrival.due).unsent += 1;
        }
        self.live.count(arrival.class, Kind::Failed);
        self.keep(
            arrival,
            Attempted { number: 0, ended: arrival.due, how: Err(Failure::TimedOut), is_last: true },
        );
    }

    pub(crate) fn attempted(&mut self, arrival: &Arrival, attempted: Attempted) {
        self.keep(arrival, attempted);
        if attempted.is_last {
            self.ended(arrival, attempted.ended, attempted.how);
        }
    }

    fn keep(&mut self, arrival: &Arrival, attempted: Attempted) {
        let Some(attempts) = &mut self.attempts else { return };
        let Attempted { number, ended, how, is_last } = attempted;
        let ending = match how {
            _ if number == 0 => AttemptEnding::Unsent,
            Ok(status) if status.is_success() => AttemptEnding::Ok,
            Ok(status) if is_refusal(status) => AttemptEnding::Refused,
            Ok(_) | Err(_) => AttemptEnding::Failed,
        };
        attempts.push(Attempt { class: arrival.class, due: arrival.due, ended, number, is_last, ending });
    }

    fn ended(&mut self, arrival: &Arrival, at: Duration, how: Result<StatusCode, Failure>) {
        let length = self.length;
        let Some(class) = self.classes.get_mut(arrival.class) else { return };
        let latency = at.saturating_sub(arrival.due);
        self.live.count(arrival.class, kind(how, latency));
        match how {
            Ok(status) => class.answered(status, at, latency),
            Err(failure) => class.failed(failure, at, latency),
        }
        if how.is_ok_and(|status| status.is_success()) && at <= length {
            class.good += 1;
        }
    }

    pub(crate) fn absorb(&mut self, other: &Self) {
        self.late.absorb(&other.late);
        if let (Some(mine), Some(more)) = (&mut self.attempts, &other.attempts) {
            mine.extend(more);
        }
        for (class, more) in self.classes.iter_mut().zip(&other.classes) {
            class.absorb(more);
        }
    }
}

impl ClassTally {
    fn answered(&mut self, status: StatusCode, at: Duration, latency: Duration) {
        self.answers.count(status);
        self.all.record(latency);
        let second = self.timeline.at(at);
        second.latency.record(latency);
        if status.is_success() {
            second.admitted += 1;
            self.admitted.record(latency);
        } else if is_refusal(status) {
            second.refused += 1;
            self.refused.record(latency);
        } else {
            second.other += 1;
        }
    }

    fn failed(&mut self, failure: Failure, at: Duration, latency: Duration) {
        let second = self.timeline.at(at);
        second.failed += 1;
        match failure {
            Failure::Connect => self.failures.connect += 1,
            Failure::TimedOut => {
                self.failures.timed_out += 1;
                // It took at least this long; leaving it out would make a server look faster the more it hangs.
                self.all.record(latency);
                second.latency.record(latency);
            }
            Failure::Reset => self.failures.reset += 1,
            Failure::Protocol => self.failures.protocol += 1,
        }
    }

    pub(crate) fn absorb(&mut self, other: &Self) {
        self.sent += other.sent;
        self.unsent += other.unsent;
        self.good += other.good;
        self.answers.absorb(&other.answers);
        self.failures.absorb(&other.failures);
        self.all.absorb(&other.all);
        self.admitted.absorb(&other.admitted);
        self.refused.absorb(&other.refused);
        self.timeline.absorb(&other.timeline);
    }
}

fn kind(how: Result<StatusCode, Failure>, latency: Duration) -> Kind {
    match how {
        Ok(status) if status.is_success() => Kind::Ok(latency),
        Ok(status) if is_refusal(status) => Kind::Refused,
        Ok(_) | Err(_) => Kind::Failed,
    }
}

pub(crate) fn is_refusal(status: StatusCode) -> bool {
    status == StatusCode::TOO_MANY_REQUESTS || status == StatusCode::SERVICE_UNAVAILABLE
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::schedule::{Pacing, Schedule};
    use crate::target::Target;

    fn tally(length: Duration) -> Tally {
        let target = Target::at("127.0.0.1:1".parse().unwrap());
        let schedule = Schedule::new(Pacing::Even).steady(crate::Rate::ZERO, length);
        Tally::new(&Plan::new(target, schedule))
    }

    const ARRIVAL: Arrival = Arrival { due: Duration::from_millis(500), class: 0, key: 1 };

    #[test]
    fn latency_counts_from_the_moment_a_request_was_due() {
        let mut tally = tally(Duration::from_secs(1));
        tally.sent(&ARRIVAL);
        tally.ended(&ARRIVAL, Duration::from_millis(1700), Ok(StatusCode::OK));
        let percentiles = tally.classes[0].admitted.percentiles().unwrap();
        assert!(percentiles.p50.abs_diff(Duration::from_millis(1200)) < Duration::from_millis(2));
        assert_eq!(tally.classes[0].good, 0, "it ended after the schedule");
    }

    #[test]
    fn admitted_and_refused_are_told_apart_and_time_outs_are_slow() {
        let mut tally = tally(Duration::from_secs(9));
        let ended = |tally: &mut Tally, millis: u64, how| {
            tally.sent(&ARRIVAL);
            tally.ended(&ARRIVAL, Duration::from_millis(500 + millis), how);
        };
        ended(&mut tally, 10, Ok(StatusCode::OK));
        ended(&mut tally, 2, Ok(StatusCode::TOO_MANY_REQUESTS));
        ended(&mut tally, 4, Ok(StatusCode::SERVICE_UNAVAILABLE));
        ended(&mut tally, 20, Ok(StatusCode::NOT_FOUND));
        ended(&mut tally, 2000, Err(Failure::TimedOut));
        ended(&mut tally, 3, Err(Failure::Reset));
        let class = &tally.classes[0];
        assert_eq!(class.admitted.percentiles().unwrap().max.as_millis(), 10);
        let refused = class.refused.percentiles().unwrap();
        assert_eq!((refused.count, refused.p50.as_millis(), refused.max.as_millis()), (2, 2, 4));
        let all = class.all.percentiles().unwrap();
        assert_eq!((all.count, all.p90.as_millis()), (5, 2000), "the reset says nothing of latency");
        assert_eq!((class.sent, class.good), (6, 1));
    }

    #[test]
    fn tallies_of_threads_add_up() {
        let mut one = tally(Duration::from_secs(9));
        let mut two = one.clone();
        one.sent(&ARRIVAL);
        one.ended(&ARRIVAL, Duration::from_millis(501), Ok(StatusCode::OK));
        two.sent(&ARRIVAL);
        two.unsent(&ARRIVAL);
        two.ended(&ARRIVAL, Duration::from_millis(503), Ok(StatusCode::OK));
        one.absorb(&two);
        let class = &one.classes[0];
        assert_eq!((class.sent, class.unsent, class.good, class.answers.ok), (2, 1, 2, 2));
        let percentiles = class.all.percentiles().unwrap();
        assert_eq!((percentiles.p50.as_millis(), percentiles.max.as_millis()), (1, 3));
    }
}
