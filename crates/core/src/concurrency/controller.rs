//! What holds for every limit, whatever algorithm moves it.
//!
//! An algorithm proposes; the controller has the last word. It asks in this order, and the first answer is
//! the reason that the change carries:
//!
//! 1. Did the service say that it is *overloaded*? Then what the algorithm proposes.
//! 2. Were less than half of the places in use? Then it holds: nothing was learnt about more of them, and a
//!    limit that grows while unused is no limit when the flood comes. Nor did few places cause what is
//!    slow.
//! 3. Is the median above the *objective*? Then a tenth less, unless the service takes that long without
//!    load: then fewer places would not help, and it holds.
//! 4. Is the time spent *elsewhere*? Then less becomes none: a slow dependency is not cured by serving fewer
//!    (NCL#171). And if all places are taken although the service is known to be idle, half as many again: what
//!    takes thirty times as long needs thirty times the places.
//! 5. Was the last growth futile (*throughput*)? Then it is taken back.
//! 6. More, but few succeeded, or slowly and for callers who had left (*unproven*); or growth was futile a while ago?
//!    Then it holds.
//! 7. Has it rested for long, although requests take longer than without load? Then a *probe*: a quarter
//!    more.
//! 8. Never outside the operator's bounds.
//!
//! **Answers that nobody hears.** A caller who waits for a second and a service that takes longer: the driver sees the
//! work done, after a second each time, whatever is in flight. Nothing is slower than before, so 1 s would become what
//! a request takes without load, and the limit would climb for as long as it lasts (NCL#137). The objective does not
//! help where nobody told it the callers' patience. But that they leave can be seen. A window in which most had left
//! teaches nothing about the latency without load and about growth, and its slow answers are compared with what
//! was known before: the limit shrinks. Where the answers are as fast as without load, callers leave for reasons of
//! their own, and whoever stays has the limit move as ever.
//!
//! AIMD between 10 and 40 with an objective of 100 ms, one line a window:
//!
//! | limit | in flight | median | | limit after | why |
//! |-------|-----------|--------|---|-----------|-----|
//! | 20    | 20        | 10 ms  |                 | 25 | slow_start (a quarter) |
//! | 25    | 12        | 10 ms  |                 | 25 | unused |
//! | 25    | 25        | 150 ms |                 | 20 | throughput (slower, and not more) |
//! | 20    | 20        | 150 ms | dependency slow | 20 | dependency |
//! | 20    | 20        | 120 ms |                 | 18 | objective |
//! | 18    | 18        | 10 ms  |                 | 18 | throughput (growth rests for a while) |
//! | 18    | 18        | 10 ms  | 5 % overloaded  | 16 | overloaded |

use std::time::Duration;

use super::algorithm::{LimitAlgorithm, Proposal, Reading, whole};
use super::baseline::Baseline;
use super::bounds::{Bounds, Objective, Surroundings};
use super::change::{Change, Why};
use super::payoff::{Payoff, Verdict};
use super::probe::Probe;
use super::window::Window;

/// A limit, the algorithm that moves it, and what it must respect.
#[derive(Debug)]
pub struct Controller {
    algorithm: Box<dyn LimitAlgorithm>,
    bounds: Bounds,
    objective: Objective,
    limit: f64,
    baseline: Baseline,
    payoff: Payoff,
    /// While the time is spent elsewhere: what was added since then.
    elsewhere: Option<Payoff>,
    probe: Probe,
    is_starting: bool,
}

/// What a window above the objective leaves of the limit: a tenth less, as AIMD has it.
const OBJECTIVE_BACKOFF: f64 = 0.9;

/// How many times the places there are, while all are taken and the service is less than half busy: then it still is
/// less than three quarters busy.
const ELSEWHERE_GROWTH: f64 = 1.5;

/// Medians further above the baseline than this are slow; below, they are its noise.
const SLOW: f64 = 1.1;

impl Controller {
    /// A limit that starts where the bounds say.
    #[must_use]
    pub fn new(algorithm: impl LimitAlgorithm + 'static, bounds: Bounds, objective: Objective) -> Self {
        Self {
            algorithm: Box::new(algorithm),
            bounds,
            objective,
            limit: f64::from(bounds.initial()),
            baseline: Baseline::default(),
            payoff: Payoff::default(),
            elsewhere: None,
            probe: Probe::default(),
            is_starting: true,
        }
    }

    /// How many may be in flight.
    #[must_use]
    pub fn limit(&self) -> u32 {
        whole(self.limit)
    }

    /// What a request takes without load, as far as is known.
    #[must_use]
    pub const fn baseline(&self) -> Option<Duration> {
        self.baseline.latency()
    }

    /// The name of the algorithm.
    #[must_use]
    pub fn algorithm(&self) -> &'static str {
        self.algorithm.name()
    }

    /// Whether the limit is still on its way up from a cold start, and doubles there.
    #[must_use]
    pub fn is_doubling(&self) -> bool {
        self.is_starting && self.limit < f64::from(self.bounds.max()) && self.algorithm.has_slow_start()
    }

    /// What the operator allows.
    #[must_use]
    pub const fn bounds(&self) -> Bounds {
        self.bounds
    }

    /// Other bounds. The limit moves only as far as it must; `Bounds::exactly` pins it.
    pub fn set_bounds(&mut self, bounds: Bounds) -> Change {
        let from = self.limit();
        self.bounds = bounds;
        self.limit = self.within_bounds(self.limit);
        Change { from, to: self.limit(), why: Why::Operator }
    }

    /// Another objective.
    pub const fn set_objective(&mut self, objective: Objective) {
        self.objective = objective;
    }

    /// Another algorithm. It starts from the limit and the baseline that are known.
    pub fn set_algorithm(&mut self, algorithm: impl LimitAlgorithm + 'static) {
        self.algorithm = Box::new(algorithm);
    }

    /// Learns from a closed window.
    pub fn update(&mut self, window: &Window, surroundings: Surroundings) -> Change {
        let from = self.limit();
        let payoff = self.learn(window, surroundings);
        let decided = self.decide(window, surroundings, payoff);
        let limit = self.within_bounds(decided.limit);
        self.is_starting &= matches!(decided.why, Why::SlowStart | Why::Headroom | Why::Unused);
        let is_clamped = (limit - decided.limit).abs() > f64::EPSILON;
        self.limit = limit;
        let to = self.limit();
        let why = match decided.why {
            why if !is_clamped || to != from => why,
            _ if decided.limit < limit => Why::Floor,
            _ => Why::Ceiling,
        };
        Change { from, to, why }
    }

    /// What the window says about the latency without load and about the last growth.
    fn learn(&mut self, window: &Window, surroundings: Surroundings) -> Verdict {
        let is_first = self.baseline.latency().is_none() && !surroundings.is_dependency_slow;
        let unloaded = window.unloaded.filter(|_| is_first);
        if let Some(unloaded) = unloaded {
            self.baseline.begin(unloaded);
        }
        // What a slow dependency adds is no baseline, few successes among failures are no measure, and what callers
        // did not wait for is their patience at its end.
        let is_typical = !surroundings.is_dependency_slow && !window.is_unproven() && !window.is_unheard();
        let Some(latency) = window.latency.filter(|_| is_typical) else { return Verdict::Open };
        if unloaded.is_none() {
            self.baseline.observe(window.max_in_flight, latency.median);
        }
        if surroundings.is_elsewhere() {
            // The places there were before did not make it slower.
            return self.elsewhere.get_or_insert_default().judge(self.limit, window);
        }
        self.elsewhere = None;
        let payoff = self.payoff.judge(self.limit, window);
        if payoff == Verdict::Paid {
            self.baseline.prove(latency.median);
            self.probe.paid();
        }
        payoff
    }

    fn decide(&mut self, window: &Window, surroundings: Surroundings, payoff: Verdict) -> Proposal {
        let reading = Reading {
            limit: self.limit,
            window,
            baseline: self.baseline.latency(),
            is_starting: self.is_starting,
        };
        let proposal = self.algorithm.propose(&reading);
        if matches!(proposal.why, Why::Fixed | Why::Overloaded) {
            return proposal;
        }
        if window.is_unused(reading.places()) {
            return reading.hold(Why::Unused);
        }
        let proposal = self.held_to_objective(&reading, proposal);
        let proposal = match payoff {
            _ if surroundings.is_elsewhere() => {
                self.spent_elsewhere(&reading, proposal, surroundings, payoff)
            }
            Verdict::Futile(limit) if proposal.limit > limit => Proposal { limit, why: Why::Throughput },
            _ => self.probed(&reading, proposal),
        };
        let is_more = proposal.limit > reading.limit;
        match payoff {
            _ if !is_more => proposal,
            _ if surroundings.is_dependency_slow => reading.hold(Why::Dependency),
            _ if window.is_unproven() || is_in_vain(&reading) => reading.hold(Why::Unproven),
            Verdict::Resting => reading.hold(Why::Throughput),
            Verdict::Open | Verdict::Paid | Verdict::Futile(_) => proposal,
        }
    }

    /// The proposal while the time is spent elsewhere: never less than there was when that began, and more if all
    /// places are taken and the service has nothing to do.
    fn spent_elsewhere(
        &self,
        reading: &Reading<'_>,
        proposal: Proposal,
        surroundings: Surroundings,
        payoff: Verdict,
    ) -> Proposal {
        let window = reading.window;
        let is_wanting = window.max_in_flight >= reading.places();
        match payoff {
            Verdict::Futile(limit) => Proposal { limit, why: Why::Throughput },
            _ if proposal.limit > reading.limit => proposal,
            Verdict::Open | Verdict::Paid
                if surroundings.is_idle() && is_wanting && !self.is_late(window) && !window.is_unproven() =>
            {
                Proposal { limit: reading.limit * ELSEWHERE_GROWTH, why: Why::Dependency }
            }
            _ => reading.hold(Why::Dependency),
        }
    }

    /// The proposal, or a probe when the limit has rested for long and requests are slow, but not too slow.
    fn probed(&mut self, reading: &Reading<'_>, proposal: Proposal) -> Proposal {
        if !is_slow(reading).unwrap_or(false) || self.is_late(reading.window) || is_in_vain(reading) {
            return proposal;
        }
        let probe = self.probe.due(reading.limit);
        probe.map_or(proposal, |limit| Proposal { limit, why: Why::Probe })
    }

    /// The proposal, or less when the median is above the objective.
    fn held_to_objective(&self, reading: &Reading<'_>, proposal: Proposal) -> Proposal {
        if !self.is_late(reading.window) {
            return proposal;
        }
        let is_attainable = reading.baseline.is_none_or(|baseline| baseline <= self.objective.target());
        let limit = if is_attainable { reading.limit * OBJECTIVE_BACKOFF } else { reading.limit };
        if proposal.limit < limit { proposal } else { Proposal { limit, why: Why::Objective } }
    }

    fn is_late(&self, window: &Window) -> bool {
        window.latency.is_some_and(|latency| latency.median > self.objective.target())
    }

    fn within_bounds(&self, limit: f64) -> f64 {
        limit.clamp(f64::from(self.bounds.min()), f64::from(self.bounds.max()))
    }
}

/// Whether requests take longer than without load, if both are known.
fn is_slow(reading: &Reading<'_>) -> Option<bool> {
    let (latency, baseline) = reading.window.latency.zip(reading.baseline)?;
    Some(latency.median.as_secs_f64() > baseline.as_secs_f64() * SLOW)
}

/// Whether most callers had left before they were answered, and not because they would not wait at all.
fn is_in_vain(reading: &Reading<'_>) -> bool {
    reading.window.is_unheard() && is_slow(reading).unwrap_or(true)
}

#[cfg(test)]
mod tests;
