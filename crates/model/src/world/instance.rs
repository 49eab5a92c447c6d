//! Services while a model runs.

use std::collections::VecDeque;
use std::time::Duration;

use crate::chance::Chance;
use crate::gate::Gate;
use crate::slab::Id;
use crate::spec::{self, Crowding, Health, Link, Work};

/// Which instance of which service.
#[derive(Clone, Copy, Debug)]
pub(super) struct Site {
    pub(super) service: usize,
    pub(super) instance: usize,
}

#[derive(Debug)]
pub(super) struct Service {
    work: Work,
    workers: u32,
    crowding: Crowding,
    pub(super) refusal_cost: Duration,
    pub(super) health: Health,
    pub(super) needs: Option<Link>,
    pub(super) instances: Vec<Instance>,
    /// Attempts that reached the service and are not answered yet.
    pub(super) inside: u32,
}

#[derive(Debug)]
pub(super) struct Instance {
    pub(super) gate: Box<dyn Gate>,
    /// Attempts that passed the gate and wait for a worker; without bound, as most are.
    pub(super) queue: VecDeque<Id>,
    pub(super) busy: u32,
    /// Time that refusals have cost and that the next work has to wait for.
    pub(super) debt: Duration,
}

impl Service {
    pub(super) fn new(spec: spec::Service) -> Self {
        let gate = &spec.gate.0;
        let instance = || Instance { gate: gate(), queue: VecDeque::new(), busy: 0, debt: Duration::ZERO };
        Self {
            instances: (0..spec.instances).map(|_| instance()).collect(),
            work: spec.work,
            workers: spec.workers,
            crowding: spec.crowding,
            refusal_cost: spec.refusal_cost,
            health: Health::WELL,
            needs: spec.needs,
            inside: 0,
        }
    }

    pub(super) fn count(&self) -> u32 {
        u32::try_from(self.instances.len()).expect("instances are counted in 32 bits")
    }

    /// The limits of all gates, if they have any.
    pub(super) fn limit(&self) -> Option<f64> {
        self.instances.iter().map(|instance| instance.gate.limit()).sum()
    }

    /// The next attempt for a free worker, and how long it takes.
    pub(super) fn start(&mut self, instance: usize, chance: &mut Chance) -> Option<(Id, Duration)> {
        let Self { work, workers, crowding, health, instances, .. } = self;
        let instance = &mut instances[instance];
        if instance.busy >= *workers {
            return None;
        }
        let attempt = instance.queue.pop_front()?;
        instance.busy += 1;
        let waiting = u32::try_from(instance.queue.len()).unwrap_or(u32::MAX);
        let slowness = crowding.factor(waiting.saturating_add(instance.busy)) / health.speed;
        let takes = work.draw(chance).mul_f64(slowness) + std::mem::take(&mut instance.debt);
        Some((attempt, takes))
    }
}
