//! The gate as a layer around any tower service that speaks HTTP: axum, hyper, tonic.
//!
//! | to find | look in |
//! |---|---|
//! | the layer and its service | [`gate_layer`] |
//! | what the gate is told of a request | [`identify`] |
//! | where the time comes from | [`clock`] |
//! | what callers are told: statuses, fields, problems, gRPC | [`respond`] |
//! | the bodies, with the permit on the answer's | [`body`] |

pub mod body;
pub mod clock;
pub mod gate_layer;
mod guard;
pub mod identify;
pub mod respond;

pub use clock::{Clock, SystemClock};
pub use gate_layer::{GateLayer, GateService};
pub use identify::{HttpIdentify, Identify, Peer};
pub use respond::Respond;
