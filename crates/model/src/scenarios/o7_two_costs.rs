//! Two kinds of work in one service: 95 % take 1 ms, 5 % take 100 ms.
//!
//! The mean is 5.95 ms, six times the median. Whoever sizes a limit by the usual request, or takes the
//! spread for a queue, refuses where there is room. The naive limit here is of that kind: what Little's law
//! gives for the median.

use tidegate_core::Criticality::Critical;

use super::{Bound, Check, Scenario, Variant, millis, seconds};
use crate::arrivals::{Load, Mix, Schedule};
use crate::caller::Stubborn;
use crate::measure::Record;
use crate::protect;
use crate::spec::{Link, Service, Source, Spec, Work};

/// The scenario.
pub(super) const TWO_COSTS: Scenario = Scenario {
    id: "O7",
    what: "5 % of the requests take 100 times as long; load .7, then .9",
    spec,
    checks: &[
        Check {
            what: "F: refusals at load .7, from the start",
            value: |record| f64::from(record.refused(&seconds(0..30))),
            pass: Bound::AtMost(0.0),
            naive: Some(Bound::AtLeast(1000.0)),
        },
        Check {
            what: "F: refusals at load .7, from 20 s on, when the limit has been found",
            value: |record| f64::from(record.refused(&seconds(20..30))),
            pass: Bound::AtMost(0.0),
            naive: Some(Bound::AtLeast(1000.0)),
        },
        Check {
            what: "G ÷ offered at load .9",
            value: |record| record.goodput(&AT_NINE) / record.offered(&AT_NINE),
            pass: Bound::AtLeast(0.99),
            naive: Some(Bound::AtMost(0.5)),
        },
        Check { what: "least limit ÷ workers", value: least_limit, pass: Bound::AtLeast(1.0), naive: None },
    ],
};

const AT_NINE: std::ops::Range<tidegate_core::Moment> = seconds(31..45);
/// So many that a crowd of long requests does not take all of them: 64 at load .9 hold 48 long ones.
const WORKERS: u32 = 64;
const TWO_KINDS: Work = Work::TwoKinds { short: millis(1), long: millis(100), share_of_long: 0.05 };
const PATIENCE: std::time::Duration = millis(500);

fn least_limit(record: &Record) -> f64 {
    let settled = record.limits().get(20..).unwrap_or_default();
    settled.iter().copied().fold(f64::INFINITY, f64::min) / f64::from(WORKERS)
}

fn spec(variant: Variant) -> Spec {
    let schedule = Schedule::default().steady(millis(30_000), Load(0.7)).steady(millis(15_000), Load(0.9));
    let gate = match variant {
        // 9681 a second at load .9 times 1 ms.
        Variant::Naive => protect::fixed(10),
        Variant::Protected => protect::gate(PATIENCE),
    };
    let link = Link { target: 0, timeout: PATIENCE, manners: Box::new(Stubborn::times(1)) };
    Spec {
        length: schedule.ends().since(tidegate_core::Moment::ORIGIN),
        sources: vec![Source { schedule, mix: Mix::only(Critical), patience: PATIENCE, link }],
        services: vec![Service { gate, ..Service::plain(WORKERS, TWO_KINDS) }],
        changes: vec![],
    }
}
