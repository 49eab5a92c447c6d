//! A slow ramp to twice the capacity in ten minutes, and down again. A limiter that hunts shows it here: its
//! shed rate goes up and down where the load only goes up.

use tidegate_core::Criticality::{Critical, Sheddable, SheddablePlus};

use super::{Bound, Check, Scenario, Variant, millis, seconds};
use crate::arrivals::{Load, Mix, Schedule};
use crate::spec::Spec;

/// The scenario.
pub(super) const RAMP: Scenario = Scenario {
    id: "O5",
    what: "load 0 to 2 in ten minutes, and back in ten",
    spec,
    checks: &[
        Check {
            what: "turns of the shed rate in a minute",
            value: |record| record.turns(&seconds(0..1200)),
            pass: Bound::AtMost(2.0),
            naive: None,
        },
        Check {
            what: "G while the load is above 1.1",
            value: |record| record.goodput(&seconds(330..870)),
            pass: Bound::AtLeast(0.9),
            naive: Some(Bound::AtMost(0.1)),
        },
        Check {
            what: "F: refusals while the load is .7 or less",
            value: |record| f64::from(record.refused(&seconds(0..210)) + record.refused(&seconds(990..1200))),
            pass: Bound::AtMost(0.0),
            naive: None,
        },
        Check {
            what: "S on the way down, from .9 to .1",
            value: |record| record.success(&[Critical, SheddablePlus, Sheddable], &seconds(930..1170)),
            pass: Bound::AtLeast(0.99),
            naive: Some(Bound::AtMost(0.5)),
        },
    ],
};

/// The same with a shedder before the gate.
pub(super) const RAMP_WITH_EDGE: Scenario =
    Scenario { id: "O5/edge", spec: |variant| super::with_edge(spec(variant), variant), ..RAMP };

fn spec(variant: Variant) -> Spec {
    let minutes = |minutes: u64| millis(minutes * 60_000);
    let schedule = Schedule::default().ramp(minutes(10), Load(2.0)).ramp(minutes(10), Load(0.0));
    super::one_service(schedule, Mix::percent([20, 20, 60, 0]), variant)
}
