//! Overload in virtual time: callers, services and faults, with and without protection.
//!
//! Whether a limiter protects can only be seen where there is something to protect from. Real overload
//! needs machines, minutes and luck; in a model, an hour of it takes a second and is the same every time. So
//! here are callers who arrive whether they are served or not, services that fail the way services do, and
//! protection made of `tidegate-core`'s own types, which cannot tell the difference: they are told the
//! moment by us as they are by any other driver.
//!
//! ```text
//! source ──> manners ──> gate ──> queue ──> workers ──> (manners ──> gate ──> …) ──> answer
//! arrivals   caller      protect            spec::Service: work, health                 measure
//! ```
//!
//! | to find | look in |
//! |---|---|
//! | when requests arrive, and how urgent they are | [`arrivals`] |
//! | services, links, faults: a model as data | [`spec`] |
//! | who may pass to a service | [`gate`] |
//! | when callers attempt and try again | [`caller`] |
//! | both, made of the core's limiters | [`protect`] |
//! | the event loop | [`world`], [`agenda`] |
//! | what is counted, and how each measure is defined | [`measure`] |
//! | the scenarios and what they must reach | [`scenarios`] |
//!
//! # Why services collapse here
//!
//! Nothing tells a service to collapse. Its workers take what has waited longest, and do not know whether
//! anybody still waits for the answer. A caller who gives up leaves its request in the queue and sends another.
//! That is all it takes: once the queue is longer than the callers' patience, the service is fully busy with
//! answers that nobody wants. [`spec::Crowding`] adds work that becomes slower in a crowd, where that is the point.
//!
//! # An example with numbers
//!
//! One worker needs exactly 1 ms for a request, and 800 a second arrive at random: load ρ = .8. What the
//! model must show is known since 1930 (Pollaczek and Khinchine):
//!
//! ```text
//! mean wait       ρ · S / (2 · (1 − ρ))  =  .8 · 1 ms / .4  =  2 ms
//! mean latency    2 ms + 1 ms            =  3 ms
//! mean inside     800 a second · 3 ms    =  2.4        (Little's law)
//! ```
//!
//! With work that is 1 ms on average but varies without memory, the wait doubles, and the latency is 5 ms. And
//! three layers that make four attempts each send 4 · 4 · 4 = 64 to a bottom that fails. `tests/queueing.rs`
//! holds the model to all of these.
//!
//! ```
//! use std::time::Duration;
//! use tidegate_core::Criticality;
//! use tidegate_model::arrivals::{Load, Mix, Schedule};
//! use tidegate_model::caller::Stubborn;
//! use tidegate_model::spec::{Link, Service, Source, Spec, Work};
//!
//! let length = Duration::from_secs(60);
//! let patience = Duration::from_secs(1);
//! let users = Source {
//!     schedule: Schedule::default().steady(length, Load(0.8)),
//!     mix: Mix::only(Criticality::Critical),
//!     patience,
//!     link: Link { target: 0, timeout: patience, manners: Box::new(Stubborn::times(1)) },
//! };
//! let service = Service::plain(1, Work::Exact(Duration::from_millis(1)));
//! let spec = Spec { sources: vec![users], services: vec![service], changes: vec![], length };
//! let record = tidegate_model::run(spec, 7);
//! let millis = record.common().mean_latency().as_secs_f64() * 1e3;
//! assert!((2.8..3.2).contains(&millis), "{millis}");
//! ```
//!
//! # What it leaves out
//!
//! The network takes no time and loses nothing. A service's processors do nothing but requests. The one state of a
//! link is shared by all instances of the calling service. A request that is abandoned is not cancelled inside the
//! service it has entered. Refusing costs a worker's time only where [`spec::Service::refusal_cost`] says so.

pub mod agenda;
pub mod arrivals;
pub mod caller;
pub mod chance;
pub mod gate;
pub mod gradient2;
pub mod measure;
pub mod protect;
pub mod scenarios;
mod slab;
pub mod spec;
pub mod world;

pub use measure::Record;
pub use spec::Spec;
pub use world::run;
