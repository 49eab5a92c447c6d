//! Normal traffic, and beside it a flood of twelve times the capacity of the lowest level only (Netflix
//! 2024, who saw 99.4 % of the high class served).

use tidegate_core::Criticality::{Critical, Sheddable};

use super::{Bound, Check, Scenario, Variant, millis, seconds};
use crate::arrivals::{Load, Mix, Schedule};
use crate::spec::Spec;

/// The scenario.
pub(super) const LOW_CLASS: Scenario = Scenario {
    id: "O3",
    what: "critical at .5, and a flood of sheddable of 12",
    spec,
    checks: &[
        Check {
            what: "S of critical, from the first second of the flood",
            value: |record| record.success(&[Critical], &seconds(10..40)),
            pass: Bound::AtLeast(0.994),
            naive: Some(Bound::AtMost(0.1)),
        },
        Check {
            what: "G in the flood",
            value: |record| record.goodput(&seconds(11..40)),
            pass: Bound::AtLeast(0.9),
            naive: Some(Bound::AtMost(0.1)),
        },
    ],
};

/// The same with a shedder before the gate.
pub(super) const LOW_CLASS_WITH_EDGE: Scenario =
    Scenario { id: "O3/edge", spec: |variant| super::with_edge(spec(variant), variant), ..LOW_CLASS };

fn spec(variant: Variant) -> Spec {
    let normal = Schedule::default().steady(millis(60_000), Load(0.5));
    let flood = Schedule::default().steady(millis(10_000), Load(0.0)).steady(millis(30_000), Load(12.0));
    let mut spec = super::one_service(normal, Mix::only(Critical), variant);
    spec.sources.push(super::users(flood, Mix::only(Sheddable)));
    spec
}
