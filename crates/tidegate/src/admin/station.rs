//! What a gateway must tell the admin API, as plain data.
//!
//! The API knows gates, but no proxy: whoever runs one hands over a [`Station`]. Figures are counts since the start, so
//! that a reader who comes at any time can take differences.

mod overload;

use serde_json::Value;
use tidegate_core::{Criticality, Ratio, WallTime};
use tidegate_policy::{Attributes, Explanation, Format, Gate, Now, Problem, Source, problem};

pub use tidegate_proxy::metrics::{Histogram, MeasuredFamily};

use super::changes::Changes;

pub use self::overload::{
    CapacityStatus, ConcurrencyStatus, DegradeSwitch, Gone, SignalStatus, SwitchedRoute,
};

/// A running gateway as the admin API sees it.
///
/// All of it may be called at any time from several threads. Whatever reads a policy may take as long as that
/// takes; everything else answers at once.
pub trait Station: Send + Sync + 'static {
    /// The gate it decides with.
    fn gate(&self) -> &Gate;

    /// One reading of the clocks that the gate is told.
    fn now(&self) -> Now;

    /// When it started.
    fn started(&self) -> WallTime;

    /// How far it is in its life.
    fn stage(&self) -> Stage;

    /// Begins to drain: not ready any more, finishes what is in flight, then ends. Asked twice, it drains once.
    fn drain(&self);

    /// What it has counted.
    fn figures(&self) -> Figures;

    /// What it measures besides, ready for the page for Prometheus.
    fn metrics(&self) -> Vec<MeasuredFamily>;

    /// How many open files callers have, where somebody counts them.
    fn open_files(&self) -> Option<OpenFiles> {
        None
    }

    /// What would happen to a request now; charges nothing.
    fn explain(&self, attributes: &Attributes<'_>) -> Explanation;

    /// How its upstreams are, in the order of the policy.
    fn upstreams(&self) -> Vec<UpstreamStatus>;

    /// The signals it measures and those of its policy, known or not.
    fn signals(&self) -> Vec<SignalStatus>;

    /// Takes a reading of a signal that the admin API is the source of.
    ///
    /// # Errors
    /// When the policy has no such signal any more.
    fn tell(&self, signal: &str, value: f64) -> Result<(), Gone>;

    /// How much capacity is wanted.
    fn capacity(&self) -> CapacityStatus;

    /// The routes that an operator switched to their cheaper answers, in the order of the policy.
    fn switched_routes(&self) -> Vec<SwitchedRoute>;

    /// Switches a route's cheaper answer.
    ///
    /// # Errors
    /// When the policy has no such route with one any more.
    fn degrade(&self, route: &str, switch: DegradeSwitch) -> Result<(), Gone>;

    /// The text of the policy it decides with, with its number.
    fn policy(&self) -> PolicyText;

    /// Reads a policy and says what is wrong with it; changes nothing.
    fn check(&self, text: &[u8], format: Format) -> Checked;

    /// Takes a policy, or leaves everything as it is. It holds until the next one is taken from the file or from here;
    /// the file is not written.
    ///
    /// # Errors
    /// When the policy is wrong, was meant to replace another, or cannot be taken without a new start.
    fn take(&self, offer: Offer<'_>) -> Result<Taken, NotTaken>;

    /// Takes the policy on disk that is held because of what it loses.
    ///
    /// # Errors
    /// When none is held, or the file has changed since.
    fn confirm(&self) -> Result<Taken, NotConfirmed>;

    /// What the policy in force does not have of the one before, unless that is the first.
    fn lost(&self) -> Vec<String>;

    /// What operators changed.
    fn changes(&self) -> &Changes;

    /// The last policy that was not taken from the file, unless one was taken since.
    fn load_failure(&self) -> Option<LoadFailure>;

    /// How many policies were not taken since the start, from the file or from here.
    fn load_failures(&self) -> u64;
}

/// How far a gateway is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// It does not serve yet.
    Starting,
    /// It serves.
    Ready,
    /// It finishes what is in flight and takes nothing new.
    Draining,
}

impl Stage {
    /// As one word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Ready => "ready",
            Self::Draining => "draining",
        }
    }
}

/// What a gateway has counted since it started. Names come from the policy, so that their number is bounded.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figures {
    /// Requests that were decided.
    pub requests: Vec<Requests>,
    /// How long requests took.
    pub durations: Vec<Durations>,
    /// What we ourselves add to a request.
    pub overheads: Vec<Overhead>,
    /// Cheaper answers that were given.
    pub degraded: Vec<DegradedAnswers>,
    /// Requests in flight.
    pub in_flight: Vec<InFlight>,
    /// Connections of callers.
    pub connections: Vec<Connections>,
    /// What upstreams were asked.
    pub attempts: Vec<Attempts>,
    /// Lines of the access log that could not be written in time.
    pub unlogged: u64,
}

/// How long requests took, from the first byte of the head to the last byte of the answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Durations {
    /// The route; `none` for those that none matches.
    pub route: String,
    /// The first digit of the status; 0 where there was none, since the caller went away.
    pub status_class: u8,
    /// How long.
    pub histogram: Histogram,
}

/// What we ourselves add to a request in one phase.
#[derive(Clone, Debug, PartialEq)]
pub struct Overhead {
    /// The phase, as one word of a closed set: `decide`, `connect`.
    pub phase: &'static str,
    /// How long.
    pub histogram: Histogram,
}

/// Requests of one listener, route and criticality.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requests {
    /// The listener.
    pub listener: String,
    /// The route; `none` for those that none matches.
    pub route: String,
    /// How late they should be shed.
    pub criticality: Criticality,
    /// Those that passed.
    pub admitted: u64,
    /// Those that we refused.
    pub refused: u64,
}

/// Cheaper answers of a route, given for one reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DegradedAnswers {
    /// The route.
    pub route: String,
    /// Why, as one word of a closed set: `shedding`, `switched`.
    pub why: &'static str,
    /// How many.
    pub count: u64,
}

/// Requests of a route that have begun and not ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InFlight {
    /// The route; `none` for those that none matches.
    pub route: String,
    /// How many there are now.
    pub now: u64,
}

/// Open files, of those that the system allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenFiles {
    /// How many it allows the process; nothing if any number.
    pub allowed: Option<u64>,
    /// How many connections callers may have of them.
    pub for_callers: usize,
    /// How many they have.
    pub of_callers: usize,
}

/// Connections to a listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connections {
    /// The listener.
    pub listener: String,
    /// Those open now.
    pub open: u64,
    /// Those accepted since the start.
    pub accepted: u64,
    /// Those closed at once since the start, because a bound was reached.
    pub turned_away: u64,
    /// Those whose callers had left before they could be accepted, since the start.
    pub left: u64,
}

/// Attempts at an upstream that ended so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempts {
    /// The upstream.
    pub upstream: String,
    /// How they ended, as one word of a closed set.
    pub outcome: &'static str,
    /// Whether that counts as a failure of the upstream.
    pub is_failure: bool,
    /// How many.
    pub count: u64,
}

/// How an upstream is.
#[derive(Clone, Debug, PartialEq)]
pub struct UpstreamStatus {
    /// Its name.
    pub name: String,
    /// How its limit is found, as it is written in policies.
    pub algorithm: &'static str,
    /// How many of its requests may be in flight, and what becomes of the others.
    pub concurrency: ConcurrencyStatus,
    /// Its endpoints, in the order of the policy.
    pub endpoints: Vec<EndpointStatus>,
}

impl UpstreamStatus {
    /// The share of each level that is refused at once, from 0 to 1.
    #[must_use]
    pub fn shed(&self) -> [f64; 4] {
        self.concurrency.shed.map(Ratio::value)
    }
}

/// How one endpoint is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndpointStatus {
    /// As it is written in the policy.
    pub url: String,
    /// Connections open to it.
    pub connections: u64,
    /// Requests in flight to it.
    pub in_flight: u64,
    /// How often it could not be connected to, since the start.
    pub failures: u64,
    /// What went wrong with it last, if anything did.
    pub last_error: Option<LastError>,
}

/// What went wrong with an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LastError {
    /// As one word of a closed set, the `error` of records.
    pub error: &'static str,
    /// When, to the second.
    pub at: WallTime,
}

/// The text of a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyText {
    /// Its number.
    pub version: u64,
    /// What it is called: the file's name, or where else it comes from.
    pub name: String,
    /// How it is spelt.
    pub format: Format,
    /// The text.
    pub text: Vec<u8>,
}

/// A policy to be taken.
#[derive(Clone, Copy, Debug)]
pub struct Offer<'a> {
    /// The text.
    pub text: &'a [u8],
    /// How it is spelt.
    pub format: Format,
    /// The number of the policy it is to replace; none for whichever is there.
    pub replaces: Option<u64>,
}

/// A policy was taken.
#[derive(Clone, Debug, PartialEq)]
pub struct Taken {
    /// The number it got.
    pub version: u64,
    /// The rules, routes and listeners of the policy before that it does not have.
    pub lost: Vec<String>,
    /// What is to be said of it nevertheless.
    pub warnings: Findings,
}

/// A policy was not taken.
#[derive(Clone, Debug, PartialEq)]
pub enum NotTaken {
    /// It is wrong.
    Wrong(Findings),
    /// It was to replace a policy that is not there any more.
    Replaced {
        /// The number of the one that is there.
        version: u64,
    },
    /// It is right, but something it asks for cannot be had while running; says what.
    NeedsRestart(String),
    /// A file it names cannot be read, or a bound is exceeded; says which.
    Failed(String),
    /// It loses what an operator is to give up first.
    Held,
}

/// What there is to say of a policy that was only looked at.
#[derive(Clone, Debug, PartialEq)]
pub struct Checked {
    /// Whether it could be taken.
    pub is_fine: bool,
    /// Everything found.
    pub findings: Findings,
}

/// Problems of a policy, for programs and for people.
#[derive(Clone, Debug, PartialEq)]
pub struct Findings {
    /// A list of objects, as `tidegate check --json` has it.
    pub list: Value,
    /// As `tidegate check` prints them.
    pub text: String,
    /// How many there are: `2 errors, 1 warning.`
    pub summary: String,
}

impl Findings {
    /// What was found in these texts.
    #[must_use]
    pub fn of(policy: Source<'_>, callers: Option<Source<'_>>, problems: &[Problem]) -> Self {
        Self {
            list: problem::json(policy, callers, problems),
            text: problem::render(policy, callers, problems),
            summary: problem::summary(problems),
        }
    }
}

/// How it stands with a policy on disk that was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unloaded {
    /// It is wrong, or cannot be read.
    Wrong,
    /// It is right, and only a new start can take it.
    NeedsRestart,
    /// It is right, and loses so much that an operator is to confirm it.
    Held,
}

/// Why nothing was confirmed.
#[derive(Clone, Debug, PartialEq)]
pub enum NotConfirmed {
    /// No policy is held.
    NothingHeld,
    /// The file is not what was held any more; it is looked at again.
    Changed,
    /// It cannot be taken any more; says why.
    NotTaken(NotTaken),
}

/// A policy on disk that was not taken.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadFailure {
    /// Since when.
    pub since: WallTime,
    /// How it stands with it.
    pub how: Unloaded,
    /// In one sentence.
    pub summary: String,
    /// What is wrong, if it could be read at all.
    pub findings: Option<Findings>,
}
