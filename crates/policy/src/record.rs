//! One line of the access log, which is also what replay reads.
//!
//! One schema for both, so that a log can be decided again: whatever a rule may look at is in it, except secrets.
//! A caller appears by its fingerprint, a seeded hash, and as far as it may be shown; every rule that was asked has the
//! fingerprint of its key, which tells counters apart, and that is all that deciding again needs.
//!
//! ```text
//! {"v":2,"time":"2026-11-15T23:18:39.25Z","id":"00c0ffee00c0ffee","request_id":"00c0ffee00c0ffee","method":"GET",
//!  "host":"api.example","path":"/v1/orders","client":"203.0.113.7","route":"orders","caller":"sk_live_…",
//!  "fingerprint":"7f3a09c2d4e5b6a1","fingerprints":{"per_key":"7f3a09c2d4e5b6a1"},"criticality":"critical","cost":1,
//!  "decision":"refused","rule":"per_key","reason":"quota_spent","retry_ms":93.5,"status":429}
//! ```
//!
//! Fields that say nothing are left out. A reader refuses a version above its own, and ignores fields it does not
//! know, so that a field can be added without a new version. Lines of version 1 are read as lines of version 2 that say
//! less: nothing in them has another meaning now.
//!
//! What strangers send is cut to a length, and written without anything that a terminal would carry out.

mod json;
mod schema;
mod stands_for;
mod time;

pub(crate) use json::retry_json;
pub use json::{cost_json, millis_json};
pub use schema::schema;
pub use stands_for::StandsFor;
pub use time::{read as read_time, write as time_text};

use std::net::IpAddr;
use std::time::Duration;

use tidegate_core::permit::Outcome;
use tidegate_core::{Cost, Criticality, Retry, WallTime};

use crate::decision::DecisionId;

/// What happened to one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// When it was decided.
    pub time: WallTime,
    /// The decision's number; none where nothing was decided, since it could not be read.
    pub id: Option<DecisionId>,
    /// What it is called on its whole way: as a trusted peer says, else the decision's number.
    pub request_id: Option<String>,
    /// The listener it came to.
    pub listener: Option<String>,
    /// Its method; empty where it could not be read.
    pub method: String,
    /// The host it was sent to.
    pub host: Option<String>,
    /// Its path without the query; empty where it could not be read.
    pub path: String,
    /// Where it came from, as far as proxies can be believed.
    pub client: Option<IpAddr>,
    /// What program its caller says it is.
    pub user_agent: Option<String>,
    /// The route it took, if any.
    pub route: Option<String>,
    /// Who sent it, as far as it may be shown.
    pub caller: Option<String>,
    /// Who sent it, as a hash that tells callers apart.
    pub fingerprint: Option<u64>,
    /// The key it had in each rule that was asked, as a hash, by the rule's name.
    pub fingerprints: Vec<(String, u64)>,
    /// How late it should be shed.
    pub criticality: Criticality,
    /// What it cost.
    pub cost: Cost,
    /// What it turned out to cost, by the name of the rule whose charge was settled.
    pub settled: Vec<(String, Cost)>,
    /// What became of it at the gate.
    pub decided: Decided,
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
    /// The endpoint that answered it, or that was asked last.
    pub endpoint: Option<String>,
    /// How often an upstream was asked.
    pub attempts: u32,
    /// How long it took from asking the upstream until the head of its answer.
    pub upstream: Option<Duration>,
    /// How long it took.
    pub duration: Option<Duration>,
    /// The status it was answered with.
    pub status: Option<u16>,
    /// The bytes of the answer's body that were handed to the caller's connection.
    pub sent_bytes: Option<u64>,
    /// The bytes of the request's body that came.
    pub received_bytes: Option<u64>,
    /// What went wrong, in one word.
    pub error: Option<String>,
    /// The same in a sentence.
    pub detail: Option<String>,
    /// How it ended.
    pub outcome: Option<Outcome>,
    /// How many requests it stands for.
    pub stands_for: StandsFor,
}

/// What became of a request at the gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decided {
    /// It passed.
    Admitted,
    /// It was refused.
    Refused,
    /// It never came there, since it could not be read.
    Malformed,
}

impl Decided {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Admitted, Self::Refused, Self::Malformed];

    /// As one word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Admitted => "admitted",
            Self::Refused => "refused",
            Self::Malformed => "malformed",
        }
    }
}

impl Record {
    /// The version of the schema that is written.
    pub const VERSION: u64 = 2;

    /// The most bytes of a path, and of a sentence.
    pub const MOST_OF_PATH: usize = 1_024;

    /// The most bytes of any other text of strangers.
    pub const MOST_OF_TEXT: usize = 256;

    /// Of a request that could not be read, at this time: what else is known is for its driver to add.
    #[must_use]
    pub const fn malformed(time: WallTime) -> Self {
        Self {
            time,
            id: None,
            request_id: None,
            listener: None,
            method: String::new(),
            host: None,
            path: String::new(),
            client: None,
            user_agent: None,
            route: None,
            caller: None,
            fingerprint: None,
            fingerprints: Vec::new(),
            criticality: Criticality::Critical,
            cost: Cost::ZERO,
            settled: Vec::new(),
            decided: Decided::Malformed,
            rule: None,
            reason: None,
            retry: None,
            shadow_refusals: Vec::new(),
            wait: Duration::ZERO,
            endpoint: None,
            attempts: 0,
            upstream: None,
            duration: None,
            status: None,
            sent_bytes: None,
            received_bytes: None,
            error: None,
            detail: None,
            outcome: None,
            stands_for: StandsFor::ONE,
        }
    }

    /// Whether it passed.
    #[must_use]
    pub fn is_admitted(&self) -> bool {
        self.decided == Decided::Admitted
    }

    /// A text of a stranger, with at most so many bytes: what is longer is cut between characters and says so.
    #[must_use]
    pub fn cut(text: &str, most: usize) -> String {
        const MARK: char = '…';
        if text.len() <= most {
            return text.to_owned();
        }
        let mut cut = text[..text.floor_char_boundary(most.saturating_sub(MARK.len_utf8()))].to_owned();
        cut.push(MARK);
        cut
    }

    /// The value of a field of a stranger, where there is one.
    #[must_use]
    pub fn cut_field(value: Option<&[u8]>) -> Option<String> {
        let value = value.filter(|value| !value.is_empty())?;
        // What is not UTF-8 can be three times as long as a text.
        let begin = value.get(..Self::MOST_OF_TEXT + 1).unwrap_or(value);
        Some(Self::cut(&String::from_utf8_lossy(begin), Self::MOST_OF_TEXT))
    }
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
