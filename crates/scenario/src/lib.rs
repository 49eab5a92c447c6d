//! Overload scenarios as files: traffic, a service, faults, and what must be measured afterwards.
//!
//! "Protected" is a claim; a scenario is the claim with numbers. Each is one file that two runners read: the model
//! (`tidegate-model`) plays it in virtual time, the drill (`tidegate-load`) over real sockets. Both fill the same
//! [`Record`] and are judged by the same [`Assertion`]s, so that a measure cannot mean two things.
//!
//! ```text
//!              ┌──> model: virtual time, the core's limiters ───┐
//! o1_step.toml ┤                                                ├──> Record ──> findings
//!              └──> drill: sockets, a service, the gateway ─────┘
//! ```
//!
//! A file has a timeline of phases with names. Everything else refers to those names: the load of each class, the faults,
//! the stretch over which something is measured. So a phase can be short on sockets and long in virtual time, and nothing
//! else has to say so.
//!
//! ```
//! use tidegate_scenario::{Pace, Scenario};
//!
//! let scenario = Scenario::read("step.toml", r#"
//! id   = "O1"
//! what = "load .9, then 1.4, then .9"
//! timeline = [
//!     { phase = "before", length = "20s", real = "4s" },
//!     { phase = "step", length = "20s", real = "5s" },
//!     { phase = "after", length = "40s", real = "12s" },
//! ]
//!
//! [service]
//! workers = 10
//! work    = { exponential = "10ms" }      # a thousand a second
//!
//! [traffic]
//! load    = { before = 0.9, step = 1.4, after = 0.9 }
//! timeout = "200ms"
//!
//! [class.users]
//! share       = "100%"
//! criticality = "critical"
//!
//! [[assert]]
//! what     = "G from one second after the step"
//! measure  = "goodput"
//! over     = "step"
//! from     = "1s"
//! at_least = 0.9
//! naive    = { at_most = 0.1 }
//! "#).unwrap();
//! assert_eq!(scenario.service.capacity(), 1000.0);
//! assert_eq!(scenario.timeline.length(Pace::Virtual).as_secs(), 80);
//! assert_eq!(scenario.timeline.length(Pace::Real).as_secs(), 21);
//! ```
//!
//! | to find | look in |
//! |---|---|
//! | what a scenario is made of | [`Scenario`] |
//! | phases, and when they are | [`timeline`] |
//! | what is measured, and how each measure is defined | [`measure`], [`record`] |
//! | what a refusal costs a gateway | [`cost`] |
//! | what a file may say, key by key | [`read`] |
//!
//! Nothing here does I/O: a text comes in, a scenario or a list of problems comes out.

pub mod bins;
pub mod cost;
pub mod measure;
pub mod read;
pub mod record;
pub mod timeline;
mod tree;

use std::time::Duration;

use tidegate_core::Criticality;

pub use cost::Effort;
pub use measure::{Assertion, Bound, Finding, Measure, Shown, Variant};
pub use read::{Problem, Problems};
pub use record::{Ending, Record, Told};
pub use timeline::{Pace, Timeline};

/// The most classes of a scenario.
pub const MAX_CLASSES: usize = 8;

/// One scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// Its name in the table of scenarios: `O1`.
    pub id: String,
    /// What happens, in one line.
    pub what: String,
    /// Who can run it.
    pub runs: Vec<Pace>,
    /// Its phases.
    pub timeline: Timeline,
    /// Whom the traffic is for.
    pub service: Service,
    /// What its callers have in common.
    pub traffic: Traffic,
    /// Its callers.
    pub classes: Vec<Class>,
    /// What befalls the service.
    pub faults: Vec<Fault>,
    /// The policy of the gateway that protects it; `{service}` stands for the service's address.
    pub policy: Option<String>,
    /// What is measured.
    pub assertions: Vec<Assertion>,
}

/// A service of known capacity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Service {
    /// How many requests are worked on at a time.
    pub workers: u32,
    /// How long each takes a worker.
    pub work: Work,
    /// How long each takes afterwards without a worker: something behind the service is called.
    pub then: Option<Work>,
    /// What a crowd does to the work.
    pub crowding: Option<Crowding>,
    /// How many may wait; without bound where nobody says.
    pub queue: Option<u32>,
    /// Whether its answers tell how busy its workers are.
    pub tells_utilisation: bool,
}

/// How long requests take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Work {
    /// All the same.
    Exact(Duration),
    /// With no memory, of this mean: many short, few long.
    Exponential(Duration),
    /// Two kinds.
    TwoKinds {
        /// What most take.
        short: Duration,
        /// What the others take.
        long: Duration,
        /// How many are the others, from 0 to 1.
        share_of_long: f64,
    },
}

/// How work slows down when many requests are inside: memory, garbage collection, lost caches.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Crowding {
    /// So many do not matter.
    pub free: u32,
    /// What each further one adds to everybody's work.
    pub slope: f64,
    /// The most it can become.
    pub most: f64,
}

/// What all callers have in common.
#[derive(Clone, Debug, PartialEq)]
pub struct Traffic {
    /// The load that classes with a share divide among themselves.
    pub load: Load,
    /// How long one attempt may take.
    pub timeout: Duration,
    /// How often a caller tries, the first time included.
    pub attempts: u32,
    /// How long it waits before it tries again.
    pub pause: Duration,
    /// How long a caller waits in all.
    pub patience: Duration,
}

/// Requests of one kind.
#[derive(Clone, Debug, PartialEq)]
pub struct Class {
    /// What it is called.
    pub name: String,
    /// How late it should be shed.
    pub criticality: Criticality,
    /// How much of it there is.
    pub amount: Amount,
    /// How many callers send it, in equal parts.
    pub callers: u32,
    /// What they ask for.
    pub path: String,
}

/// How much of a class there is.
#[derive(Clone, Debug, PartialEq)]
pub enum Amount {
    /// This share of the common load, from 0 to 1.
    Share(f64),
    /// A load of its own.
    Own(Load),
}

/// Requests a second as multiples of what the service can do, phase by phase; nothing where a phase is not named.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Load(pub Vec<(String, Level)>);

/// The load in one phase: from the first number to the second in a straight line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Level {
    /// When the phase begins.
    pub first: f64,
    /// When it ends.
    pub last: f64,
}

/// What is wrong with the service during a phase.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    /// The phase.
    pub during: String,
    /// Work takes this many times as long; 5 cuts the capacity by 80 %.
    pub slow: f64,
    /// The share of answers that are failures.
    pub fail: f64,
    /// How much longer answers take without holding a worker.
    pub delay: Duration,
    /// Whether it takes requests and does nothing.
    pub is_hung: bool,
    /// Whether it is gone: it takes no connection and loses what it had.
    pub is_stopped: bool,
}

impl Scenario {
    /// Reads a file. `name` is what problems call it.
    ///
    /// # Errors
    /// All that is wrong with it, each with its line.
    pub fn read(name: &str, text: &str) -> Result<Self, Problems> {
        read::read(name, text)
    }

    /// The classes that a word of an assertion means: the name of one, or a criticality.
    #[must_use]
    pub fn classes_called(&self, word: &str) -> Vec<usize> {
        let is_meant = |class: &Class| class.name == word || class.criticality.as_str() == word;
        (0..).zip(&self.classes).filter(|(_, class)| is_meant(class)).map(|(index, _)| index).collect()
    }

    /// The load of a class.
    #[must_use]
    pub fn load_of(&self, class: &Class) -> Load {
        match &class.amount {
            Amount::Own(load) => load.clone(),
            Amount::Share(share) => self.traffic.load.times(*share),
        }
    }

    /// An empty record of a run of it.
    #[must_use]
    pub fn record(&self) -> Record {
        Record::new(self.service.capacity(), self.classes.iter().map(|class| class.criticality).collect())
    }

    /// What a run has shown, assertion by assertion; those that are for the other runner are left out.
    #[must_use]
    pub fn findings(&self, record: &Record, pace: Pace, variant: Variant) -> Vec<Finding> {
        let asked = self.assertions.iter().filter(|assertion| assertion.is_for(pace));
        asked.map(|assertion| assertion.finding(self, record, pace, variant)).collect()
    }
}

impl Service {
    /// Requests a second that its workers can do.
    #[must_use]
    pub fn capacity(&self) -> f64 {
        f64::from(self.workers) / self.work.mean().as_secs_f64()
    }

    /// What the 99th of 100 requests takes when nobody else is there.
    #[must_use]
    pub fn unloaded_p99(&self) -> Duration {
        // The two parts are drawn apart: their sum is less. It is a yardstick, not a measurement.
        self.work.p99() + self.then.map_or(Duration::ZERO, |then| then.p99())
    }
}

impl Work {
    /// What a request takes on average.
    #[must_use]
    pub fn mean(&self) -> Duration {
        match *self {
            Self::Exact(time) | Self::Exponential(time) => time,
            Self::TwoKinds { short, long, share_of_long } => {
                short.mul_f64(1.0 - share_of_long) + long.mul_f64(share_of_long)
            }
        }
    }

    /// What 99 of 100 requests do not exceed.
    #[must_use]
    pub fn p99(&self) -> Duration {
        match *self {
            Self::Exact(time) => time,
            Self::Exponential(mean) => mean.mul_f64(100.0_f64.ln()),
            Self::TwoKinds { short, long, share_of_long } => {
                if share_of_long > 0.01 {
                    long
                } else {
                    short
                }
            }
        }
    }
}

impl Load {
    /// The load in a phase.
    #[must_use]
    pub fn during(&self, phase: &str) -> Level {
        let named = self.0.iter().find(|(name, _)| name == phase);
        named.map_or(Level { first: 0.0, last: 0.0 }, |(_, level)| *level)
    }

    /// This many times as much of it.
    #[must_use]
    pub fn times(&self, factor: f64) -> Self {
        let times = |level: Level| Level { first: level.first * factor, last: level.last * factor };
        Self(self.0.iter().map(|(phase, level)| (phase.clone(), times(*level))).collect())
    }
}

impl Fault {
    /// Nothing is wrong during this phase.
    #[must_use]
    pub fn none(during: &str) -> Self {
        Self {
            during: during.to_owned(),
            slow: 1.0,
            fail: 0.0,
            delay: Duration::ZERO,
            is_hung: false,
            is_stopped: false,
        }
    }
}
