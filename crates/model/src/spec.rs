//! What a model is made of, as data: sources of requests, services, links between them, and faults.

use std::fmt;
use std::time::Duration;

use tidegate_core::Moment;
pub use tidegate_scenario::{Crowding, Work};

use crate::arrivals::{Mix, Schedule};
use crate::caller::Manners;
use crate::gate::Gate;

/// A whole model. Services stand in order: whoever is called comes after its caller, and the last one
/// is the bottom, where amplification is counted.
#[derive(Debug)]
pub struct Spec {
    /// Where requests come from.
    pub sources: Vec<Source>,
    /// Who serves them.
    pub services: Vec<Service>,
    /// What befalls the services.
    pub changes: Vec<Change>,
    /// When the run is over.
    pub length: Duration,
}

/// Users: an open loop of arrivals.
#[derive(Debug)]
pub struct Source {
    /// How many arrive when.
    pub schedule: Schedule,
    /// How urgent they are.
    pub mix: Mix,
    /// How long a user is willing to wait in all.
    pub patience: Duration,
    /// Whom they call, and how.
    pub link: Link,
}

/// How one side calls a service.
#[derive(Debug)]
pub struct Link {
    /// The service's place in [`Spec::services`].
    pub target: usize,
    /// How long one attempt may take.
    pub timeout: Duration,
    /// When to attempt, when to try again.
    pub manners: Box<dyn Manners>,
}

/// Instances that do work with a fixed number of workers each, first come first served.
#[derive(Debug)]
pub struct Service {
    /// How many there are; a caller picks one by chance.
    pub instances: u32,
    /// How many requests one instance works on at once; its processors.
    pub workers: u32,
    /// How long a worker needs for a request.
    pub work: Work,
    /// What a crowd does to that.
    pub crowding: Option<Crowding>,
    /// Worker's time that a refusal costs.
    pub refusal_cost: Duration,
    /// What stands before each instance.
    pub gate: Build<dyn Gate>,
    /// Whom it calls for every request once its own work is done. It waits for the answer without
    /// holding a worker.
    pub needs: Option<Link>,
}

/// Makes one part for each instance.
pub struct Build<T: ?Sized>(pub Box<dyn Fn() -> Box<T>>);

impl<T: ?Sized> fmt::Debug for Build<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Build")
    }
}

/// From a moment on, a service is in this condition.
#[derive(Clone, Copy, Debug)]
pub struct Change {
    /// From when on.
    pub at: Moment,
    /// The service's place in [`Spec::services`].
    pub service: usize,
    /// How it is from then on.
    pub health: Health,
}

/// The condition of a service.
#[derive(Clone, Copy, Debug)]
pub struct Health {
    /// How fast its workers are: 0.2 after a cut of the capacity by 80 %.
    pub speed: f64,
    /// How much longer every answer takes, without holding a worker: something behind it is slow.
    pub delay: Duration,
    /// Whether it takes every request and never answers.
    pub is_hanging: bool,
    /// How many of its instances refuse everything.
    pub refusing: u32,
    /// The share of answers that are failures.
    pub failing: f64,
}

impl Health {
    /// Nothing is wrong.
    pub const WELL: Self =
        Self { speed: 1.0, delay: Duration::ZERO, is_hanging: false, refusing: 0, failing: 0.0 };
}

impl Service {
    /// One well instance without protection.
    #[must_use]
    pub fn plain(workers: u32, work: Work) -> Self {
        Self {
            instances: 1,
            workers,
            work,
            crowding: None,
            refusal_cost: Duration::ZERO,
            gate: Build(Box::new(|| Box::new(crate::gate::Open))),
            needs: None,
        }
    }

    /// Requests a second it can do, with all its instances well.
    #[must_use]
    pub fn capacity(&self) -> f64 {
        f64::from(self.instances * self.workers) / self.work.mean().as_secs_f64()
    }
}

impl Spec {
    /// Requests a second the whole can do: what its weakest service can.
    #[must_use]
    pub fn capacity(&self) -> f64 {
        self.services.iter().map(Service::capacity).fold(f64::INFINITY, f64::min)
    }
}
