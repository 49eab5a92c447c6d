//! Shed rules: refusing by criticality while a signal is above its target, slowly.
//!
//! A rule has an [edge](tidegate_core::shed::Edge), below which criticality and cohort are refused, and a
//! [ramp](SlowRamp) that moves it. With every request the edge is read, one load; every half a second a driver tells
//! what it measured, and the ramps move ([`Gate::steer`]).
//!
//! A ramp is told how busy something is: it rises above 0.8, falls below 0.7 and rests in between. So each signal is
//! brought to that scale, and the busiest counts. At its target a signal stands at 0.8; a share stands at 1 when it is
//! all there is, and anything else at twice its target:
//!
//! | cpu, target 85 % | queue delay, target 5 ms | stands at | the ramp |
//! |---|---|---|---|
//! | 42.5 % | 2.5 ms | 0.4 | falls, at 0.43 of its pace |
//! | 80 % | 4.7 ms | 0.75 | rests |
//! | 92.5 % | 7.5 ms | 0.9 | rises, at half of its pace |
//! | 100 % | 10 ms | 1 | rises: a level goes in the time the rule says |
//!
//! Of what upstreams are, a rule hears only from those behind the routes that name it: one that is slow stands in nobody
//! else's way. Of several, the busiest counts.
//!
//! A signal that nobody measures presses nobody: what is not known must not keep requests out for ever. Cohorts are
//! made from the caller's identity, else from its address, and from the hour, so that those who pass, pass at every
//! gateway, and nobody is unlucky for long.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tidegate_core::shed::{Cohort, Edge, SharedEdge, SlowRamp};
use tidegate_core::{Criticality, Moment, Ratio};

use super::plan::Measure;
use super::{Gate, Now};
use crate::policy::{Limit, Mode, Shed, SignalName, SignalUnit};

/// Where a signal at its target stands on the ramp's scale: the upper end of what the ramp rests in.
const AT_TARGET: f64 = 0.8;

/// When those refused may try again. A ramp takes a minute or two, so that sooner is useless; who is refused for
/// longer than this learns it from the next refusal.
const RETRY: Duration = Duration::from_secs(2);

/// What a driver has measured.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Readings {
    /// Signals in their units: shares from 0 to 1, seconds. One that is not known is not among them.
    pub signals: Vec<(SignalName, f64)>,
    /// How the upstreams are.
    pub upstreams: Vec<UpstreamReadings>,
}

/// What a driver has measured of one upstream.
#[derive(Clone, Debug, PartialEq)]
pub struct UpstreamReadings {
    /// Its name.
    pub upstream: Arc<str>,
    /// How many requests it may have in flight at this moment.
    pub limit: u32,
    /// Signals in their units; one that is not known is not among them.
    pub signals: Vec<(SignalName, f64)>,
}

/// What one shed rule does at a moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Shedding {
    /// The rule.
    pub rule: String,
    /// Its mode.
    pub mode: Mode,
    /// Below which criticality and cohort requests are refused; in shadow, would be.
    pub edge: Edge,
    /// Its signals, in the order of the policy.
    pub signals: Vec<SignalReading>,
}

/// One signal of a shed rule.
#[derive(Clone, Debug, PartialEq)]
pub struct SignalReading {
    /// The signal.
    pub signal: SignalName,
    /// What was told last, in its unit; none when it is not known.
    pub value: Option<f64>,
    /// Above what it presses.
    pub target: f64,
}

impl Shedding {
    /// Whether anybody is refused.
    #[must_use]
    pub fn is_shedding(&self) -> bool {
        self.mode == Mode::Enforce && self.edge != Edge::OPEN
    }

    /// The share of each level's callers below the edge, in the order of [`Criticality::ALL`].
    #[must_use]
    pub fn ratios(&self) -> [Ratio; 4] {
        Criticality::ALL.map(|level| self.edge.refused(level))
    }

    /// The signal that presses hardest; none when none is known.
    #[must_use]
    pub fn hardest(&self) -> Option<&SignalReading> {
        hardest(&self.signals)
    }
}

impl SignalReading {
    /// Where it stands on the ramp's scale: 0.8 at its target.
    fn standing(&self) -> f64 {
        self.value.map_or(0.0, |value| standing(self.signal.unit(), value, self.target))
    }
}

pub(crate) fn hardest(signals: &[SignalReading]) -> Option<&SignalReading> {
    let known = signals.iter().filter(|signal| signal.value.is_some());
    known.reduce(|a, b| if b.standing() > a.standing() { b } else { a })
}

/// The edge of one shed rule and what moves it. It outlives policies.
#[derive(Debug, Default)]
pub(crate) struct Shedder {
    pub(crate) edge: SharedEdge,
    ramping: Mutex<Ramping>,
}

#[derive(Debug, Default)]
struct Ramping {
    ramp: SlowRamp,
    /// The time for a level that the ramp was made with.
    level: Duration,
    signals: Vec<SignalReading>,
}

impl Shedder {
    /// Moves the edge by what was measured.
    fn steer(&self, now: Moment, spec: &Shed, heard: &[&(SignalName, f64)]) {
        let mut ramping = self.ramping();
        ramping.follow(spec.ramp, self.edge.edge());
        ramping.signals = signals(spec, heard);
        let busy = ramping.signals.iter().map(SignalReading::standing).fold(0.0, f64::max);
        let most = highest(spec);
        let mut edge = ramping.ramp.tell(now, Ratio::new(busy).unwrap_or(Ratio::ONE));
        if edge > most {
            // What may not be shed is not filled up either, or restoring would begin late.
            (edge, ramping.ramp) = (most, ramping.ramp.resumed(most));
        }
        self.edge.publish(edge, RETRY);
    }

    /// Lets everybody pass, and begins anew.
    pub(crate) fn rest(&self) {
        *self.ramping() = Ramping::default();
        self.edge.publish(Edge::OPEN, RETRY);
    }

    /// The signals as they were told last.
    pub(crate) fn signals(&self, spec: &Shed) -> Vec<SignalReading> {
        let told = &self.ramping().signals;
        let value = |signal: &SignalName| told.iter().find(|told| told.signal == *signal)?.value;
        let reading = |(signal, target): &(SignalName, f64)| SignalReading {
            signal: signal.clone(),
            value: value(signal),
            target: *target,
        };
        spec.targets.iter().map(reading).collect()
    }

    fn ramping(&self) -> MutexGuard<'_, Ramping> {
        self.ramping.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ramping {
    /// Goes on with other times, where the policy has changed them.
    fn follow(&mut self, level: Duration, edge: Edge) {
        if self.level == level {
            return;
        }
        // The original's 28 s of 120 s, and two ticks at least, since a pause counts for no more than that.
        let head_start = (level * 7 / 30).max(Duration::from_secs(1).min(level));
        let ramp = SlowRamp::default().with_times(head_start, level).unwrap_or_default();
        (self.ramp, self.level) = (ramp.resumed(edge), level);
    }
}

/// The edge at which everything is refused that may be.
fn highest(spec: &Shed) -> Edge {
    let ranks = spec.order.len().saturating_mul(Cohort::COUNT.into());
    u16::try_from(ranks).ok().and_then(|ranks| Edge::new(ranks).ok()).unwrap_or(Edge::SHUT)
}

fn signals(spec: &Shed, heard: &[&(SignalName, f64)]) -> Vec<SignalReading> {
    let greatest = |signal: &SignalName| {
        let values = heard.iter().filter(|(told, _)| told == signal).map(|(_, value)| *value);
        values.max_by(f64::total_cmp)
    };
    let reading = |(signal, target): &(SignalName, f64)| SignalReading {
        signal: signal.clone(),
        value: greatest(signal),
        target: *target,
    };
    spec.targets.iter().map(reading).collect()
}

/// Where a signal stands on the ramp's scale, from 0 to 1.
fn standing(unit: SignalUnit, value: f64, target: f64) -> f64 {
    let full = match unit {
        SignalUnit::Share if target < 1.0 => 1.0,
        SignalUnit::Share | SignalUnit::Time | SignalUnit::Number => 2.0 * target,
    };
    let standing = if value <= target {
        AT_TARGET * value / target
    } else {
        AT_TARGET + (1.0 - AT_TARGET) * (value - target) / (full - target)
    };
    // What is no number, of a target of zero say, is as if nobody had measured.
    if standing.is_nan() { 0.0 } else { standing.clamp(0.0, 1.0) }
}

impl Gate {
    /// Takes in what was measured: moves the shed rules' edges, and the reserves that follow an upstream's limit. To
    /// be called every half a second. A rule that is disabled lets everybody pass and begins anew.
    pub fn steer(&self, now: Now, readings: &Readings) {
        let places: Vec<_> =
            readings.upstreams.iter().map(|told| (Arc::clone(&told.upstream), told.limit)).collect();
        places.clone_into(&mut self.told.lock().unwrap_or_else(PoisonError::into_inner));
        let current = self.current.read();
        for ((index, ruled), limits) in (0..).zip(&current.plan.rules).zip(&current.limits.rules) {
            match (&limits.default.measure, &ruled.rule.limit) {
                (Measure::Reserved(reserved), _) => reserved.follow(&places),
                (Measure::Shed(shedder), Limit::Shed(spec)) => match current.mode(index, now.moment) {
                    Mode::Disabled => shedder.rest(),
                    Mode::Enforce | Mode::Shadow => {
                        let is_behind =
                            |told: &&UpstreamReadings| current.plan.is_behind(&told.upstream, index);
                        let behind = readings.upstreams.iter().filter(is_behind);
                        let heard = readings.signals.iter().chain(behind.flat_map(|told| &told.signals));
                        shedder.steer(now.moment, spec, &heard.collect::<Vec<_>>());
                    }
                },
                (Measure::Rate(_) | Measure::Places(..) | Measure::Shed(_), _) => {}
            }
        }
    }

    /// What each shed rule does, in the order of the policy.
    #[must_use]
    pub fn shedding(&self, now: Now) -> Vec<Shedding> {
        let current = self.current.read();
        let rules = (0..).zip(&current.plan.rules).zip(&current.limits.rules);
        let shedding = rules.filter_map(|((index, ruled), limits)| {
            let (Measure::Shed(shedder), Limit::Shed(spec)) = (&limits.default.measure, &ruled.rule.limit)
            else {
                return None;
            };
            let mode = current.mode(index, now.moment);
            let edge = if mode == Mode::Disabled { Edge::OPEN } else { shedder.edge.edge() };
            Some(Shedding { rule: ruled.rule.name.clone(), mode, edge, signals: shedder.signals(spec) })
        });
        shedding.collect()
    }

    /// Lets everybody pass a shed rule that was disabled, so that it begins anew when it is enabled.
    pub(super) fn rest(&self, rule: &str) {
        let current = self.current.read();
        let rules = current.plan.rules.iter().zip(&current.limits.rules);
        for (_, limits) in rules.filter(|(ruled, _)| ruled.rule.name == rule) {
            if let Measure::Shed(shedder) = &limits.default.measure {
                shedder.rest();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shed(ramp: u64, levels: usize) -> Shed {
        Shed {
            targets: vec![(SignalName::Cpu, 0.85), (SignalName::QueueDelay, 0.005)],
            order: Criticality::ALL[..levels].to_vec(),
            ramp: Duration::from_secs(ramp),
        }
    }

    fn at(second: u64) -> Moment {
        Moment::ORIGIN.plus(Duration::from_secs(second))
    }

    fn cpu(value: f64) -> Readings {
        Readings { signals: vec![(SignalName::Cpu, value)], ..Readings::default() }
    }

    /// The edge after each of so many seconds.
    fn edges(shedder: &Shedder, spec: &Shed, seconds: std::ops::Range<u64>, readings: &Readings) -> Vec<u16> {
        let told = seconds.map(|second| {
            shedder.steer(at(second), spec, &readings.signals.iter().collect::<Vec<_>>());
            shedder.edge.edge().ranks()
        });
        told.collect()
    }

    #[test]
    fn signals_stand_as_in_the_example() {
        for (cpu, delay, expected) in [
            (0.425, 0.0025, 0.4),
            (0.85, 0.005, 0.8),
            (0.925, 0.0075, 0.9),
            (1.0, 0.01, 1.0),
            (1.7, 1.0, 1.0),
        ] {
            let stands = [standing(SignalUnit::Share, cpu, 0.85), standing(SignalUnit::Time, delay, 0.005)];
            assert!(stands.iter().all(|stands| (stands - expected).abs() < 1e-9), "{stands:?} {expected}");
        }
        for (value, target) in [(f64::NAN, 1.0), (0.0, 0.0), (-1.0, 1.0)] {
            assert!(standing(SignalUnit::Number, value, target).abs() < 1e-9, "{value} {target}");
        }
        assert!((standing(SignalUnit::Number, f64::INFINITY, 3.0) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn the_signal_above_its_target_counts_whatever_the_others_say() {
        let (shedder, spec) = (Shedder::default(), shed(120, 3));
        let both = [(SignalName::Cpu, 0.1), (SignalName::QueueDelay, 0.01)].to_vec();
        let edges = edges(&shedder, &spec, 0..150, &Readings { signals: both, ..Readings::default() });
        assert_eq!(
            (edges[28], edges[29], edges[148]),
            (0, 1, 128),
            "as the ramp alone with all workers busy"
        );
        let signals = shedder.signals(&spec);
        assert_eq!(hardest(&signals).unwrap().signal, SignalName::QueueDelay);
    }

    #[test]
    fn what_may_not_be_shed_is_not_and_restoring_begins_at_once() {
        let (shedder, spec) = (Shedder::default(), shed(120, 1));
        let up = edges(&shedder, &spec, 0..400, &cpu(1.0));
        assert_eq!(up.last(), Some(&128));
        let down = edges(&shedder, &spec, 400..521, &cpu(0.0));
        assert!(down[1] < 128 && down.is_sorted_by(|a, b| a >= b), "{down:?}");
        assert_eq!(down[120], 0, "it restores as slowly as it sheds");
    }

    #[test]
    fn a_changed_ramp_goes_on_from_where_it_is() {
        let shedder = Shedder::default();
        let edge = *edges(&shedder, &shed(120, 3), 0..89, &cpu(1.0)).last().unwrap();
        assert_eq!(edge, 64);
        let faster = edges(&shedder, &shed(12, 3), 89..92, &cpu(1.0));
        assert!(faster[0] == 64 && faster[1] > 64 + 9, "{faster:?}");
        let fewer = edges(&shedder, &shed(12, 1), 92..200, &cpu(1.0));
        assert_eq!(fewer.last(), Some(&128));
    }

    #[test]
    fn what_nobody_measures_presses_nobody() {
        let (shedder, spec) = (Shedder::default(), shed(120, 3));
        let edge = *edges(&shedder, &spec, 0..89, &cpu(1.0)).last().unwrap();
        let restored = edges(&shedder, &spec, 89..200, &Readings::default());
        assert!(edge == 64 && restored.last() == Some(&0), "{edge} {restored:?}");
        assert_eq!(hardest(&shedder.signals(&spec)), None);
    }
}
