//! Overload in virtual time: callers, services and faults, with and without protection.

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
