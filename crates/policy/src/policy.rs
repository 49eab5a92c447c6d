//! The compiled form of a policy: only values that cannot be wrong.
//!
//! It is made by compiling a document, never by hand, and never changes. Whatever the operator may want to
//! see again (a quota as it was written, the line a rule stands on) is kept beside what is computed with.

mod access_log;
mod concurrency;
mod degrade;
mod key;
mod limit;
mod listener;
mod log;
mod looks;
mod matcher;
mod network;
mod route;
mod rule;
mod server;
mod shed;
mod signal;
mod upstream;

pub use access_log::{AccessLog, LogAlways, LogFormat, LogTarget};
pub use concurrency::{Concurrency, LimitAlgorithm, WaitingOrder, WaitingQueue};
pub use degrade::{Degrade, DegradeWhen};
pub use key::{KeySource, KeySpec};
pub use limit::{Limit, Rate, Shape};
pub use listener::{Listener, Protocols, Tls};
pub use log::{Log, LogForm, LogLevel};
pub use matcher::{HeaderMatch, Matcher, PathPattern};
pub use network::{Network, inside};
pub use route::{MethodCosts, Route};
pub use rule::{Mode, Rule, RuleCost, Settle, Variation};
pub use server::{ClientAddress, Guard, LegacyReset, RatelimitFields, Secret, Server};
pub use shed::{Capacity, Reserve, Shed};
pub use signal::{MOST_SIGNALS, SignalFrom, SignalName, SignalSpec, SignalUnit};
pub use upstream::{Endpoint, Upstream, UpstreamProtocol};

use std::collections::BTreeMap;
use std::sync::Arc;

use tidegate_core::Criticality;

/// The most rules that one request can meet, shadow values included. With up to eight, a decision needs no memory of
/// its own.
pub const MOST_RULES_A_ROUTE: usize = 16;

/// The most plans that one rule can have numbers for: with its own, and while a policy replaces another, its
/// counters can be read by sixteen limits.
pub const MOST_PLANS_A_RULE: usize = 7;

/// The most sources that one key can be made of.
pub const MOST_SOURCES_A_KEY: usize = 8;

/// The most limits of single callers, all callers together.
pub const MOST_OVERRIDES: usize = 16_384;

/// Keys in the table of a caller's own limit, where the rule's key is more than the caller.
pub(crate) const KEYS_OF_ONE_CALLER: usize = 1024;

/// Everything one policy file asks for.
#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    /// Its rules, in the order of the file.
    pub rules: Vec<Arc<Rule>>,
    /// Its routes, in the order of the file: the first that matches is taken. Never empty; without any in
    /// the file there is one that matches everything and has all the rules.
    pub routes: Vec<Route>,
    /// How a caller is recognised: the first source that is present.
    pub caller: KeySpec,
    /// Which identities that are found in a header field are callers; of others the next source counts.
    pub known: KnownCallers,
    /// What is known of callers, by identity.
    pub callers: BTreeMap<String, Caller>,
    /// How criticality is assigned, in order; the first match wins over what a trusted peer says.
    pub criticality: Vec<(Matcher, Criticality)>,
    /// Where a trusted peer says it, in order: the first that is present.
    pub criticality_from: Vec<CriticalitySource>,
    /// What a request has that nobody assigned anything to.
    pub default_criticality: Criticality,
    /// The process itself, for the drivers that are one.
    pub server: Server,
    /// Where callers connect to, in the order of the file.
    pub listeners: Vec<Listener>,
    /// The services behind the gateway, in the order of the file.
    pub upstreams: Vec<Arc<Upstream>>,
    /// The signals of its own, in the order of the file.
    pub signals: Vec<SignalSpec>,
    /// The log of requests, where one is written.
    pub access_log: Option<AccessLog>,
    /// The process's own lines.
    pub log: Log,
    /// The key of fingerprints; drawn at the start where there is none.
    pub fingerprint_key: Option<Secret>,
}

/// Where a criticality is read from.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum CriticalitySource {
    /// A header field, by its name in lower case.
    Header(String),
    /// A member of the `baggage` header field.
    Baggage(String),
}

/// Which identities are callers. An address cannot be invented, so it always is one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KnownCallers {
    /// All that are sent.
    #[default]
    All,
    /// Those that stand in the table of callers.
    Table,
}

/// What the callers table says of one identity.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Caller {
    /// The plan it is on.
    pub plan: Option<String>,
    /// Limits of its own, by the name of the rule.
    pub overrides: BTreeMap<String, Limit>,
}

/// Where in the file something stands, counted from one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Line(pub u32);

impl Line {
    /// What stands nowhere in the file, since it is there without being written.
    pub const NOWHERE: Self = Self(0);

    /// The line, of what was written.
    #[must_use]
    pub const fn written(self) -> Option<u32> {
        if self.0 == 0 { None } else { Some(self.0) }
    }
}
