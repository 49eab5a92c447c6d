//! What was seen.
//!
//! Nothing is lost on the way: what was due is `sent + unsent`, and what was sent is
//! `answered + failed + cut off`, for every class.

mod json;
mod table;

use std::time::Duration;

use http::StatusCode;

use crate::plan::{Plan, Protocol};
use crate::tally::{ClassTally, Tally};

pub use json::FORMAT;

/// The outcome of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// The server that was measured.
    pub authority: String,
    /// How HTTP was spoken.
    pub protocol: Protocol,
    /// How many connections were allowed.
    pub connections: usize,
    /// How long an answer was allowed to take.
    pub timeout: Duration,
    /// What fixed the order of classes and keys.
    pub seed: u64,
    /// How long the schedule ran.
    pub length: Duration,
    /// Whether it was stopped before its end.
    pub is_stopped: bool,
    /// All classes together.
    pub total: ClassReport,
    /// Each class, in the order of the plan.
    pub classes: Vec<ClassReport>,
    /// Every attempt, where the plan keeps them, in no particular order.
    pub attempts: Vec<Attempt>,
    /// How late the generator itself took requests for which a connection was free. When this is not small
    /// beside the latencies, the machine was too busy to measure with.
    pub late: Option<Percentiles>,
}

/// What became of the requests of a class.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassReport {
    /// The name of the class.
    pub name: String,
    /// Requests that were tried, those included that got no connection.
    pub sent: u64,
    /// Requests that were due but never tried: no room to wait, or no free connection within the time-out.
    pub unsent: u64,
    /// Answers by status.
    pub answers: Answers,
    /// Requests without an answer, by kind.
    pub failures: Failures,
    /// Requests that were under way when the run was stopped.
    pub cut_off: u64,
    /// 2xx answers a second, while the schedule ran.
    pub goodput: f64,
    /// Latency of all answers, and of time-outs with the time that was waited in vain.
    pub latency: Option<Percentiles>,
    /// Latency of 2xx answers.
    pub admitted: Option<Percentiles>,
    /// Latency of 429 and 503 answers.
    pub refused: Option<Percentiles>,
    /// What happened when.
    pub timeline: Vec<Stretch>,
}

/// One attempt at a request. Moments count from the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// Its class, as an index.
    pub class: usize,
    /// When the request was due.
    pub due: Duration,
    /// When the attempt ended.
    pub ended: Duration,
    /// Which attempt it is, counted from 1; 0 where the request was never sent.
    pub number: u32,
    /// Whether the request ended with it.
    pub is_last: bool,
    /// How it ended.
    pub ending: AttemptEnding,
}

/// How an attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttemptEnding {
    /// With a 2xx.
    Ok,
    /// With 429 or 503.
    Refused,
    /// With another answer, or none.
    Failed,
    /// It was never sent: the generator had no connection for it.
    Unsent,
}

/// How many answers had which status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Answers {
    /// 2xx.
    pub ok: u64,
    /// 3xx.
    pub redirected: u64,
    /// 4xx, 429 included.
    pub caller_error: u64,
    /// 5xx, 503 included.
    pub server_error: u64,
    /// Any other.
    pub other: u64,
    /// Exactly 429.
    pub too_many_requests: u64,
    /// Exactly 503.
    pub unavailable: u64,
}

/// How many requests had no answer, and why.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Failures {
    /// Nobody took the connection.
    pub connect: u64,
    /// Not within the time-out, which counts from the moment the request was sent.
    pub timed_out: u64,
    /// The connection ended before the answer did.
    pub reset: u64,
    /// What came was not HTTP.
    pub protocol: u64,
}

/// Some latencies, and the share of requests that did not exceed them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Percentiles {
    /// How many there were.
    pub count: u64,
    /// The median.
    pub p50: Duration,
    /// 90 %.
    pub p90: Duration,
    /// 99 %.
    pub p99: Duration,
    /// 99.9 %.
    pub p999: Duration,
    /// The highest.
    pub max: Duration,
}

/// An entry of the time line: one second, or more where a run is long.
///
/// Requests are counted where they were due, answers where they ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// When it begins, counted from the start.
    pub begins: Duration,
    /// How long it is.
    pub length: Duration,
    /// Requests that were tried.
    pub sent: u64,
    /// Requests that were not.
    pub unsent: u64,
    /// 2xx answers.
    pub admitted: u64,
    /// 429 and 503 answers.
    pub refused: u64,
    /// Other answers.
    pub other: u64,
    /// Requests that got none.
    pub failed: u64,
    /// The median latency, to about 6 %.
    pub p50: Option<Duration>,
    /// The latency of 99 %, to about 6 %.
    pub p99: Option<Duration>,
}

impl Report {
    pub(crate) fn new(plan: &Plan, stopped: Option<Duration>, tally: Tally) -> Self {
        let length = stopped.unwrap_or_else(|| plan.length());
        let mut whole = ClassTally::default();
        tally.classes.iter().for_each(|class| whole.absorb(class));
        let classes = plan.classes.iter().zip(&tally.classes);
        Self {
            authority: plan.target.authority().to_owned(),
            protocol: plan.protocol,
            connections: plan.connections,
            timeout: plan.timeout,
            seed: plan.seed,
            length,
            is_stopped: stopped.is_some(),
            total: ClassReport::new("total", &whole, length),
            classes: classes.map(|(class, tally)| ClassReport::new(&class.name, tally, length)).collect(),
            late: tally.late.percentiles(),
            attempts: tally.attempts.unwrap_or_default(),
        }
    }
}

impl ClassReport {
    fn new(name: &str, tally: &ClassTally, length: Duration) -> Self {
        let ended = tally.answers.sum() + tally.failures.sum();
        let seconds = length.as_secs_f64();
        Self {
            name: name.to_owned(),
            sent: tally.sent,
            unsent: tally.unsent,
            answers: tally.answers,
            failures: tally.failures,
            cut_off: tally.sent.saturating_sub(ended),
            goodput: if seconds > 0.0 { tally.good as f64 / seconds } else { 0.0 },
            latency: tally.all.percentiles(),
            admitted: tally.admitted.percentiles(),
            refused: tally.refused.percentiles(),
            timeline: stretches(tally),
        }
    }

    /// Requests that were due.
    #[must_use]
    pub fn due(&self) -> u64 {
        self.sent + self.unsent
    }
}

fn stretches(tally: &ClassTally) -> Vec<Stretch> {
    let length = tally.timeline.width();
    let begins = std::iter::successors(Some(Duration::ZERO), |begins| begins.checked_add(length));
    let entries = begins.zip(tally.timeline.entries()).map(|(begins, entry)| Stretch {
        begins,
        length,
        sent: entry.sent,
        unsent: entry.unsent,
        admitted: entry.admitted,
        refused: entry.refused,
        other: entry.other,
        failed: entry.failed,
        p50: entry.latency.quantile(0.5),
        p99: entry.latency.quantile(0.99),
    });
    entries.collect()
}

impl Answers {
    /// All of them.
    #[must_use]
    pub fn sum(&self) -> u64 {
        self.ok + self.redirected + self.caller_error + self.server_error + self.other
    }

    /// 429 and 503.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.too_many_requests + self.unavailable
    }

    pub(crate) fn count(&mut self, status: StatusCode) {
        match status.as_u16() / 100 {
            2 => self.ok += 1,
            3 => self.redirected += 1,
            4 => self.caller_error += 1,
            5 => self.server_error += 1,
            _ => self.other += 1,
        }
        self.too_many_requests += u64::from(status == StatusCode::TOO_MANY_REQUESTS);
        self.unavailable += u64::from(status == StatusCode::SERVICE_UNAVAILABLE);
    }

    pub(crate) fn absorb(&mut self, other: &Self) {
        self.ok += other.ok;
        self.redirected += other.redirected;
        self.caller_error += other.caller_error;
        self.server_error += other.server_error;
        self.other += other.other;
        self.too_many_requests += other.too_many_requests;
        self.unavailable += other.unavailable;
    }
}

impl Failures {
    /// All of them.
    #[must_use]
    pub fn sum(&self) -> u64 {
        self.connect + self.timed_out + self.reset + self.protocol
    }

    pub(crate) fn absorb(&mut self, other: &Self) {
        self.connect += other.connect;
        self.timed_out += other.timed_out;
        self.reset += other.reset;
        self.protocol += other.protocol;
    }
}
