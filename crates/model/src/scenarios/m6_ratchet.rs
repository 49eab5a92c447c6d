//! Every response comes just after its caller gave up, for ten minutes.
//!
//! Nothing is slower than before, so a limit that compares latency with earlier latency only sees a steady
//! state, and grows: the ratchet of Netflix's concurrency-limits#137. The naive gate is that algorithm.

use tidegate_core::Criticality::Critical;
use tidegate_core::Moment;

use super::{Bound, Check, Scenario, Variant, millis, second};
use crate::arrivals::{Load, Mix, Schedule};
use crate::caller::Stubborn;
use crate::measure::Record;
use crate::protect;
use crate::spec::{Change, Health, Link, Service, Source, Spec};

/// The scenario.
pub(super) const RATCHET: Scenario = Scenario {
    id: "M6",
    what: "after a minute, all responses at the time-out for 10 min",
    spec,
    checks: &[Check {
        what: "largest limit in those minutes ÷ the limit before",
        value: growth,
        pass: Bound::AtMost(1.0),
        naive: Some(Bound::AtLeast(5.0)),
    }],
};

const TIMEOUT: std::time::Duration = millis(1000);
const WELL_UNTIL: u64 = 60;
const LENGTH: u64 = 660;

fn growth(record: &Record) -> f64 {
    let limits = record.limits();
    let (before, during) = limits.split_at(limits.len().min(usize::try_from(WELL_UNTIL).unwrap_or(60)));
    let before = before.last().copied().unwrap_or(f64::NAN);
    during.iter().copied().fold(0.0, f64::max) / before
}

fn spec(variant: Variant) -> Spec {
    let schedule = Schedule::default().steady(millis(LENGTH * 1000), Load(0.3));
    let gate = match variant {
        Variant::Naive => protect::gradient2(20),
        Variant::Protected => protect::gate(TIMEOUT),
    };
    let link = Link { target: 0, timeout: TIMEOUT, manners: Box::new(Stubborn::times(1)) };
    let health = Health { delay: TIMEOUT, ..Health::WELL };
    Spec {
        length: schedule.ends().since(Moment::ORIGIN),
        sources: vec![Source { schedule, mix: Mix::only(Critical), patience: TIMEOUT, link }],
        services: vec![Service { gate, ..Service::plain(super::WORKERS, super::WORK) }],
        changes: vec![Change { at: second(WELL_UNTIL), service: 0, health }],
    }
}
