//! A dependency takes every request and answers none, for a minute.
//!
//! Callers without a breaker, or with one whose probes are unlimited, keep sending, and each request
//! holds its place for a whole time-out, three times over (safe-client-gateway#3442: 17 times the traffic).

use tidegate_core::Criticality::Critical;
use tidegate_core::breaker::BreakerTerms;

use super::{Bound, Coded, Seen, Variant, millis, recovery, second, seconds};
use crate::arrivals::{Load, Mix, Schedule};
use crate::caller::{Manners, Stubborn};
use crate::protect;
use crate::spec::{Change, Health, Link, Service, Source, Spec};

/// The scenario.
pub(super) const HANGING: Coded = Coded {
    id: "D3",
    what: "a dependency hangs for a minute; a time-out of 1 s, up to three attempts",
    spec,
    checks: &[
        Seen {
            what: "A while it hangs",
            value: |record| record.common().amplification(&seconds(20..80)),
            pass: Bound::AtMost(1.1),
            naive: Some(Bound::AtLeast(2.9)),
        },
        Seen {
            what: "probes in flight at most, from 15 s after it hangs; 4 are allowed",
            value: |record| f64::from(record.peak_inside(&seconds(35..80))),
            pass: Bound::AtMost(4.0),
            naive: Some(Bound::AtLeast(500.0)),
        },
        Seen {
            what: "R in seconds; the breaker looks at least once a minute",
            value: |record| recovery(record, 80),
            pass: Bound::AtMost(70.0),
            naive: None,
        },
    ],
};

fn spec(variant: Variant) -> Spec {
    let schedule = Schedule::default().steady(millis(180_000), Load(0.5));
    let manners: Box<dyn Manners> = match variant {
        Variant::Naive => Box::new(Stubborn::times(3)),
        Variant::Protected => protect::behind_breaker(3, BreakerTerms::default()),
    };
    let change =
        |at, is_hanging| Change { at: second(at), service: 0, health: Health { is_hanging, ..Health::WELL } };
    Spec {
        length: millis(180_000),
        sources: vec![Source {
            schedule,
            mix: Mix::only(Critical),
            patience: millis(4000),
            link: Link { target: 0, timeout: millis(1000), manners },
        }],
        services: vec![Service::plain(super::WORKERS, super::WORK)],
        changes: vec![change(20, true), change(80, false)],
    }
}
