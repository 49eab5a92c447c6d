//! A dependency that answers 85 of 100. A breaker that trips at a tenth of failures makes it answer none
//! (dotnet/extensions#7686); a better one stays closed, and a retry within the budget repairs a part.

use tidegate_core::Criticality::Critical;
use tidegate_core::breaker::{BreakerTerms, Window};
use tidegate_core::{Moment, Ratio};

use super::{Bound, Coded, Seen, Variant, millis, seconds};
use crate::arrivals::{Load, Mix, Schedule};
use crate::caller::Stubborn;
use crate::protect;
use crate::spec::{Change, Health, Link, Service, Source, Spec, Work};

/// The scenario.
pub(super) const POOR_DEPENDENCY: Coded = Coded {
    id: "D2",
    what: "a dependency fails 15 % for a minute",
    spec,
    checks: &[
        Seen {
            what: "S of the callers; the dependency's is .85",
            value: |record| record.common().success(&[Critical.index()], &seconds(10..60)),
            pass: Bound::AtLeast(0.85),
            naive: Some(Bound::AtMost(0.3)),
        },
        Seen {
            what: "attempts that the breaker refused",
            value: |record| f64::from(record.common().refused(&seconds(0..60))),
            pass: Bound::AtMost(0.0),
            naive: Some(Bound::AtLeast(1000.0)),
        },
    ],
};

/// As one library ships it: a tenth of failures among 100 in 30 s, and one probe after 5 s.
fn eager() -> BreakerTerms {
    let mut terms = BreakerTerms {
        window: Window::Over(millis(30_000)),
        min_requests: 100,
        failure_ratio: Ratio::new(0.1).unwrap_or(Ratio::ONE),
        recovery: None,
        ..BreakerTerms::default()
    };
    terms.probing.probes = 1;
    terms.open.growth = 1;
    terms
}

fn spec(variant: Variant) -> Spec {
    let schedule = Schedule::default().steady(millis(60_000), Load(0.5));
    let manners = match variant {
        Variant::Naive => protect::behind_breaker(1, eager()),
        Variant::Protected => protect::behind_breaker(3, BreakerTerms::default()),
    };
    let patience = millis(500);
    let users = Link { target: 0, timeout: patience, manners: Box::new(Stubborn::times(1)) };
    let needs = Some(Link { target: 1, timeout: patience, manners });
    let poor = Health { failing: 0.15, ..Health::WELL };
    Spec {
        length: millis(61_000),
        sources: vec![Source { schedule, mix: Mix::only(Critical), patience, link: users }],
        services: vec![
            Service { needs, ..Service::plain(10, Work::Exact(millis(1))) },
            Service::plain(super::WORKERS, super::WORK),
        ],
        changes: vec![Change { at: Moment::ORIGIN, service: 1, health: poor }],
    }
}
