//! A dependency is down for half a minute, comes back with 30 % of its capacity and needs a minute for the rest.
//!
//! Whoever meets it with full traffic and retries keeps it down: four attempts at load .7 are 2.8 times what
//! it can do when well. With a breaker it is found by probes and traffic comes back in steps.

use tidegate_core::Criticality::Critical;
use tidegate_core::breaker::BreakerTerms;

use super::{Bound, Coded, Seen, Variant, millis, recovery, second, seconds};
use crate::arrivals::{Load, Mix, Schedule};
use crate::caller::{Manners, Stubborn};
use crate::protect;
use crate::spec::{Change, Health, Link, Service, Source, Spec};

/// The scenario.
pub(super) const RETURN: Coded = Coded {
    id: "D4",
    what: "a dependency returns with 30 % of its capacity, all of it after a minute; load .7",
    spec,
    checks: &[
        Seen {
            what: "R in seconds from its return",
            value: |record| recovery(record, 50),
            pass: Bound::AtMost(70.0),
            naive: Some(Bound::AtLeast(f64::INFINITY)),
        },
        Seen {
            what: "trips after its return",
            value: |record| record.tripped(&seconds(51..180)) as f64,
            pass: Bound::AtMost(2.0),
            naive: None,
        },
        Seen {
            what: "A while it returns",
            value: |record| record.common().amplification(&seconds(50..110)),
            pass: Bound::AtMost(1.1),
            naive: Some(Bound::AtLeast(3.5)),
        },
        Seen {
            what: "attempts inside at most while it returns",
            value: |record| f64::from(record.peak_inside(&seconds(51..110))),
            pass: Bound::AtMost(200.0),
            naive: Some(Bound::AtLeast(10_000.0)),
        },
    ],
};

fn spec(variant: Variant) -> Spec {
    let schedule = Schedule::default().steady(millis(180_000), Load(0.7));
    let timeout = millis(200);
    let (gate, manners): (_, Box<dyn Manners>) = match variant {
        Variant::Naive => (protect::nothing(), Box::new(Stubborn::times(4))),
        Variant::Protected => (protect::gate(timeout), protect::behind_breaker(4, BreakerTerms::default())),
    };
    let health = |at, health| Change { at: second(at), service: 0, health };
    let mut changes = vec![health(20, Health { failing: 1.0, ..Health::WELL })];
    changes.extend((0..=60_u32).map(|step| {
        let speed = 0.3 + 0.7 * f64::from(step) / 60.0;
        health(50 + u64::from(step), Health { speed, ..Health::WELL })
    }));
    Spec {
        length: millis(180_000),
        sources: vec![Source {
            schedule,
            mix: Mix::only(Critical),
            patience: millis(1000),
            link: Link { target: 0, timeout, manners },
        }],
        services: vec![Service { gate, ..Service::plain(super::WORKERS, super::WORK) }],
        changes,
    }
}
