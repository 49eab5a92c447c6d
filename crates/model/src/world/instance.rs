//! Services while a model runs.

use std::collections::VecDeque;
use std::time::Duration;

use tidegate_core::{Moment, Ratio};

use super::TICK;
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
    crowding: Option<Crowding>,
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
    busy: u32,
    /// Since when that many are busy, and the workers' time used since the last tick.
    since: Moment,
    used: Duration,
    /// Time that refusals have cost and that the next work has to wait for.
    pub(super) debt: Duration,
}

impl Service {
    pub(super) fn new(spec: spec::Service) -> Self {
        let gate = &spec.gate.0;
        let instance = || Instance {
            gate: gate(),
            queue: VecDeque::new(),
            busy: 0,
            since: Moment::ORIGIN,
            used: Duration::ZERO,
            debt: Duration::ZERO,
        };
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

    /// Whether every gate puts the latency down to what the service calls.
    pub(super) fn is_waiting_for_others(&self) -> bool {
        self.instances.iter().all(|instance| instance.gate.is_waiting_for_others())
    }

    /// Tells the gates how busy their workers were since the last tick.
    pub(super) fn tell(&mut self, now: Moment) {
        let all = TICK.as_secs_f64() * f64::from(self.workers);
        for instance in &mut self.instances {
            instance.turn(now, 0);
            let used = std::mem::take(&mut instance.used).as_secs_f64() / all;
            instance.gate.tell(Ratio::new(used.min(1.0)).unwrap_or(Ratio::ONE));
        }
    }

    /// The next attempt for a free worker, and how long it takes.
    pub(super) fn start(
        &mut self,
        now: Moment,
        instance: usize,
        chance: &mut Chance,
    ) -> Option<(Id, Duration)> {
        let Self { work, workers, crowding, health, instances, .. } = self;
        let instance = &mut instances[instance];
        if instance.busy >= *workers {
            return None;
        }
        let attempt = instance.queue.pop_front()?;
        instance.turn(now, 1);
        let waiting = u32::try_from(instance.queue.len()).unwrap_or(u32::MAX);
        let inside = waiting.saturating_add(instance.busy);
        let slowness = crowding.map_or(1.0, |crowding| crowded(crowding, inside)) / health.speed;
        let takes = draw(*work, chance).mul_f64(slowness) + std::mem::take(&mut instance.debt);
        Some((attempt, takes))
    }
}

impl Instance {
    /// So many more workers are busy from now on.
    pub(super) fn turn(&mut self, now: Moment, more: i32) {
        self.used += now.since(self.since) * self.busy;
        self.since = now;
        self.busy = self.busy.saturating_add_signed(more);
    }
}

/// How long one request takes.
fn draw(work: Work, chance: &mut Chance) -> Duration {
    match work {
        Work::Exact(time) => time,
        Work::Exponential(mean) => chance.exponential(mean),
        Work::TwoKinds { short, long, share_of_long } => {
            if chance.happens(share_of_long) {
                long
            } else {
                short
            }
        }
    }
}

/// How much longer work takes with so many inside.
fn crowded(crowding: Crowding, inside: u32) -> f64 {
    (1.0 + f64::from(inside.saturating_sub(crowding.free)) * crowding.slope).min(crowding.most)
}
