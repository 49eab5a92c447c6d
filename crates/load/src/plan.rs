//! What is to be sent: classes of requests, their rates, and the bounds of the generator itself.

mod prepared;

use std::error::Error;
use std::fmt;
use std::io;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, Method, header};

use crate::arrivals::Arrivals;
use crate::keys::{Keys, PLACEHOLDER};
use crate::schedule::Schedule;
use crate::target::Target;

pub(crate) use prepared::Prepared;

/// The most classes of a plan: each has its own histograms.
pub const MAX_CLASSES: usize = 64;

/// The most connections: more than a process may have open by default on most systems.
pub const MAX_CONNECTIONS: usize = 20_000;

/// The most requests that can wait for a connection: 24 bytes each.
pub const MAX_WAITING: usize = 10_000_000;

/// The most attempts that are kept.
pub const MAX_KEPT: u32 = 20_000_000;

/// The longest time-out.
pub const MAX_TIMEOUT: Duration = Duration::from_secs(3600);

/// The longest latency that is told apart: a whole time-out in line, another for the answer, and a margin.
pub(crate) const MAX_LATENCY: Duration = Duration::from_secs(2 * 3600 + 60);

/// How HTTP is spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.1 with keep-alive: one request at a time on each connection.
    Http1,
    /// HTTP/2 with prior knowledge: up to this many requests at a time on each connection.
    H2 {
        /// How many streams are open at once.
        streams: usize,
    },
}

/// What is to be sent where.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Where it goes.
    pub target: Target,
    /// When; shared by the classes that have a weight.
    pub schedule: Schedule,
    /// What; at least one.
    pub classes: Vec<Class>,
    /// How HTTP is spoken.
    pub protocol: Protocol,
    /// How many connections there are. Each is opened by its first request, and they take turns.
    pub connections: usize,
    /// How many more there are, which take a request only when all others are busy.
    pub relief: usize,
    /// How many requests may wait for a connection; what is due beyond that is unsent.
    pub waiting: usize,
    /// How long an answer may take from the moment the request is sent. One that waits as long for a connection is
    /// unsent.
    pub timeout: Duration,
    /// How often and how long callers try.
    pub persistence: Persistence,
    /// What is kept of each request.
    pub keep: Keep,
    /// How many threads send. One does tens of thousands of requests a second.
    pub threads: usize,
    /// Fixes which classes and keys come when.
    pub seed: u64,
}

/// How often and how long a caller tries. A request that is tried again keeps its connection's turn meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Persistence {
    /// How often, the first time included, until there is a 2xx.
    pub attempts: u32,
    /// How long it waits before it tries again.
    pub pause: Duration,
    /// How long it waits in all, from the moment the request was due.
    pub patience: Duration,
}

impl Persistence {
    /// Tries once.
    pub const ONCE: Self = Self { attempts: 1, pause: Duration::ZERO, patience: Duration::MAX };
}

/// What is kept of each request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// It is counted.
    Counts,
    /// Every attempt, for [`Report::attempts`](crate::Report::attempts): 40 bytes each.
    Attempts,
}

/// Requests of one kind.
#[derive(Clone, Debug)]
pub struct Class {
    /// What it is called in the report.
    pub name: String,
    /// How much of it there is.
    pub share: Share,
    /// The method.
    pub method: Method,
    /// The path with its query; it may say `{key}`.
    pub path: String,
    /// Header fields. A Host field replaces the target's.
    pub headers: HeaderMap,
    /// The body; nothing for none.
    pub body: Bytes,
    /// Keys that change from request to request.
    pub keys: Option<Keys>,
}

/// How much of a class there is.
#[derive(Clone, Debug, PartialEq)]
pub enum Share {
    /// A share of the plan's schedule, in proportion to the weights of the others.
    Weight(u32),
    /// A schedule of its own, beside the plan's.
    Own(Schedule),
}

impl Plan {
    /// A plan for one class: GET requests to the target's path, over at most 50 connections, with a time-out of
    /// two seconds. Every field can be changed.
    #[must_use]
    pub fn new(target: Target, schedule: Schedule) -> Self {
        let class = Class::get("all", target.path());
        Self {
            target,
            schedule,
            classes: vec![class],
            protocol: Protocol::Http1,
            connections: 50,
            relief: 0,
            waiting: 100_000,
            timeout: Duration::from_secs(2),
            persistence: Persistence::ONCE,
            keep: Keep::Counts,
            threads: 1,
            seed: 0,
        }
    }

    /// How long the schedules take.
    #[must_use]
    pub fn length(&self) -> Duration {
        self.schedules().map(Schedule::length).max().unwrap_or_default()
    }

    /// Every request of the plan in order, as the seed gives it.
    ///
    /// # Errors
    /// When the plan is wrong.
    pub fn arrivals(&self) -> Result<Arrivals, BadPlan> {
        self.check()?;
        Ok(Arrivals::new(self))
    }

    /// The schedules that are in use.
    fn schedules(&self) -> impl Iterator<Item = &Schedule> {
        let shares = self.classes.iter().map(|class| &class.share);
        let is_shared = shares.clone().any(|share| matches!(share, Share::Weight(_)));
        let own = shares.filter_map(|share| match share {
            Share::Own(schedule) => Some(schedule),
            Share::Weight(_) => None,
        });
        own.chain(is_shared.then_some(&self.schedule))
    }

    pub(crate) fn check(&self) -> Result<(), BadPlan> {
        let wrong = |what: String| Err(BadPlan(what));
        if !(1..=MAX_CLASSES).contains(&self.classes.len()) {
            return wrong(format!("a plan has 1 to {MAX_CLASSES} classes, not {}", self.classes.len()));
        }
        if !(1..=MAX_CONNECTIONS).contains(&self.connections) {
            return wrong(format!(
                "there must be 1 to {MAX_CONNECTIONS} connections, not {}",
                self.connections
            ));
        }
        if self.relief > MAX_CONNECTIONS {
            return wrong(format!("there may be {MAX_CONNECTIONS} more connections, not {}", self.relief));
        }
        if !(1..=MAX_WAITING).contains(&self.waiting) {
            return wrong(format!("1 to {MAX_WAITING} requests may wait, not {}", self.waiting));
        }
        if !(Duration::from_millis(1)..=MAX_TIMEOUT).contains(&self.timeout) {
            return wrong(format!("the time-out is between 1 ms and an hour, not {:?}", self.timeout));
        }
        if !(1..=self.connections.min(64)).contains(&self.threads) {
            return wrong(format!(
                "there must be 1 to 64 threads, each with a connection, not {}",
                self.threads
            ));
        }
        if let Protocol::H2 { streams } = self.protocol
            && !(1..=1000).contains(&streams)
        {
            return wrong(format!("a connection carries 1 to 1000 streams, not {streams}"));
        }
        if self.persistence.attempts == 0 {
            return wrong("a caller tries at least once".to_owned());
        }
        let kept =
            self.schedules().map(Schedule::requests).sum::<f64>() * f64::from(self.persistence.attempts);
        if self.keep == Keep::Attempts && kept > f64::from(MAX_KEPT) {
            return wrong(format!("at most {MAX_KEPT} attempts can be kept, not {kept:.0}"));
        }
        if self.schedules().all(|schedule| schedule.requests() <= 0.0) {
            return wrong("the schedule asks for no request at all".to_owned());
        }
        let shares = self.classes.iter().map(|class| &class.share);
        if shares.clone().any(|share| *share == Share::Weight(0)) {
            return wrong("a weight is at least 1; leave the class out instead".to_owned());
        }
        for class in &self.classes {
            if let Some(problem) = class.problem() {
                // Whoever has only one need not know that there are classes.
                let is_only = self.classes.len() == 1;
                return wrong(if is_only { problem } else { format!("class `{}`: {problem}", class.name) });
            }
        }
        Ok(())
    }
}

impl Class {
    /// Plain GET requests with all the weight there is.
    #[must_use]
    pub fn get(name: &str, path: &str) -> Self {
        Self {
            name: name.to_owned(),
            share: Share::Weight(1),
            method: Method::GET,
            path: path.to_owned(),
            headers: HeaderMap::new(),
            body: Bytes::new(),
            keys: None,
        }
    }

    /// What is wrong with it, if anything is.
    fn problem(&self) -> Option<String> {
        if !self.path.starts_with('/') {
            return Some(format!("the path `{}` does not begin with /", self.path));
        }
        if let Some(field) = FRAMING.iter().find(|field| self.headers.contains_key(*field)) {
            return Some(format!("the field `{field}` belongs to the connection and cannot be chosen"));
        }
        if self.method == Method::CONNECT {
            return Some("CONNECT opens tunnels, which are not measured here".to_owned());
        }
        match &self.keys {
            Some(keys) => keys.problem(&self.path),
            None if self.path.contains(PLACEHOLDER) => {
                Some(format!("the path says {PLACEHOLDER}, but there are no keys"))
            }
            None => None,
        }
    }
}

/// What says where a message ends and what becomes of its connection.
const FRAMING: [HeaderName; 6] = [
    header::CONNECTION,
    header::CONTENT_LENGTH,
    header::EXPECT,
    header::TE,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

/// What is wrong with a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadPlan(pub(crate) String);

impl fmt::Display for BadPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for BadPlan {}

/// Why a plan is not carried out.
#[derive(Debug)]
#[non_exhaustive]
pub enum StartFailure {
    /// It is wrong.
    Plan(BadPlan),
    /// The system has no thread left.
    Thread(io::Error),
}

impl fmt::Display for StartFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plan(problem) => problem.fmt(f),
            Self::Thread(problem) => write!(f, "no thread to send from: {problem}"),
        }
    }
}

impl Error for StartFailure {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Plan(problem) => Some(problem),
            Self::Thread(problem) => Some(problem),
        }
    }
}

impl From<BadPlan> for StartFailure {
    fn from(problem: BadPlan) -> Self {
        Self::Plan(problem)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::{Pacing, Rate};

    fn plan() -> Plan {
        let rate = Rate::per_second(10.0).unwrap();
        let schedule = Schedule::new(Pacing::Even).steady(rate, Duration::from_secs(1));
        Plan::new(Target::at("127.0.0.1:1".parse().unwrap()), schedule)
    }

    fn problem(change: impl FnOnce(&mut Plan)) -> String {
        let mut plan = plan();
        change(&mut plan);
        plan.check().unwrap_err().to_string()
    }

    #[test]
    fn every_bound_is_said() {
        assert_eq!(plan().check(), Ok(()));
        assert_eq!(problem(|plan| plan.classes.clear()), "a plan has 1 to 64 classes, not 0");
        assert_eq!(problem(|plan| plan.connections = 0), "there must be 1 to 20000 connections, not 0");
        assert_eq!(problem(|plan| plan.relief = 20_001), "there may be 20000 more connections, not 20001");
        assert_eq!(problem(|plan| plan.waiting = 0), "1 to 10000000 requests may wait, not 0");
        assert!(problem(|plan| plan.timeout = Duration::ZERO).contains("between 1 ms and an hour"));
        assert!(problem(|plan| plan.threads = 51).contains("each with a connection, not 51"));
        let streams = problem(|plan| plan.protocol = Protocol::H2 { streams: 0 });
        assert_eq!(streams, "a connection carries 1 to 1000 streams, not 0");
        assert!(problem(|plan| plan.schedule = Schedule::new(Pacing::Even)).contains("no request at all"));
        assert!(problem(|plan| plan.classes[0].share = Share::Weight(0)).contains("at least 1"));
        assert_eq!(problem(|plan| plan.persistence.attempts = 0), "a caller tries at least once");
        let kept = |plan: &mut Plan| {
            plan.keep = Keep::Attempts;
            plan.persistence.attempts = u32::MAX;
        };
        assert!(problem(kept).starts_with("at most 20000000 attempts can be kept, not "));
    }

    #[test]
    fn what_a_class_cannot_send_is_said() {
        let class = |change: fn(&mut Class)| problem(|plan| change(&mut plan.classes[0]));
        let path = class(|class| class.path = "*".to_owned());
        assert_eq!(path, "the path `*` does not begin with /");
        let field = class(|class| {
            class.headers.insert(header::CONTENT_LENGTH, 3.into());
        });
        assert!(field.contains("`content-length` belongs to the connection"), "{field}");
        assert!(class(|class| class.method = Method::CONNECT).contains("tunnels"));
        assert!(class(|class| class.path = "/{key}".to_owned()).contains("there are no keys"));
        let one_of_two = problem(|plan| plan.classes.push(Class::get("other", "x")));
        assert_eq!(one_of_two, "class `other`: the path `x` does not begin with /");
    }
}
