//! A part of ten instances refuses everything. Callers pick one by chance and try up to three.
//!
//! Where one in ten refuses, trying again is right: three in a row refuse once in a thousand. Where half of
//! them or more refuse, trying again adds load to a service that has none to spare, and the instances say so.

use tidegate_core::Criticality::Critical;
use tidegate_core::Moment;

use super::{Bound, Coded, Seen, Variant, millis, seconds};
use crate::arrivals::{Load, Mix, Schedule};
use crate::caller::Stubborn;
use crate::measure::Record;
use crate::protect;
use crate::spec::{Change, Health, Link, Service, Source, Spec, Work};

/// One in ten.
pub(super) const ONE: Coded = Coded {
    id: "D6/.1",
    what: "1 of 10 instances refuses, up to three attempts",
    spec: |variant| spec(1, variant),
    checks: &[
        Seen {
            what: "users who fail; p³ is .001", value: failures, pass: Bound::AtMost(0.002), naive: None
        },
        Seen { what: "A", value: amplification, pass: Bound::AtMost(1.1), naive: Some(Bound::AtLeast(1.1)) },
    ],
};

/// Half of them.
pub(super) const FIVE: Coded = Coded {
    id: "D6/.5",
    what: "5 of 10 instances refuse, up to three attempts",
    spec: |variant| spec(5, variant),
    checks: &[
        DONT_RETRY,
        Seen { what: "A", value: amplification, pass: Bound::AtMost(1.25), naive: Some(Bound::AtLeast(1.7)) },
    ],
};

/// Nine in ten.
pub(super) const NINE: Coded = Coded {
    id: "D6/.9",
    what: "9 of 10 instances refuse, up to three attempts",
    spec: |variant| spec(9, variant),
    checks: &[
        DONT_RETRY,
        Seen { what: "A", value: amplification, pass: Bound::AtMost(1.25), naive: Some(Bound::AtLeast(2.6)) },
    ],
};

const DONT_RETRY: Seen = Seen {
    what: "refusals that say not to try again",
    value: |record| record.dont_retry_share(&AFTER_A_WHILE),
    pass: Bound::AtLeast(0.9),
    naive: Some(Bound::AtMost(0.0)),
};

const AFTER_A_WHILE: std::ops::Range<std::time::Duration> = seconds(10..60);

fn failures(record: &Record) -> f64 {
    1.0 - record.common().success(&[Critical.index()], &AFTER_A_WHILE)
}

fn amplification(record: &Record) -> f64 {
    record.common().amplification(&AFTER_A_WHILE)
}

fn spec(refusing: u32, variant: Variant) -> Spec {
    // So little that what still works can do all of it.
    let schedule = Schedule::default().steady(millis(60_000), Load(0.08));
    let (gate, manners): (_, Box<dyn crate::caller::Manners>) = match variant {
        Variant::Naive => (protect::nothing(), Box::new(Stubborn::times(3))),
        Variant::Protected => (protect::counting_attempts(), protect::advised(3)),
    };
    let health = Health { refusing, ..Health::WELL };
    Spec {
        length: millis(61_000),
        sources: vec![Source {
            schedule,
            mix: Mix::only(Critical),
            patience: millis(1000),
            link: Link { target: 0, timeout: millis(1000), manners },
        }],
        services: vec![Service { instances: 10, gate, ..Service::plain(20, Work::Exact(millis(10))) }],
        changes: vec![Change { at: Moment::ORIGIN, service: 0, health }],
    }
}
