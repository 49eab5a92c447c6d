//! The service itself has nothing to do; what it calls became slow.
//!
//! A limit that cuts itself because responses take longer refuses nine of ten requests that could all have
//! been answered, only later (Netflix's concurrency-limits#171). The naive gate is of that kind.

use tidegate_core::Criticality::Critical;
use tidegate_core::Moment;

use super::{Bound, Check, Scenario, Variant, millis, second, seconds};
use crate::arrivals::{Load, Mix, Schedule};
use crate::caller::Stubborn;
use crate::measure::Record;
use crate::protect;
use crate::spec::{Change, Health, Link, Service, Source, Spec, Work};

/// The scenario.
pub(super) const SLOW_DEPENDENCY: Scenario = Scenario {
    id: "M7",
    what: "a dependency goes from 10 to 310 ms for a minute; the service's own processors are idle",
    spec,
    checks: &[
        Check {
            what: "least limit while it is slow ÷ the limit before",
            value: least,
            pass: Bound::AtLeast(0.9),
            naive: Some(Bound::AtMost(0.5)),
        },
        Check {
            // Later a limiter may take the slower answers for what the service takes without load.
            what: "share of the first ten windows whose reason is the dependency",
            value: |record| record.blamed_elsewhere(33..43),
            pass: Bound::AtLeast(0.9),
            naive: Some(Bound::AtMost(0.0)),
        },
        Check {
            what: "S while it is slow",
            value: |record| record.success(&[Critical], &seconds(40..90)),
            pass: Bound::AtLeast(0.95),
            naive: Some(Bound::AtMost(0.2)),
        },
    ],
};

const PATIENCE: std::time::Duration = millis(2000);

fn least(record: &Record) -> f64 {
    let before = record.limits().get(29).copied().unwrap_or(f64::NAN);
    let during = record.limits().get(30..90).unwrap_or_default();
    during.iter().copied().fold(f64::INFINITY, f64::min) / before
}

fn spec(variant: Variant) -> Spec {
    let schedule = Schedule::default().steady(millis(120_000), Load(0.5));
    let gate = match variant {
        Variant::Naive => protect::gradient2(200),
        Variant::Protected => protect::gate_inside(PATIENCE, 200),
    };
    let link = |target| Link { target, timeout: PATIENCE, manners: Box::new(Stubborn::times(1)) };
    let slow = Health { delay: millis(300), ..Health::WELL };
    let change = |at, health| Change { at: second(at), service: 1, health };
    Spec {
        length: schedule.ends().since(Moment::ORIGIN),
        sources: vec![Source { schedule, mix: Mix::only(Critical), patience: PATIENCE, link: link(0) }],
        services: vec![
            Service { gate, needs: Some(link(1)), ..Service::plain(10, Work::Exponential(millis(2))) },
            Service::plain(super::WORKERS, super::WORK),
        ],
        changes: vec![change(30, slow), change(90, Health::WELL)],
    }
}
