//! Protection made of the core's limiters, as gates and manners. Nothing here decides anything by itself.

mod edged;
mod gates;
mod manners;

use std::time::Duration;

use crate::caller::Manners;
use crate::gate::{Gate, Open};
use crate::gradient2::Gradient2;
use crate::spec::Build;
use edged::Edged;
use gates::{Counting, Fixed, Guarded};
use manners::Careful;
use tidegate_core::breaker::{BreakerRule, BreakerTerms};

fn build<G: Gate + 'static>(gate: impl Fn() -> G + 'static) -> Build<dyn Gate> {
    Build(Box::new(move || Box::new(gate())))
}

/// No gate.
#[must_use]
pub fn nothing() -> Build<dyn Gate> {
    build(|| Open)
}

/// A fixed number of places and no queue.
#[must_use]
pub fn fixed(limit: u32) -> Build<dyn Gate> {
    build(move || Fixed::new(limit))
}

/// A limit that compares latency with earlier latency only, and starts here.
#[must_use]
pub fn gradient2(start: u32) -> Build<dyn Gate> {
    build(move || Gradient2::starting_at(start))
}

/// An adaptive limit with a queue by criticality, for callers who wait this long.
#[must_use]
pub fn gate(patience: Duration) -> Build<dyn Gate> {
    build(move || Guarded::new(patience))
}

/// The same with an edge before it, which sheds by criticality and cohort.
#[must_use]
pub fn edged_gate(patience: Duration) -> Build<dyn Gate> {
    build(move || Edged::new(Guarded::new(patience)))
}

/// What the gateway has before an upstream: the same, which is told nothing of how long callers wait.
#[must_use]
pub fn gateway() -> Build<dyn Gate> {
    build(|| Edged::new(Guarded::as_gateway()))
}

/// The same without edge, in the process it protects, which knows how busy it is, with this many places to start with.
#[must_use]
pub fn gate_inside(patience: Duration, start: u32) -> Build<dyn Gate> {
    build(move || Guarded::inside(patience, start))
}

/// No limit; refusals advise against retries when many attempts are retries.
#[must_use]
pub fn counting_attempts() -> Build<dyn Gate> {
    build(Counting::default)
}

/// At most so many attempts, with back-off and within a budget.
#[must_use]
pub fn retries(attempts: u32) -> Box<dyn Manners> {
    Box::new(Careful::new(attempts))
}

/// At most so many attempts, with back-off but without a budget; it does as it is advised.
#[must_use]
pub fn advised(attempts: u32) -> Box<dyn Manners> {
    Box::new(Careful::new(attempts).without_budget())
}

/// Attempts within a budget, behind a throttle.
#[must_use]
pub fn throttled(attempts: u32) -> Box<dyn Manners> {
    Box::new(Careful::new(attempts).with_throttle())
}

/// Attempts within a budget, behind a breaker with these terms.
///
/// # Panics
/// When the terms contradict each other.
#[must_use]
pub fn behind_breaker(attempts: u32, terms: BreakerTerms) -> Box<dyn Manners> {
    let rule = BreakerRule::new(terms).expect("the terms of scenarios are in their ranges");
    Box::new(Careful::new(attempts).with_breaker(rule))
}
