//! What the gateway uses of the processor.
//!
//! A service that answers at once, asked as often as in the flood, says what forwarding costs; then the flood
//! says what a refusal does.
//!
//! The gateway runs in this process beside callers and services, so it is told apart by the names of its
//! threads.

use std::fs;
use std::time::Duration;

use tidegate_load::service::{Service, Spec, Work};
use tidegate_load::{Pacing, Plan, Rate, Schedule, Target};
use tidegate_scenario::Effort;

use super::running::Running;
use super::side::Look;
use super::{FLOOD, Interrupt, PATIENCE, Show};
use crate::Problem;

/// What the names of the gateway's threads begin with.
const THREADS: &str = "worker-";

/// A service that is never busy.
const IDLE_WORKERS: usize = 1000;
const IDLE_WORK: Duration = Duration::from_millis(1);

/// Connections for the measurement of what forwarding costs.
const CONNECTIONS: usize = 100;

/// Microseconds of the processor; none where the system does not tell.
#[derive(Clone, Copy, Debug)]
pub(super) struct Micros {
    pub(super) forwarded: Option<f64>,
    pub(super) refused: Option<f64>,
}

impl Micros {
    /// What one of each costs, if a forwarded answer costs that many.
    pub(super) fn of(flood: Option<Effort>, forwarded: Option<f64>) -> Self {
        let refused = flood.zip(forwarded).and_then(|(flood, forwarded)| flood.of_refusing(forwarded));
        // A negative number would say that forwarding was dearer when it was measured by itself.
        Self { forwarded, refused: refused.filter(|micros| *micros > 0.0) }
    }
}

/// Follows what the gateway uses, from the first reading to the last.
#[derive(Debug, Default)]
pub(super) struct Meter {
    first: Option<(Option<Duration>, Look)>,
    last: Option<(Option<Duration>, Look)>,
}

impl Meter {
    pub(super) fn read(&mut self, look: &Look) {
        let reading = (used(), *look);
        self.first.get_or_insert(reading);
        self.last = Some(reading);
    }

    /// None where the system does not tell it.
    pub(super) fn effort(&self) -> Option<Effort> {
        let ((used, first), (used_last, last)) = self.first.zip(self.last)?;
        let between = last.since(&first);
        Some(Effort {
            used: used_last?.saturating_sub(used?),
            forwarded: between.levels.iter().map(|level| level.ok).sum(),
            refused: between.levels.iter().map(|level| level.refused).sum(),
        })
    }
}

/// What it costs the gateway to forward an answer, in microseconds of the processor.
pub(super) fn of_forwarding(show: &Show, interrupt: &Interrupt) -> Result<Option<f64>, Problem> {
    let service = Service::start(&Spec::new(IDLE_WORKERS, Work::Fixed(IDLE_WORK)))?;
    let gateway = Running::start(service.address())?;
    let rate = Rate::per_second(show.capacity() * FLOOD).unwrap_or(Rate::ZERO);
    let schedule = Schedule::new(Pacing::Poisson).steady(rate, show.forwarding);
    let plan = Plan {
        connections: CONNECTIONS,
        timeout: PATIENCE,
        ..Plan::new(Target::at(gateway.address), schedule)
    };
    let before = used();
    let run = plan.start()?;
    interrupt.wait_until(run.began() + show.forwarding);
    if interrupt.came() {
        return Ok(None);
    }
    let report = run.wait();
    let after = used();
    gateway.stop();
    let effort = before.zip(after).map(|(before, after)| Effort {
        used: after.saturating_sub(before),
        forwarded: report.total.answers.ok,
        refused: 0,
    });
    Ok(effort.and_then(|effort| effort.of_forwarding()))
}

/// Processor time of all threads of gateways that run, where the system tells it (Linux).
fn used() -> Option<Duration> {
    let mut sum = Duration::ZERO;
    for thread in fs::read_dir("/proc/self/task").ok()?.flatten() {
        let text = |name: &str| fs::read_to_string(thread.path().join(name)).unwrap_or_default();
        if text("comm").starts_with(THREADS) {
            // The time that it ran, the time that it waited to, and how often, in nanoseconds.
            let nanos = text("schedstat").split_whitespace().next().and_then(|nanos| nanos.parse().ok());
            sum += Duration::from_nanos(nanos?);
        }
    }
    // A thread gives itself its name: one that has just begun is not counted, and has used nothing yet.
    Some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_that_would_cost_less_than_nothing_is_not_shown() {
        let flood = Some(Effort { used: Duration::from_micros(5000), forwarded: 100, refused: 200 });
        assert_eq!(Micros::of(flood, Some(30.0)).refused, Some(10.0));
        assert_eq!(Micros::of(flood, Some(60.0)).refused, None);
        assert_eq!(Micros::of(flood, None).refused, None);
    }

    #[test]
    fn threads_are_found_by_their_name() {
        let busy = || {
            let mut sum = 0_u64;
            (0..1_000_000_u64).for_each(|number| sum = std::hint::black_box(sum ^ number));
            used()
        };
        let thread = std::thread::Builder::new().name(format!("{THREADS}7")).spawn(busy).unwrap();
        let found = thread.join().unwrap();
        if cfg!(target_os = "linux") {
            assert!(found.is_some_and(|used| used > Duration::ZERO), "{found:?}");
        }
    }
}
