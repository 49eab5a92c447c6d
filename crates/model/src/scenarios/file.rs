//! A scenario of a file as a model.

use std::rc::Rc;
use std::time::Duration;

use tidegate_core::{Criticality, Moment};
use tidegate_scenario::{self as scenario, Amount, Class, Fault, Pace, Variant};

use super::{Check, Scenario};
use crate::arrivals::{Load, Mix, Schedule};
use crate::caller::{Manners, Stubborn};
use crate::gate::Gate;
use crate::measure::Record;
use crate::protect;
use crate::spec::{Build, Change, Health, Link, Service, Source, Spec, Work};

/// What the model adds to a file: what stands before the service in either variant, and how callers behave.
pub(super) struct Filed {
    /// What is added to the name.
    pub(super) suffix: &'static str,
    pub(super) naive: Guard,
    pub(super) protected: Guard,
    pub(super) callers: Callers,
    pub(super) size: Size,
}

/// What stands before the service.
#[derive(Clone, Copy)]
pub(super) enum Guard {
    Nothing,
    /// So many places, and no queue.
    Fixed(u32),
    /// A limit that compares latency with earlier latency only.
    Gradient2(u32),
    /// An adaptive limit and its queue.
    Gate,
    /// The same with an edge before it.
    Edged,
    /// What the gateway has before an upstream.
    Gateway,
    /// The same without edge, in the process it protects.
    Inside(u32),
}

/// How callers of the protected variant behave; the naive ones are stubborn.
#[derive(Clone, Copy)]
pub(super) enum Callers {
    Stubborn,
    /// Within a budget, behind a throttle.
    Throttled,
}

/// How large the service is.
#[derive(Clone, Copy)]
pub(super) enum Size {
    AsWritten,
    /// A machine of two cores, and as much less traffic. Waits are five times as long there: 200 requests a second leave
    /// two workers, not 1000. At load .9, requests arrive at 180 a second, and of those who find both workers busy e^(−20 t)
    /// wait for longer than t; of a critical level that is .6 of a flood e^(−80 t) do, and one that is all of the capacity
    /// loses 1 in 1 + 200 t. A queue of 50 ms is short beside that. One of 150 ms would lose less, and P of O1, which
    /// is 138 ms, would not hold: whoever waits to its end and works for the 46 ms of one in a hundred takes 196.
    TwoWorkers,
}

/// Saying no costs a worker 20 µs, a five-hundredth of the usual work.
const REFUSAL_COST: Duration = Duration::from_micros(20);

/// So many that what a service calls is slow for its own reasons only.
const ENOUGH: u32 = 100_000;

impl Filed {
    pub(super) const USUAL: Self = Self {
        suffix: "",
        naive: Guard::Nothing,
        protected: Guard::Gate,
        callers: Callers::Stubborn,
        size: Size::AsWritten,
    };

    pub(super) fn scenario(&self, text: &str) -> Scenario {
        let mut file =
            scenario::Scenario::read("scenarios", text).expect("the files are tested where they are read");
        if let Size::TwoWorkers = self.size {
            file.service.workers = 2;
        }
        let file = Rc::new(file);
        let judged = Rc::new(by_level(&file));
        let asked = file.assertions.iter().filter(|assertion| assertion.is_for(Pace::Virtual));
        let checks = asked.map(|assertion| {
            let (asked, judged) = (assertion.clone(), Rc::clone(&judged));
            let naive = assertion.naive.filter(|shown| shown.only != Some(Pace::Real));
            Check {
                what: assertion.what.clone(),
                value: Box::new(move |record: &Record| asked.value(&judged, record.common(), Pace::Virtual)),
                pass: assertion.pass,
                naive: naive.map(|shown| shown.bound),
            }
        });
        let (naive, protected, callers) = (self.naive, self.protected, self.callers);
        Scenario {
            id: format!("{}{}", file.id, self.suffix),
            what: file.what.clone(),
            checks: checks.collect(),
            spec: Box::new(move |variant| match variant {
                Variant::Naive => spec(&file, naive, Callers::Stubborn),
                Variant::Protected => spec(&file, protected, callers),
            }),
        }
    }
}

/// The same with one class for each criticality: a model counts by those.
fn by_level(file: &scenario::Scenario) -> scenario::Scenario {
    let class = |level: Criticality| {
        let nobody = || Class {
            name: String::new(),
            criticality: level,
            amount: Amount::Share(0.0),
            callers: 1,
            path: String::new(),
        };
        let mut same = file.classes.iter().filter(|class| class.criticality == level);
        let class = same.next().cloned().unwrap_or_else(nobody);
        assert!(same.next().is_none(), "{}: the model tells classes apart by their criticality", file.id);
        class
    };
    scenario::Scenario { classes: Criticality::ALL.map(class).to_vec(), ..file.clone() }
}

fn spec(file: &scenario::Scenario, guard: Guard, callers: Callers) -> Spec {
    let timeout = file.traffic.timeout;
    let written = file.service;
    let service = Service {
        crowding: written.crowding,
        refusal_cost: REFUSAL_COST,
        gate: guard.build(timeout),
        ..Service::plain(written.workers, written.work)
    };
    Spec {
        sources: sources(file, callers),
        services: with_dependency(service, written.then, timeout),
        changes: changes(file, usize::from(written.then.is_some())),
        length: file.timeline.length(Pace::Virtual),
    }
}

/// What a service waits for without holding a worker is another service that is never short of them.
fn with_dependency(service: Service, then: Option<Work>, timeout: Duration) -> Vec<Service> {
    let Some(then) = then else { return vec![service] };
    let needs = Some(Link { target: 1, timeout, manners: Box::new(Stubborn::times(1)) });
    vec![Service { needs, ..service }, Service::plain(ENOUGH, then)]
}

impl Guard {
    fn build(self, patience: Duration) -> Build<dyn Gate> {
        match self {
            Self::Nothing => protect::nothing(),
            Self::Fixed(limit) => protect::fixed(limit),
            Self::Gradient2(start) => protect::gradient2(start),
            Self::Gate => protect::gate(patience),
            Self::Edged => protect::edged_gate(patience),
            Self::Gateway => protect::gateway(),
            Self::Inside(start) => protect::gate_inside(patience, start),
        }
    }
}

/// One for the classes that share a load, and one for each that has its own.
fn sources(file: &scenario::Scenario, callers: Callers) -> Vec<Source> {
    let traffic = &file.traffic;
    let source = |load: &scenario::Load, mix: Mix| {
        let manners: Box<dyn Manners> = match callers {
            Callers::Stubborn => Box::new(Stubborn { attempts: traffic.attempts, pause: traffic.pause }),
            Callers::Throttled => protect::throttled(traffic.attempts),
        };
        let link = Link { target: 0, timeout: traffic.timeout, manners };
        Source { schedule: schedule(file, load), mix, patience: traffic.patience, link }
    };
    let (mut shares, mut sources) = ([0.0; 4], Vec::new());
    for class in &file.classes {
        match &class.amount {
            Amount::Share(share) => shares[class.criticality.index()] += share,
            Amount::Own(load) => sources.push(source(load, Mix::only(class.criticality))),
        }
    }
    if shares.iter().sum::<f64>() > 0.0 {
        sources.push(source(&traffic.load, Mix::of(shares)));
    }
    sources
}

fn schedule(file: &scenario::Scenario, load: &scenario::Load) -> Schedule {
    let stretches = file.timeline.stretches(Pace::Virtual);
    stretches.iter().fold(Schedule::default(), |schedule, stretch| {
        let level = load.during(&stretch.phase);
        schedule.stretch(stretch.time.end - stretch.time.start, Load(level.first), Load(level.last))
    })
}

/// Faults as changes of the last service's health.
fn changes(file: &scenario::Scenario, service: usize) -> Vec<Change> {
    let during = |fault: &Fault| file.timeline.during(&fault.during, Pace::Virtual);
    let moment = |at: Duration| Moment::ORIGIN.plus(at);
    let change = |at, health| Change { at: moment(at), service, health };
    let both = |fault: &Fault| {
        let health = health(fault);
        let times = during(fault).into_iter();
        times
            .flat_map(|time| [change(time.start, health), change(time.end, Health::WELL)])
            .collect::<Vec<_>>()
    };
    file.faults.iter().flat_map(both).collect()
}

fn health(fault: &Fault) -> Health {
    Health {
        speed: 1.0 / fault.slow,
        delay: fault.delay,
        is_hanging: fault.is_hung,
        // All instances there are.
        refusing: if fault.is_stopped { u32::MAX } else { 0 },
        failing: fault.fail,
    }
}
