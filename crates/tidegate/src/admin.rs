//! The admin API: what operators ask a running gateway, and what they tell it.
//!
//! It lives on a thread and a runtime of its own, so that a flood on the data path cannot keep an operator out. What
//! it looks at is a [`Station`]: a gate, and the gateway around it.
//!
//! ```text
//! connection ──serve──> guard: whose host, whose token? ──routes──> handler ──> Station, Gate
//!                                                           every second: pulse ──> stream
//! ```
//!
//! | in `admin/` | is |
//! |---|---|
//! | `station` | what a gateway must tell, as plain data |
//! | `serve` | the thread, the runtime, the connections and their bounds |
//! | `seats` | who has a connection, and who loses it to a newcomer |
//! | `turns` | who is served first where something takes long |
//! | `guard` | who may ask: token, host, origin |
//! | `routes` | every path with its method and its handler |
//! | `answer`, `input` | JSON and problems out, JSON and queries in |
//! | `pulse` | one sample a second, and the rates between samples |
//! | `judgement` | the one sentence of how it goes |
//! | `metrics` | the page for Prometheus |
//! | `stream` | one frame a second for whoever listens |
//! | `overload` | what is shed and why, gathered once for all who tell of it |
//! | `status`, `policy`, `rules`, `callers`, `orders`, `counters`, `decisions`, `changes` | the answers, one file for each subject |
//! | `upstreams`, `signals`, `capacity`, `degrading` | those of overload |
//!
//! Whatever takes long, reading a policy or walking the tables, runs beside the runtime, so that `/livez` answers
//! meanwhile. Every answer in JSON has `"v": 1` and a schema in `docs/reference/openapi.json`.

mod answer;
mod callers;
mod capacity;
mod changes;
mod counters;
mod decisions;
mod degrading;
mod guard;
mod input;
mod judgement;
mod metrics;
mod orders;
mod overload;
mod policy;
mod pulse;
mod routes;
mod rules;
mod seats;
mod serve;
mod signals;
mod station;
mod status;
mod stream;
mod turns;
mod upstreams;

pub(crate) use answer::MARK;
pub use changes::{Change, Changes};
pub use guard::{BadToken, Token};
pub use serve::{Admin, StartFailure};
pub use station::{
    Attempts, CapacityStatus, Checked, ConcurrencyStatus, Connections, DegradeSwitch, DegradedAnswers,
    Durations, EndpointStatus, Figures, Findings, Gone, Histogram, InFlight, LastError, LoadFailure,
    MeasuredFamily, NotConfirmed, NotTaken, Offer, OpenFiles, Overhead, PolicyText, Requests, SignalStatus,
    Stage, Station, SwitchedRoute, Taken, Unloaded, UpstreamStatus,
};

/// The description of the whole API, as it is published.
pub const OPENAPI: &str = include_str!("../../../docs/reference/openapi.json");
