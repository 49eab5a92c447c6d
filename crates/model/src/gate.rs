//! What stands before an instance: nothing, or the core's limiters.
//!
//! ```text
//! arrival ──> gate: refuse · let wait · pass ──> the instance's own queue ──> workers
//!                     ^                                                          │
//!                     └───────────── a permit comes back, the next may pass <────┘
//! ```
//!
//! The instance behind the gate is the same with and without protection: workers and a queue without
//! bound, first come first served, for whom it makes no difference whether anybody still waits for the
//! answer.

use std::fmt;

use tidegate_core::permit::{Outcome, Permit};
use tidegate_core::retry::Advice;
use tidegate_core::{Criticality, Moment, Ratio, Roll};

use crate::slab::Id;

/// What a gate is told about a request.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    pub(crate) id: Id,
    /// For whom it is.
    pub user: u32,
    /// How urgent it is.
    pub criticality: Criticality,
    /// When nobody waits for the answer any more.
    pub deadline: Moment,
    /// Which attempt it is; the first is 0.
    pub attempt: u32,
}

/// What a gate lets through: the request, and the place it holds while it is inside.
#[derive(Debug)]
pub struct Passed {
    pub(crate) id: Id,
    pub(crate) permit: Option<Permit>,
}

impl Passed {
    /// This request passes and holds this permit.
    #[must_use]
    pub const fn new(asked: &Asked, permit: Option<Permit>) -> Self {
        Self { id: asked.id, permit }
    }
}

/// What became of an arrival.
#[derive(Debug)]
pub enum Arrived {
    /// It passes at once.
    Pass(Passed),
    /// It waits in the gate.
    Wait,
    /// It is refused.
    Refuse,
}

/// Decides who may go on to the instance behind it.
pub trait Gate: fmt::Debug {
    /// A request arrives. Those who waited and are refused because of it go into `refused`.
    fn arrive(&mut self, now: Moment, asked: Asked, roll: Roll, refused: &mut Vec<Asked>) -> Arrived;

    /// One that waited and may pass now. Those that are given up on the way go into `refused`.
    fn next(&mut self, now: Moment, refused: &mut Vec<Asked>) -> Option<Passed> {
        let _ = (now, refused);
        None
    }

    /// A request that passed has ended so; its permit has been completed.
    fn ended(&mut self, now: Moment, outcome: Outcome) {
        let _ = (now, outcome);
    }

    /// An attempt has reached the instance, whatever becomes of it.
    fn seen(&mut self, asked: &Asked) {
        let _ = asked;
    }

    /// What to tell one that is refused about trying again.
    fn advice(&mut self) -> Advice {
        Advice::None
    }

    /// Which share of the workers' time was used lately.
    fn tell(&mut self, used: Ratio) {
        let _ = used;
    }

    /// Whether it puts the latency down to what the service calls, and not to the service.
    fn is_waiting_for_others(&self) -> bool {
        false
    }

    /// How many may be inside at this moment, if that is limited.
    fn limit(&self) -> Option<f64> {
        None
    }
}

/// No gate: everything passes.
#[derive(Clone, Copy, Debug)]
pub struct Open;

impl Gate for Open {
    fn arrive(&mut self, _: Moment, asked: Asked, _: Roll, _: &mut Vec<Asked>) -> Arrived {
        Arrived::Pass(Passed::new(&asked, None))
    }
}
