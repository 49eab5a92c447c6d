//! What a model is made of, as data: sources of requests, services, links between them, and faults.

use std::fmt;
use std::time::Duration;

use tidegate_core::Moment;

use crate::arrivals::{Mix, Schedule};
use crate::caller::Manners;
use crate::chance::Chance;
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
    pub crowding: Crowding,
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

/// How long requests take a worker.
#[derive(Clone, Copy, Debug)]
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
        /// How many are the others.
        share_of_long: f64,
    },
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

    pub(crate) fn draw(&self, chance: &mut Chance) -> Duration {
        match *self {
            Self::Exact(time) => time,
            Self::Exponential(mean) => chance.exponential(mean),
            Self::TwoKinds { short, long, share_of_long } => {
                if chance.happens(share_of_long) {
                    long
                } else {
                    short
                }
            }
        }
    }
}

/// How work slows down when many requests are inside an instance: memory, garbage collection, lost
/// caches. Each request above `free` makes all work longer by `slope`, up to `most` times.
#[derive(Clone, Copy, Debug)]
pub struct Crowding {
    /// So many do not matter.
    pub free: u32,
    /// What each further one adds.
    pub slope: f64,
    /// The most it can become.
    pub most: f64,
}

impl Crowding {
    /// A service that does not mind.
    pub const NONE: Self = Self { free: 0, slope: 0.0, most: 1.0 };

    pub(crate) fn factor(&self, inside: u32) -> f64 {
        (1.0 + f64::from(inside.saturating_sub(self.free)) * self.slope).min(self.most)
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
            crowding: Crowding::NONE,
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
