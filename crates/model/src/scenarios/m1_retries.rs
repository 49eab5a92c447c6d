//! A failure that stays after its cause is gone: retries.
//!
//! Two processors lose 80 % of their speed for ten seconds at load .7. Callers wait for five times the usual
//! response time and try three times more. Meanwhile a queue forms that is longer than their patience: every
//! attempt times out, every user makes four, and four times .7 is 2.8 times what the healed service can do.
//! It is fully busy for ever, and nobody gets an answer. (Sizes from Huang et al., "Metastable failures in
//! the wild", OSDI 2022.)

use tidegate_core::Criticality::Critical;
use tidegate_core::Moment;

use super::{Bound, Check, Scenario, Variant, millis, recovery, second, seconds};
use crate::arrivals::{Load, Mix, Schedule};
use crate::caller::Stubborn;
use crate::protect;
use crate::spec::{Change, Health, Link, Service, Source, Spec, Work};

/// The scenario.
pub(super) const RETRIES: Scenario = Scenario {
    id: "M1",
    what: "capacity cut by 80 % for 10 s at load .7; time-out of 5 medians, 3 retries",
    spec,
    checks: &[
        Check {
            what: "R in seconds",
            value: |record| recovery(record, second(30)),
            pass: Bound::AtMost(10.0),
            naive: Some(Bound::AtLeast(f64::INFINITY)),
        },
        Check {
            what: "G a minute after the cut",
            value: |record| record.goodput(&seconds(90..120)),
            pass: Bound::AtLeast(0.66),
            naive: Some(Bound::AtMost(0.01)),
        },
        Check {
            what: "A a minute after the cut",
            value: |record| record.amplification(&seconds(90..120)),
            pass: Bound::AtMost(1.1),
            naive: Some(Bound::AtLeast(3.9)),
        },
    ],
};

/// The median at load .7 is 5 ms, of which 4 are work.
const TIMEOUT: std::time::Duration = millis(25);
/// Four attempts and a little.
const PATIENCE: std::time::Duration = millis(150);

fn spec(variant: Variant) -> Spec {
    let schedule = Schedule::default().steady(millis(120_000), Load(0.7));
    let manners: Box<dyn crate::caller::Manners> = match variant {
        Variant::Naive => Box::new(Stubborn::times(4)),
        Variant::Protected => protect::throttled(4),
    };
    let gate = match variant {
        Variant::Naive => protect::nothing(),
        Variant::Protected => protect::gate(TIMEOUT),
    };
    let cut = |at, speed| Change { at: second(at), service: 0, health: Health { speed, ..Health::WELL } };
    Spec {
        length: schedule.ends().since(Moment::ORIGIN),
        sources: vec![Source {
            schedule,
            mix: Mix::only(Critical),
            patience: PATIENCE,
            link: Link { target: 0, timeout: TIMEOUT, manners },
        }],
        services: vec![Service { gate, ..Service::plain(2, Work::Exact(millis(4))) }],
        changes: vec![cut(20, 0.2), cut(30, 1.0)],
    }
}
