//! Signals of load: what a service knows of its own trouble, against what each criticality may bear.
//!
//! A signal is a reading with its own unit: the processor's busy share, the share of memory in use, tasks
//! ready to run per processor, seconds in a queue, or whatever the operator measures. To decide anything
//! they have to be comparable, so each signal comes with four [`Thresholds`], one for each criticality, and
//! what counts is its *pressure*: reading ÷ threshold. From 1 on, that level is too much for the service.
//!
//! Thresholds rise with criticality, so pressure falls with it, and where a level is under pressure, all
//! lower ones are. Two signals, smoothed to 0.72 and 12 ms:
//!
//! | criticality    | processor: threshold, pressure | queue delay: threshold, pressure | together |
//! |----------------|--------------------------------|----------------------------------|----------|
//! | sheddable      | 0.70, 1.03                     | 10 ms, 1.20                      | **1.20** |
//! | sheddable_plus | 0.80, 0.90                     | 20 ms, 0.60                      | 0.90     |
//! | critical       | 0.90, 0.80                     | 40 ms, 0.30                      | 0.80     |
//! | critical_plus  | 0.96, 0.75                     | 80 ms, 0.15                      | 0.75     |
//!
//! Several signals count as their **maximum**. A service is as overloaded as the resource it has least of:
//! with a mean, idle memory would excuse a full processor (1.10 and 0.33 make 0.72: all is well). With a
//! sum, two signals that measure the same thing would count it twice.
//!
//! **Unknown is not overloaded.** A sampler that hangs leaves its last reading behind, and a reading from
//! before an incident sheds traffic long after it, or lets all through long into the next. So a reading
//! ages out after `fresh_for` and then says nothing; when no signal says anything, nor do all together.
//! Nothing is shed because nothing is known.
//!
//! Choose signals that follow what is admitted within seconds. The load average of a host takes minutes and
//! counts its neighbours; in a container the processor's share is that of the quota, not of the host. And
//! a reading that stops at its bound (a processor cannot be busier than 1) should have its threshold well
//! below it, or the pressure never shows how much is too much.

mod smoothed;

use std::time::Duration;

pub use smoothed::Smoothed;

use crate::units::{Criticality, Invalid, Moment};

/// What a signal measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Source {
    /// The busy share of the processors this process may use.
    Processor,
    /// The share of the memory this process may use.
    Memory,
    /// Tasks ready to run or running, for each processor.
    Executor,
    /// Seconds that requests wait before they are served.
    QueueDelay,
    /// A signal of the operator's, by the number its policy gave it.
    Own(u8),
}

/// The reading at which each criticality is too much; rising with it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Thresholds([f64; 4]);

impl Thresholds {
    /// One threshold for each of [`Criticality::ALL`], in the signal's unit.
    ///
    /// # Errors
    /// When one is not a number above 0, or below that of a lower criticality: the more critical would be
    /// shed first.
    pub fn new(thresholds: [f64; 4]) -> Result<Self, Invalid> {
        for threshold in thresholds {
            if !(threshold.is_finite() && threshold > 0.0) {
                return Err(Invalid::new("threshold", threshold, "a number above 0"));
            }
        }
        match thresholds.windows(2).find(|pair| pair[1] < pair[0]) {
            Some(pair) => {
                Err(Invalid::new("threshold", pair[1], "at least the one of the next lower criticality"))
            }
            None => Ok(Self(thresholds)),
        }
    }

    /// A reading as a share of what this criticality may bear.
    #[must_use]
    pub fn pressure(&self, reading: f64, criticality: Criticality) -> f64 {
        reading.max(0.0) / self.0[criticality.index()]
    }
}

/// One signal: what it measures, what each criticality may bear, and its recent past.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Signal {
    source: Source,
    thresholds: Thresholds,
    smoothed: Smoothed,
    fresh_for: Duration,
}

impl Signal {
    /// A signal averaged over `constant`, which says nothing once its last sample is older than `fresh_for`.
    ///
    /// # Errors
    /// When the constant is nothing, or a sample would be stale before it counts for two thirds.
    pub fn new(
        source: Source,
        thresholds: Thresholds,
        constant: Duration,
        fresh_for: Duration,
    ) -> Result<Self, Invalid> {
        if fresh_for < constant {
            return Err(Invalid::new("fresh_for", format_args!("{fresh_for:?}"), "at least the constant"));
        }
        Ok(Self { source, thresholds, smoothed: Smoothed::new(constant)?, fresh_for })
    }

    fn pressure(&self, criticality: Criticality, now: Moment) -> Option<f64> {
        let reading = self.smoothed.value_within(self.fresh_for, now)?;
        Some(self.thresholds.pressure(reading, criticality))
    }
}

/// How hard a level is pressed, and by what.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pressure {
    /// From 1 on, too much.
    pub value: f64,
    /// The signal that presses hardest.
    pub source: Source,
}

/// All signals of a service.
///
/// ```
/// use std::time::Duration;
/// use tidegate_core::signal::{Signal, Signals, Source, Thresholds};
/// use tidegate_core::{Criticality, Moment};
///
/// let thresholds = Thresholds::new([0.70, 0.80, 0.90, 0.96])?;
/// let processor = Signal::new(Source::Processor, thresholds, Duration::from_secs(1), Duration::from_secs(5))?;
/// let mut signals = Signals::new([processor])?;
/// let now = Moment::ORIGIN;
/// assert!(signals.pressure(Criticality::Sheddable, now).is_none());
/// signals.tell(Source::Processor, now, 0.84);
/// assert!(signals.pressure(Criticality::Sheddable, now).is_some_and(|pressure| pressure.value > 1.0));
/// assert!(signals.pressure(Criticality::Critical, now).is_some_and(|pressure| pressure.value < 1.0));
/// # Ok::<(), tidegate_core::Invalid>(())
/// ```
#[derive(Clone, Debug)]
pub struct Signals {
    signals: Vec<Signal>,
}

/// A person can say what each of so many does.
const MOST_SIGNALS: usize = 16;

impl Signals {
    /// These signals, none of which has been told anything.
    ///
    /// # Errors
    /// When two measure the same, or there are more than 16.
    pub fn new(signals: impl IntoIterator<Item = Signal>) -> Result<Self, Invalid> {
        let mut known = Vec::<Signal>::new();
        for signal in signals {
            if known.iter().any(|other| other.source == signal.source) {
                return Err(Invalid::new("signal", format_args!("{:?}", signal.source), "named once"));
            }
            known.push(signal);
        }
        if known.len() > MOST_SIGNALS {
            return Err(Invalid::new("signals", known.len(), "at most 16"));
        }
        Ok(Self { signals: known })
    }

    /// Takes a sample. One of a source that nobody asked for, or that is no number, is left out.
    pub fn tell(&mut self, source: Source, now: Moment, sample: f64) {
        if let Some(signal) = self.signals.iter_mut().find(|signal| signal.source == source) {
            signal.smoothed.tell(now, sample);
        }
    }

    /// The greatest pressure on a level, if anything is known.
    #[must_use]
    pub fn pressure(&self, criticality: Criticality, now: Moment) -> Option<Pressure> {
        let known = self.signals.iter().filter_map(|signal| {
            let value = signal.pressure(criticality, now)?;
            Some(Pressure { value, source: signal.source })
        });
        known.max_by(|one, other| one.value.total_cmp(&other.value))
    }

    /// The greatest pressure on each of [`Criticality::ALL`].
    #[must_use]
    pub fn pressures(&self, now: Moment) -> [Option<f64>; 4] {
        Criticality::ALL.map(|level| self.pressure(level, now).map(|pressure| pressure.value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn at(seconds: u64) -> Moment {
        Moment::ORIGIN.plus(Duration::from_secs(seconds))
    }

    fn signal(source: Source, thresholds: [f64; 4]) -> Signal {
        Signal::new(source, Thresholds::new(thresholds).unwrap(), SECOND, 5 * SECOND).unwrap()
    }

    fn both() -> Signals {
        let processor = signal(Source::Processor, [0.70, 0.80, 0.90, 0.96]);
        let delay = signal(Source::QueueDelay, [0.010, 0.020, 0.040, 0.080]);
        Signals::new([processor, delay]).unwrap()
    }

    fn rounded(signals: &Signals, now: Moment) -> Vec<Option<f64>> {
        let round = |value: f64| (value * 100.0).round() / 100.0;
        signals.pressures(now).into_iter().map(|pressure| pressure.map(round)).collect()
    }

    #[test]
    fn pressures_are_as_in_the_example() {
        let mut signals = both();
        signals.tell(Source::Processor, at(0), 0.72);
        signals.tell(Source::QueueDelay, at(0), 0.012);
        assert_eq!(rounded(&signals, at(0)), [1.20, 0.90, 0.80, 0.75].map(Some));
        let source = |level| signals.pressure(level, at(0)).unwrap().source;
        assert_eq!(source(Criticality::Sheddable), Source::QueueDelay);
        assert_eq!(source(Criticality::Critical), Source::Processor);
    }

    #[test]
    fn a_stale_signal_says_nothing_and_nothing_known_is_no_pressure() {
        let mut signals = both();
        assert_eq!(signals.pressures(at(0)), [None; 4]);
        signals.tell(Source::QueueDelay, at(0), 9.0);
        signals.tell(Source::Processor, at(3), 0.48);
        assert_eq!(rounded(&signals, at(5))[3], Some(112.5));
        assert_eq!(rounded(&signals, at(6))[3], Some(0.5));
        assert_eq!(signals.pressures(at(9)), [None; 4]);
        signals.tell(Source::Own(3), at(9), 9.0);
        assert_eq!(signals.pressures(at(9)), [None; 4]);
    }

    #[test]
    fn a_reading_below_nothing_is_no_pressure() {
        let mut signals = both();
        signals.tell(Source::Processor, at(0), -3.0);
        assert_eq!(rounded(&signals, at(0)), [Some(0.0); 4]);
    }

    #[test]
    fn contradictory_settings_are_refused() {
        assert_eq!(Thresholds::new([0.7, 0.8, 0.79, 0.9]).unwrap_err().value, "0.79");
        for threshold in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(Thresholds::new([threshold, 1.0, 1.0, 1.0]).unwrap_err().field, "threshold");
        }
        let thresholds = Thresholds::new([1.0; 4]).unwrap();
        let stale = Signal::new(Source::Memory, thresholds, 2 * SECOND, SECOND);
        assert_eq!(stale.unwrap_err().field, "fresh_for");
        let memory = signal(Source::Memory, [1.0; 4]);
        assert_eq!(Signals::new([memory, memory]).unwrap_err().field, "signal");
        let many = (0..17).map(|number| signal(Source::Own(number), [1.0; 4]));
        assert_eq!(Signals::new(many).unwrap_err().field, "signals");
    }
}
