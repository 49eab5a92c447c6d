//! A gate with an edge before it: what would only wait and leave is refused at once.

use std::time::Duration;

use tidegate_core::permit::Outcome;
use tidegate_core::shed::{Cohort, Epoch, Flow, SharedEdge, Steering, Tick};
use tidegate_core::{Moment, Ratio, Roll};

use super::gates::Guarded;
use crate::gate::{Arrived, Asked, Gate, Passed};

/// The adaptive limit with its queue, and an edge that is steered by what goes through them.
#[derive(Debug)]
pub(super) struct Edged {
    guarded: Guarded,
    edge: SharedEdge,
    steering: Steering,
    seen: Seen,
}

/// What has been seen since the last tick.
#[derive(Debug, Default)]
struct Seen {
    began: Moment,
    arrived: [u64; 4],
    entered: u64,
    served: u64,
    /// Until when busy places have been counted, and seconds of all places.
    until: Moment,
    busy: f64,
}

/// As the core advises.
const TICK: Duration = Duration::from_millis(500);

impl Edged {
    pub(super) fn new(guarded: Guarded) -> Self {
        Self { guarded, edge: SharedEdge::new(), steering: Steering::default(), seen: Seen::default() }
    }

    /// Counts busy places up to now, and steers if a tick is over.
    fn look(&mut self, now: Moment) {
        let seen = &mut self.seen;
        seen.busy += now.since(seen.until).as_secs_f64() * self.guarded.busy();
        seen.until = now;
        let length = now.since(seen.began);
        if length < TICK {
            return;
        }
        let seen = std::mem::replace(&mut self.seen, Seen { began: now, until: now, ..Seen::default() });
        let busy = Ratio::new((seen.busy / length.as_secs_f64()).min(1.0)).unwrap_or(Ratio::ONE);
        let waiting = self.guarded.waiting();
        let flow = Some(Flow { entered: seen.entered, served: seen.served, waiting, busy });
        let edge = self.steering.tick(&Tick { arrived: seen.arrived, flow, ..Tick::default() });
        self.edge.publish(edge, TICK);
        self.guarded.renew_waits();
    }
}

impl Gate for Edged {
    fn arrive(&mut self, now: Moment, asked: Asked, roll: Roll, refused: &mut Vec<Asked>) -> Arrived {
        self.look(now);
        self.seen.arrived[asked.criticality.index()] += 1;
        let cohort = Cohort::of(&asked.user.to_le_bytes(), Epoch(0));
        let is_spared = || self.edge.edge().is_next(asked.criticality) && self.guarded.has_room();
        if !self.edge.decide(asked.criticality, cohort).is_admit() && !is_spared() {
            return Arrived::Refuse;
        }
        self.seen.entered += 1;
        let arrived = self.guarded.arrive(now, asked, roll, refused);
        self.seen.served += u64::from(matches!(arrived, Arrived::Pass(_)));
        arrived
    }

    fn next(&mut self, now: Moment, refused: &mut Vec<Asked>) -> Option<Passed> {
        let passed = self.guarded.next(now, refused);
        self.seen.served += u64::from(passed.is_some());
        passed
    }

    fn ended(&mut self, now: Moment, _: Outcome) {
        self.look(now);
    }

    fn tell(&mut self, used: Ratio) {
        self.guarded.tell(used);
    }

    fn limit(&self) -> Option<f64> {
        self.guarded.limit()
    }
}
