//! A scenario over real sockets: the service it asks for, its traffic, its faults, and what came of it.
//!
//! ```text
//! scenario ──> service ──address──> (a gateway before it, if one is to be judged)
//!    │            ^ faults on time       ^
//!    └──> plan ───┼──────────────────────┘ requests on time
//!                 └── counts, ten a second ──┐
//!         attempts, one by one ──────────────┴──> record ──> findings
//! ```
//!
//! ```no_run
//! use tidegate_load::drill::Drill;
//! use tidegate_scenario::{Scenario, Variant};
//!
//! let text = std::fs::read_to_string("scenarios/o1_step.toml")?;
//! let drill = Drill::prepare(Scenario::read("o1_step.toml", &text)?)?;
//! // Naive: straight to the service. Protected: to a gateway that sends to it.
//! let service = drill.service();
//! let outcome = drill.run(service, None)?;
//! print!("{}", outcome.table(Variant::Naive));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod evidence;
mod outcome;

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use http::{HeaderName, HeaderValue};
use tidegate_scenario::bins::BIN;
use tidegate_scenario::record::Look;
use tidegate_scenario::{self as scenario, Ending, Pace, Record, Scenario, Told};

use crate::keys::{Draw, Keys, Place};
use crate::plan::{Class, Keep, MAX_CONNECTIONS, Persistence, Plan, Share, StartFailure};
use crate::report::{Attempt, AttemptEnding};
use crate::schedule::{Pacing, Rate, Schedule};
use crate::service::{Faults, Queue, Service, Spec, Work};
use crate::target::Target;

pub use outcome::{FORMAT, Outcome};

/// What is seen of a gateway while it is under load. Asked once a second.
pub trait Probe: Send + fmt::Debug {
    /// What it looks like now.
    fn look(&mut self) -> Look;
}

/// A scenario whose service runs.
#[derive(Debug)]
pub struct Drill {
    scenario: Scenario,
    service: Service,
    seed: u64,
}

/// Callers say who they are and how late they should be shed.
const CALLER: HeaderName = HeaderName::from_static("x-api-key");
const CRITICALITY: HeaderName = HeaderName::from_static("x-criticality");

/// Connections beyond what callers need at the peak, so that chance in the arrivals finds room.
const SPARE: usize = 200;

/// The most connections with those for relief. A service in the same process has as many again, and both are open files.
const MOST_WITH_RELIEF: usize = 7_500;

impl Drill {
    /// Starts the service of a scenario, which is played as the seed 0 gives it.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn prepare(scenario: Scenario) -> io::Result<Self> {
        Self::prepare_with(scenario, 0)
    }

    /// The same with another seed: other requests at other moments that take other times.
    ///
    /// # Errors
    /// When the service cannot be started.
    pub fn prepare_with(scenario: Scenario, seed: u64) -> io::Result<Self> {
        let service = Service::start(&Spec { seed, ..spec(&scenario.service) })?;
        Ok(Self { scenario, service, seed })
    }

    /// Where the service listens.
    #[must_use]
    pub fn service(&self) -> SocketAddr {
        self.service.address()
    }

    /// The scenario.
    #[must_use]
    pub const fn scenario(&self) -> &Scenario {
        &self.scenario
    }

    /// The policy for a gateway before the service, if the scenario has one.
    #[must_use]
    pub fn policy(&self) -> Option<String> {
        let policy = self.scenario.policy.as_ref()?;
        Some(policy.replace("{service}", &self.service().to_string()))
    }

    /// Plays the scenario: its traffic goes to `target`.
    ///
    /// # Errors
    /// When the plan that it makes cannot be carried out.
    pub fn run(self, target: SocketAddr, probe: Option<Box<dyn Probe>>) -> Result<Outcome, StartFailure> {
        let run = self.plan(target).start()?;
        let (stop, stopped) = mpsc::channel();
        let attendant = Attendant {
            faults: self.faults(),
            began: run.began(),
            service: self.service,
            probe,
            record: self.scenario.record(),
            stopped,
        };
        let attendant = thread::Builder::new()
            .name("drill-attendant".to_owned())
            .spawn(move || attendant.attend())
            .map_err(StartFailure::Thread)?;
        let mut report = run.wait();
        drop(stop);
        let mut record = attendant.join().unwrap_or_else(|payload| std::panic::resume_unwind(payload));
        tell(&mut record, &mut report.attempts, self.scenario.traffic.patience);
        Ok(Outcome { scenario: self.scenario, record, report })
    }

    fn plan(&self, target: SocketAddr) -> Plan {
        let traffic = &self.scenario.traffic;
        let classes: Vec<Class> = self.scenario.classes.iter().map(|class| self.class(class)).collect();
        let connections = self.connections();
        Plan {
            classes,
            connections,
            // A generator that is late for a moment would let callers stand in line for a connection, and who gets one then
            // has no patience left for the answer: so it would stay, as long as the flood lasts.
            relief: connections.min(MOST_WITH_RELIEF.saturating_sub(connections)),
            timeout: traffic.timeout,
            persistence: Persistence {
                attempts: traffic.attempts,
                pause: traffic.pause,
                patience: traffic.patience,
            },
            keep: Keep::Attempts,
            seed: self.seed,
            ..Plan::new(Target::at(target), Schedule::new(Pacing::Poisson))
        }
    }

    fn class(&self, class: &scenario::Class) -> Class {
        let draw = match class.callers {
            1 => Draw::One,
            callers => Draw::Uniform { keys: u64::from(callers) },
        };
        let level = HeaderValue::from_static(class.criticality.as_str());
        Class {
            share: Share::Own(self.schedule(&self.scenario.load_of(class))),
            keys: Some(Keys { place: Place::Header(CALLER), format: format!("{}-%", class.name), draw }),
            headers: [(CRITICALITY, level)].into_iter().collect(),
            ..Class::get(&class.name, &class.path)
        }
    }

    fn schedule(&self, load: &scenario::Load) -> Schedule {
        let capacity = self.scenario.service.capacity();
        let rate = |load: f64| Rate::per_second(load * capacity).unwrap_or(Rate::MAX);
        let stretches = self.scenario.timeline.stretches(Pace::Real);
        stretches.iter().fold(Schedule::new(Pacing::Poisson), |schedule, stretch| {
            let level = load.during(&stretch.phase);
            schedule.phase(rate(level.first), rate(level.last), stretch.time.end - stretch.time.start)
        })
    }

    /// As many as callers would hold at the peak if all of them waited as long as they can.
    fn connections(&self) -> usize {
        let Scenario { timeline, classes, traffic, service, .. } = &self.scenario;
        let peak = |phase: &str| -> f64 {
            let levels = classes.iter().map(|class| self.scenario.load_of(class).during(phase));
            levels.map(|level| level.first.max(level.last)).sum()
        };
        let peak = timeline.names().into_iter().map(peak).fold(0.0, f64::max);
        let waiting = (peak * service.capacity() * traffic.patience.as_secs_f64()).ceil();
        let waiting = u32::try_from(Duration::from_secs_f64(waiting.min(1e6)).as_secs()).unwrap_or(u32::MAX);
        usize::try_from(waiting).map_or(MAX_CONNECTIONS, |waiting| (waiting + SPARE).min(MAX_CONNECTIONS))
    }

    /// From when on which faults there are.
    fn faults(&self) -> Vec<(Duration, Faults)> {
        let stretches = self.scenario.timeline.stretches(Pace::Real).into_iter();
        let faults = stretches.map(|stretch| {
            let mut found = Faults::NONE;
            for fault in self.scenario.faults.iter().filter(|fault| fault.during == stretch.phase) {
                found.slow *= fault.slow;
                found.fail = found.fail.max(fault.fail);
                found.delay += fault.delay;
                found.is_hung |= fault.is_hung;
                found.is_stopped |= fault.is_stopped;
            }
            (stretch.time.start, found)
        });
        faults.collect()
    }
}

/// Looks after the service while the plan is carried out.
struct Attendant {
    faults: Vec<(Duration, Faults)>,
    began: Instant,
    service: Service,
    probe: Option<Box<dyn Probe>>,
    record: Record,
    /// Ends with the run.
    stopped: mpsc::Receiver<()>,
}

impl Attendant {
    /// Ten times a second: changes the faults that are due, and notes what reached the service.
    fn attend(mut self) -> Record {
        let mut arrived = 0;
        for bin in 0.. {
            let now = BIN * bin;
            if let Some((_, faults)) = self.faults.iter().find(|(at, _)| *at == now) {
                // The numbers of a scenario were checked when it was read.
                self.service.set(*faults).unwrap_or_default();
            }
            if bin % 10 == 0
                && let Some(probe) = &mut self.probe
            {
                self.record.look(now, probe.look());
            }
            let next = self.began + now + BIN;
            let wait = next.saturating_duration_since(Instant::now());
            if self.stopped.recv_timeout(wait) != Err(mpsc::RecvTimeoutError::Timeout) {
                break;
            }
            let so_far = self.service.served().arrived;
            self.record.attempts(now, u32::try_from(so_far - arrived).unwrap_or(u32::MAX));
            arrived = so_far;
        }
        self.record
    }
}

/// Tells the record what the generator saw.
fn tell(record: &mut Record, attempts: &mut [Attempt], patience: Duration) {
    attempts.sort_unstable_by_key(|attempt| attempt.ended);
    for attempt in attempts.iter() {
        if attempt.ending == AttemptEnding::Refused {
            record.refusal(attempt.ended);
        }
        if !attempt.is_last {
            continue;
        }
        let Attempt { class, due, ended, .. } = *attempt;
        record.arrived(due, class);
        let ending = match attempt.ending {
            // What is sent a little late is answered a little late: a hundredth is the generator's.
            AttemptEnding::Ok if ended.saturating_sub(due) <= patience.mul_f64(1.01) => Ending::Good,
            AttemptEnding::Ok => Ending::Late,
            AttemptEnding::Refused => Ending::Refused,
            AttemptEnding::Failed | AttemptEnding::Unsent => Ending::Failed,
        };
        record.ended(Told { class, arrived: due, ended, ending });
    }
}

fn spec(service: &scenario::Service) -> Spec {
    Spec {
        then: service.then.map(work),
        crowding: service.crowding,
        queue: service.queue.map_or(Queue::Unbounded, |queue| {
            usize::try_from(queue).map_or(Queue::Unbounded, Queue::Bounded)
        }),
        tells_utilisation: service.tells_utilisation,
        ..Spec::new(usize::try_from(service.workers).unwrap_or(usize::MAX), work(service.work))
    }
}

fn work(work: scenario::Work) -> Work {
    match work {
        scenario::Work::Exact(time) => Work::Fixed(time),
        scenario::Work::Exponential(mean) => Work::Exponential(mean),
        scenario::Work::TwoKinds { short, long, share_of_long } => {
            Work::Bimodal { usual: short, long, share: share_of_long }
        }
    }
}
