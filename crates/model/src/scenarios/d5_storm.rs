//! Retries through three layers while the bottom fails: 4 · 4 · 4 = 64 attempts for each user, or with a
//! budget of a tenth in each layer 1.1³ = 1.33.

use tidegate_core::Criticality::Critical;
use tidegate_core::Moment;

use super::{Bound, Coded, Seen, Variant, millis, seconds};
use crate::arrivals::{Load, Mix, Schedule};
use crate::caller::{Manners, Stubborn};
use crate::protect;
use crate::spec::{Change, Health, Link, Service, Source, Spec, Work};

/// The scenario.
pub(super) const STORM: Coded = Coded {
    id: "D5",
    what: "three layers, four attempts each, the bottom fails all",
    spec,
    checks: &[Seen {
        what: "A at the bottom",
        // The answers take milliseconds, so nothing is under way at the end of the stretch.
        value: |record| record.common().amplification(&seconds(15..25)),
        pass: Bound::AtMost(1.35),
        naive: Some(Bound::AtLeast(63.5)),
    }],
};

fn spec(variant: Variant) -> Spec {
    let manners = || -> Box<dyn Manners> {
        match variant {
            Variant::Naive => Box::new(Stubborn::times(4)),
            Variant::Protected => protect::retries(4),
        }
    };
    let link = |target| Link { target, timeout: millis(5000), manners: manners() };
    let layer = |needs| Service { needs, ..Service::plain(100, Work::Exact(millis(1))) };
    // A load of .01 is a thousand users a second, and sixty-four thousand attempts without a budget.
    let load = match variant {
        Variant::Naive => Load(0.001),
        Variant::Protected => Load(0.01),
    };
    let schedule = Schedule::default().steady(millis(25_000), load);
    let fails = Health { failing: 1.0, ..Health::WELL };
    Spec {
        length: millis(25_000),
        sources: vec![Source { schedule, mix: Mix::only(Critical), patience: millis(10_000), link: link(0) }],
        services: vec![layer(Some(link(1))), layer(Some(link(2))), layer(None)],
        changes: vec![Change { at: Moment::ORIGIN, service: 2, health: fails }],
    }
}
