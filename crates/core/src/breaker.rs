//! Refusing at once what would fail anyway: a circuit breaker.
//!
//! A dependency that is down still costs its callers a time-out each, and their threads, connections and
//! patience with it. The simplest breaker counts: after so many failures it opens and refuses, after a while
//! it lets one request through, and if that works it closes. Each of its parts has failed somebody:
//!
//! | the simple way | how it failed | here |
//! |---|---|---|
//! | open at 10 % failures | a dependency at 85 % success became one at 0 % | half, of at least 50 results |
//! | one probe, no limit of time | the probe hangs, and the breaker sits half-open for ever | a probe that takes too long has failed |
//! | any number of probes | 17 times the traffic against an upstream that hangs | at most `probes` of them |
//! | a cancelled probe closes it | a caller that goes away says nothing about the dependency | neither success nor failure |
//! | late results count | answers to requests from before the trip close it, or open it again | a pass carries its generation |
//! | all of the traffic back at once | the dependency falls over again | a share of it, doubling |
//! | all instances wait 5 s | all probe together | each wait is jittered |
//! | wall-clock windows | a clock set back keeps it open for hours | no wait is ever longer than it was drawn |
//!
//! ```text
//!             ratio reached                 wait is over
//!   closed ───────────────────▶ open ─────────────────────▶ half_open
//!     ▲                          ▲ ▲       too many bad         │
//!     │                          │ └────────────────────────────┤
//!     │ share reaches 1          │ ratio reached                │ enough good
//!     └───────────────────── recovering ◀───────────────────────┘
//! ```
//!
//! An example, with a window of 20 s, at least 5 results, a ratio of one half, open for 5 s, 4 probes,
//! back by shares of .25 and 1 s, without jitter:
//!
//! | at     | what happens                | state, and why                                              |
//! |--------|-----------------------------|-------------------------------------------------------------|
//! | 0 s    | fail, fail, fail, ok, ok    | open: 3 of 5 is at least a half; judged at every result      |
//! | 3 s    | a request                   | refused, retry after 2 s                                    |
//! | 6 s    | five requests               | half_open: four probes, the fifth is refused                |
//! | 6 s    | fail, ok, ok, ok            | recovering: 1 of 4 is below a half. A quarter may pass      |
//! | 6 s    | rolls .24 and .25           | admitted, refused                                           |
//! | 7 s    | the admitted one is ok      | a half may pass; from 8 s on all of it: closed              |
//!
//! The probes are judged as soon as those still missing cannot change the finding. While recovering, an
//! interval whose share of failures is at least half the ratio does not double the share, and one that
//! reaches the ratio opens the breaker for twice as long as before. So a dependency that comes back with
//! 30 % of its capacity is held at what it can serve instead of being tripped over and over.
//!
//! The jitter of a wait is drawn by the first request that meets the open breaker: results bring no roll.
//!
//! Limits: what hangs is seen only when it ends, so every attempt needs a time-out; what is keyed too
//! coarsely refuses the healthy with the sick. Sources: Nygard, *Release It!*; the failures are public
//! reports about resilience4j, Polly, Sentinel and a gateway of Safe.

use std::time::Duration;

use crate::permit::Outcome;
use crate::units::share::is_at_least;
use crate::units::{Moment, Ratio, Roll};
use crate::verdict::{Reason, Retry, Verdict};

mod probes;
mod recovery;
mod results;
mod rule;
mod shared;
#[cfg(test)]
mod tests;

use probes::{Finding, Probes};
use recovery::{Course, Return};
pub use results::Counts;
use results::{Mark, Results};
pub use rule::{BreakerRule, BreakerTerms, OpenTime, Probing, Recovery, Slow, Window};
pub use shared::SharedBreaker;

/// Where a breaker is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// Traffic passes.
    Closed,
    /// Traffic is refused.
    Open,
    /// A few probes pass.
    HalfOpen,
    /// A share of the traffic passes.
    Recovering,
}

impl State {
    /// The state as one word for logs and metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Open => "open",
            Self::HalfOpen => "half_open",
            Self::Recovering => "recovering",
        }
    }
}

/// Who is in command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Switch {
    /// The results.
    #[default]
    Automatic,
    /// The operator: nothing passes.
    ForcedOpen,
    /// The operator: everything passes and nothing is counted.
    Disabled,
}

/// The right to one attempt, to be brought back with its outcome.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a pass that is not brought back keeps a probe's place for ten times the probes' limit"]
pub struct Pass {
    generation: u64,
    probe: Option<u32>,
    began: Moment,
}

/// The breaker as a plain machine; [`SharedBreaker`] is the one for threads.
///
/// ```
/// use tidegate_core::breaker::{Breaker, BreakerRule, State};
/// use tidegate_core::permit::Outcome;
/// use tidegate_core::{Moment, Roll};
///
/// let (now, roll) = (Moment::ORIGIN, Roll::new(0.5)?);
/// let mut breaker = Breaker::new(BreakerRule::default(), now);
/// for _ in 0..50 {
///     let pass = breaker.admit(now, roll).admitted().expect("it is closed");
///     breaker.record(pass, now, Outcome::Failed);
/// }
/// assert_eq!(breaker.state(), State::Open);
/// assert!(!breaker.admit(now, roll).is_admit());
/// # Ok::<(), tidegate_core::Invalid>(())
/// ```
#[derive(Clone, Debug)]
pub struct Breaker {
    rule: BreakerRule,
    switch: Switch,
    phase: Phase,
    /// Grows with every change of state; results of an earlier one belong to another time.
    generation: u64,
    /// How often it opened since it was last closed.
    trips_in_a_row: u32,
    trips: u64,
    results: Results,
    probes: Probes,
}

#[derive(Clone, Copy, Debug)]
enum Phase {
    Closed,
    /// The wait is missing until a request has brought a roll to draw it with.
    Open {
        since: Moment,
        wait: Option<Duration>,
    },
    HalfOpen,
    Recovering(Return),
}

impl Breaker {
    /// A closed breaker.
    #[must_use]
    pub fn new(rule: BreakerRule, now: Moment) -> Self {
        let terms = rule.terms();
        Self {
            rule,
            switch: Switch::Automatic,
            phase: Phase::Closed,
            generation: 0,
            trips_in_a_row: 0,
            trips: 0,
            results: Results::new(terms.window, now),
            probes: Probes::new(terms.probing.probes),
        }
    }

    /// Asks for one attempt.
    pub fn admit(&mut self, now: Moment, roll: Roll) -> Verdict<Pass> {
        match self.switch {
            Switch::Automatic => {}
            Switch::ForcedOpen => return refuse(self.rule.terms().open.first),
            Switch::Disabled => return self.pass(now, None),
        }
        if let Phase::Open { since, wait } = &mut self.phase {
            let wait = *wait.get_or_insert_with(|| self.rule.wait(self.trips_in_a_row, roll));
            // Set back, a clock would keep us open for longer than was drawn: the wait starts again.
            *since = (*since).min(now);
            let passed = now.since(*since);
            if passed < wait {
                return refuse(wait - passed);
            }
            self.enter(Phase::HalfOpen);
        }
        self.look(now);
        match self.phase {
            Phase::Closed => self.pass(now, None),
            Phase::HalfOpen => match self.probes.take(now) {
                Some(probe) => self.pass(now, Some(probe)),
                None => refuse(self.probes.longest_left(now, self.rule.terms().probing.limit)),
            },
            Phase::Recovering(back) if roll.hits(back.ratio()) => self.pass(now, None),
            Phase::Recovering(back) => refuse(back.left(now)),
            // Just now, because probes ran out of time. The next request draws the wait.
            Phase::Open { .. } => refuse(self.rule.terms().open.first),
        }
    }

    /// Learns how an attempt ended. What began before the state last changed does not count, and neither
    /// does what was abandoned: it only gives its probe's place back.
    pub fn record(&mut self, pass: Pass, now: Moment, outcome: Outcome) {
        if pass.generation != self.generation || self.switch != Switch::Automatic {
            if let Some(probe) = pass.probe {
                self.probes.release(probe, pass.generation);
            }
            return;
        }
        let is_failure = match outcome {
            Outcome::Ok => false,
            Outcome::Failed | Outcome::Overloaded => true,
            Outcome::Abandoned => {
                if let Some(probe) = pass.probe {
                    self.probes.cancel(probe);
                }
                return;
            }
        };
        let is_slow = self.rule.is_slow(now.since(pass.began));
        match &mut self.phase {
            Phase::Closed => self.count(now, Mark { is_failure, is_slow }),
            Phase::Open { .. } => {}
            Phase::HalfOpen => {
                if let Some(probe) = pass.probe {
                    self.probes.expire(now, self.rule.terms().probing.limit);
                    self.probes.end(probe, !is_failure && !is_slow);
                }
                self.look(now);
            }
            Phase::Recovering(back) => {
                back.count(is_failure || is_slow);
                self.look(now);
            }
        }
    }

    /// Where it is. An open breaker whose wait is over says so until the next request comes.
    #[must_use]
    pub const fn state(&self) -> State {
        match (self.switch, &self.phase) {
            (Switch::ForcedOpen, _) | (Switch::Automatic, Phase::Open { .. }) => State::Open,
            (Switch::Disabled, _) | (Switch::Automatic, Phase::Closed) => State::Closed,
            (Switch::Automatic, Phase::HalfOpen) => State::HalfOpen,
            (Switch::Automatic, Phase::Recovering(_)) => State::Recovering,
        }
    }

    /// Who is in command.
    #[must_use]
    pub const fn switch(&self) -> Switch {
        self.switch
    }

    /// Puts somebody in command. Forced open before, it now probes; disabled before, it starts closed.
    pub fn set_switch(&mut self, switch: Switch) {
        if switch == self.switch {
            return;
        }
        let phase = match self.switch {
            Switch::Automatic => self.phase,
            Switch::ForcedOpen => Phase::HalfOpen,
            Switch::Disabled => Phase::Closed,
        };
        self.switch = switch;
        self.enter(phase);
    }

    /// The share of requests that may pass at this moment.
    #[must_use]
    pub fn share(&self) -> Ratio {
        match (self.state(), &self.phase) {
            (State::Closed, _) => Ratio::ONE,
            (State::Recovering, Phase::Recovering(back)) => back.ratio(),
            (State::Open | State::HalfOpen | State::Recovering, _) => Ratio::ZERO,
        }
    }

    /// How often it has opened.
    #[must_use]
    pub const fn trips(&self) -> u64 {
        self.trips
    }

    /// What its window holds at `now`.
    pub fn counts(&mut self, now: Moment) -> Counts {
        self.results.counts(now)
    }

    const fn pass(&self, began: Moment, probe: Option<u32>) -> Verdict<Pass> {
        Verdict::Admit(Pass { generation: self.generation, probe, began })
    }

    fn count(&mut self, now: Moment, mark: Mark) {
        let counts = self.results.add(now, mark);
        let has_enough = counts.requests >= u64::from(self.rule.terms().min_requests);
        let is_failing = is_at_least(counts.failures, counts.requests, self.rule.failure());
        let is_slow =
            self.rule.terms().slow.is_some() && is_at_least(counts.slow, counts.requests, self.rule.slow());
        if has_enough && (is_failing || is_slow) {
            self.trip(now);
        }
    }

    /// Draws the conclusions that time or the latest result allow.
    fn look(&mut self, now: Moment) {
        match &mut self.phase {
            Phase::Closed | Phase::Open { .. } => {}
            Phase::HalfOpen => {
                self.probes.expire(now, self.rule.terms().probing.limit);
                match self.probes.finding(self.rule.failure()) {
                    Finding::NotYet => {}
                    Finding::Unwell => self.trip(now),
                    Finding::Well => self.recover(now),
                }
            }
            Phase::Recovering(back) => match back.look(now, self.rule.failure()) {
                Course::On => {}
                Course::Trip => self.trip(now),
                Course::Close => self.enter(Phase::Closed),
            },
        }
    }

    fn recover(&mut self, now: Moment) {
        let recovery = self.rule.terms().recovery;
        self.enter(
            recovery.map_or(Phase::Closed, |recovery| Phase::Recovering(Return::begin(recovery, now))),
        );
    }

    fn trip(&mut self, now: Moment) {
        self.trips += 1;
        self.trips_in_a_row = self.trips_in_a_row.saturating_add(1);
        self.enter(Phase::Open { since: now, wait: None });
    }

    fn enter(&mut self, phase: Phase) {
        self.phase = phase;
        self.probes.clear(self.generation);
        self.generation += 1;
        self.results.clear();
        if matches!(phase, Phase::Closed) {
            self.trips_in_a_row = 0;
        }
    }
}

fn refuse(after: Duration) -> Verdict<Pass> {
    Verdict::refuse(Reason::BreakerOpen, Retry::After(after))
}
