//! On and off: three times the capacity for two seconds, nothing for two, ten times; then steady traffic.
//!
//! On average there is half too much, so a queue without bound is never empty again.

use tidegate_core::Criticality::Critical;

use super::{Bound, Check, Scenario, Variant, millis, second, seconds};
use crate::arrivals::{Load, Mix, Schedule};
use crate::measure::Record;
use crate::spec::Spec;

/// The scenario.
pub(super) const WAVES: Scenario = Scenario {
    id: "O6",
    what: "ten waves of 2 s at load 3 and 2 s at nothing, then .7",
    spec,
    checks: &[
        Check {
            what: "G while it is on, from the second wave on",
            value: goodput_while_on,
            pass: Bound::AtLeast(0.8),
            naive: Some(Bound::AtMost(0.3)),
        },
        Check {
            what: "S afterwards",
            value: |record| record.success(&[Critical], &seconds(41..55)),
            pass: Bound::AtLeast(0.99),
            naive: Some(Bound::AtMost(0.5)),
        },
    ],
};

fn goodput_while_on(record: &Record) -> f64 {
    let waves = (1..10).map(|wave| second(4 * wave)..second(4 * wave + 2));
    waves.map(|wave| record.goodput(&wave)).sum::<f64>() / 9.0
}

fn spec(variant: Variant) -> Spec {
    let schedule = Schedule::default().waves(10, millis(2000), Load(3.0)).steady(millis(20_000), Load(0.7));
    super::one_service(schedule, Mix::only(Critical), variant)
}
