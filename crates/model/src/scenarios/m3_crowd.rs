//! A failure that stays after its cause is gone: a crowd that slows everybody down.
//!
//! Every request that waits inside costs memory, and collecting garbage costs time: with 300 inside, work
//! takes three times as long. A spike of ten seconds fills the service; from then on it can do a third of
//! its capacity, less than the .7 it is offered, and never gets empty again.

use tidegate_core::Criticality::Critical;

use super::{Bound, Check, Scenario, Variant, millis, recovery, second, seconds};
use crate::arrivals::{Load, Mix, Schedule};
use crate::spec::{Crowding, Spec};

/// The scenario.
pub(super) const CROWD: Scenario = Scenario {
    id: "M3",
    what: "load .7 with a spike of 3 for 10 s; a crowd inside makes work up to 3 times as long",
    spec,
    checks: &[
        Check {
            what: "R in seconds",
            value: |record| recovery(record, second(30)),
            pass: Bound::AtMost(5.0),
            naive: Some(Bound::AtLeast(f64::INFINITY)),
        },
        Check {
            what: "G in the spike",
            value: |record| record.goodput(&seconds(21..30)),
            pass: Bound::AtLeast(0.9),
            naive: Some(Bound::AtMost(0.1)),
        },
    ],
};

fn spec(variant: Variant) -> Spec {
    let schedule = Schedule::default()
        .steady(millis(20_000), Load(0.7))
        .steady(millis(10_000), Load(3.0))
        .steady(millis(60_000), Load(0.7));
    let mut spec = super::one_service(schedule, Mix::only(Critical), variant);
    // 50 may wait without harm; each further one adds 0.8 % to everybody's work.
    spec.services[0].crowding = Crowding { free: 50, slope: 0.008, most: 3.0 };
    spec
}
