//! Load as it arrives in life, and a service to aim it at.
//!
//! Users do not take turns. A generator that sends the next request when the last was answered slows down with
//! the server it tests, and so hides the overload it was meant to show: a *closed* loop. Here requests follow a
//! schedule, whatever the server does, and the clock of each starts when it was *meant* to be sent. A server that
//! stalls for a second shows a second of latency for all who came meanwhile.
//!
//! ```text
//! plan ──> arrivals ──> pacer ──> line ──> lanes ──> connections        tally ──> report
//! classes  in order,    a thread  bounded  one request at a time         what became of each
//! keys     by the seed  on time            each
//! ```
//!
//! | to find | look in |
//! |---|---|
//! | what is to be sent: classes, bounds | [`plan`] |
//! | rates: steps, ramps, even or Poisson | [`schedule`] |
//! | which key a request carries | [`keys`] |
//! | where it goes, and why only to this machine | [`target`] |
//! | threads, and how to stop them | [`run`] |
//! | what was seen | [`report`], and while it runs [`live`] |
//! | an upstream whose capacity is known | [`service`] |
//! | a scenario from a file, played and judged | [`drill`] |
//! | cores that stay awake while something is measured | [`awake`] |
//! | how much of the machine others had meanwhile | [`machine`] |
//! | room for open files, before it is needed | [`files`] |
//!
//! ```
//! use std::time::Duration;
//! use tidegate_load::service::{Service, Spec, Work};
//! use tidegate_load::{Pacing, Plan, Rate, Schedule, Target};
//!
//! // Two workers, 10 ms each: 200 requests a second. We send 100.
//! let service = Service::start(&Spec::new(2, Work::Fixed(Duration::from_millis(10))))?;
//! let rate = Rate::per_second(100.0).unwrap();
//! let schedule = Schedule::new(Pacing::Even).steady(rate, Duration::from_millis(500));
//! let report = Plan::new(Target::at(service.address()), schedule).start()?.wait();
//! assert_eq!((report.total.answers.ok, report.total.unsent), (50, 0));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What it leaves out
//!
//! TLS. Connections that change over a run: they are opened when needed and kept. Answers are read, not checked. Callers who
//! leave reset their connections, where most would close them: one machine has too few ports for that.

mod alarm;
pub mod arrivals;
pub mod awake;
mod chance;
mod connection;
pub mod drill;
pub mod files;
pub mod keys;
mod lane;
mod latencies;
mod line;
pub mod live;
pub mod machine;
mod pacer;
pub mod plan;
pub mod report;
pub mod run;
pub mod schedule;
pub mod service;
mod stop;
mod tally;
pub mod target;
mod timeline;

pub use keys::{Draw, Exponent, Keys, Place};
pub use live::SoFar;
pub use plan::{BadPlan, Class, Keep, Persistence, Plan, Protocol, Share, StartFailure};
pub use report::Report;
pub use run::{Run, Stopper};
pub use schedule::{Pacing, Rate, Schedule};
pub use target::{BadTarget, Reach, Target};
