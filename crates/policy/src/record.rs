//! One line of the access log, which is also what replay reads.
//!
//! One schema for both, so that a log can be decided again: whatever a rule may look at is in it, except secrets.
//! A caller appears by its fingerprint, a seeded hash, and as far as it may be shown; the fingerprint tells callers
//! apart, which is all that counters need.
//!
//! ```text
//! {"v":1,"time":"2026-11-15T23:18:39.25Z","id":"00c0ffee00c0ffee","method":"GET","path":"/v1/orders","route":"orders",
//!  "caller":"sk_live_…","fingerprint":"7f3a09c2d4e5b6a1","criticality":"critical","cost":1,"decision":"refused",
//!  "rule":"per_key","reason":"quota_spent","retry_ms":93.5}
//! ```
//!
//! Fields that say nothing are left out. A reader refuses a version above its own, and ignores fields it does not
//! know, so that a field can be added without a new version.

mod json;
mod time;

pub(crate) use json::retry_json;
pub use json::{cost_json, millis_json};
pub use time::{read as read_time, write as time_text};

use std::time::Duration;

use tidegate_core::permit::Outcome;
use tidegate_core::{Cost, Criticality, Retry, WallTime};

use crate::decision::DecisionId;

/// What happened to one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// When it was decided.
    pub time: WallTime,
    /// The decision's number.
    pub id: DecisionId,
    /// Its method.
    pub method: String,
    /// Its path without the query.
    pub path: String,
    /// The route it took, if any.
    pub route: Option<String>,
    /// Who sent it, as far as it may be shown.
    pub caller: Option<String>,
    /// Who sent it, as a hash that tells callers apart.
    pub fingerprint: Option<u64>,
    /// How late it should be shed.
    pub criticality: Criticality,
    /// What it cost.
    pub cost: Cost,
    /// Whether it passed.
    pub is_admitted: bool,
    /// The rule that refused it, or the upstream that turned it away: `upstream:orders`.
    pub rule: Option<String>,
    /// Why it was refused, in one word.
    pub reason: Option<String>,
    /// When it may work, as the limiter says; whoever gets a 503 is told a time of its own around it.
    pub retry: Option<Retry>,
    /// The rules in shadow that would have refused it.
    pub shadow_refusals: Vec<String>,
    /// How long it had to wait.
    pub wait: Duration,
    /// How long it took.
    pub duration: Option<Duration>,
    /// The status it was answered with.
    pub status: Option<u16>,
    /// How it ended.
    pub outcome: Option<Outcome>,
}

impl Record {
    /// The version of the schema that is written.
    pub const VERSION: u64 = 1;
}

/// A line that is no record.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ParseError {
    /// It is not JSON.
    NotJson {
        /// What the reader of JSON says.
        problem: String,
    },
    /// It has a version that is not known here.
    Version {
        /// The version.
        found: u64,
    },
    /// A field is missing or not what it must be.
    Field {
        /// Its name.
        name: &'static str,
        /// What it must be.
        expected: &'static str,
    },
}

impl std::fmt::Display for ParseError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotJson { problem } => write!(f, "the line is not JSON: {problem}"),
            Self::Version { found } => {
                write!(f, "the record has version {found}, but at most {} is known here", Record::VERSION)
            }
            Self::Field { name, expected } => write!(f, "`{name}` must be {expected}"),
        }
    }
}

impl std::error::Error for ParseError {}

/// How work ended, as one word.
#[must_use]
pub const fn outcome_name(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Ok => "ok",
        Outcome::Failed => "failed",
        Outcome::Overloaded => "overloaded",
        Outcome::Abandoned => "abandoned",
    }
}
