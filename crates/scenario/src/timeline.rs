//! Phases, one after another.
//!
//! A phase has one length in virtual time and may have another on real sockets, where minutes are dear. Whatever
//! refers to a phase by its name means all stretches of that name.
//!
//! ```text
//! { phase = "calm", length = "20s", real = "4s" }, { times = 9, phases = [on 2 s, off 2 s] }, after 15 s
//!
//! virtual:  calm 0..20, on 20..22, off 22..24, on 24..26, …, after 56..71
//! real:     calm 0..4,  on 4..6,   off 6..8,   …
//! ```

use std::ops::Range;
use std::time::Duration;

/// By which clock a scenario is played.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// The model's: an hour takes a second.
    Virtual,
    /// Everybody's.
    Real,
}

/// The phases of a scenario.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Timeline(pub(crate) Vec<Part>);

/// A phase, or several that are repeated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Phase { name: String, length: Duration, real: Duration },
    Repeated { times: u32, real: u32, parts: Vec<Self> },
}

/// One phase at its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// The phase's name.
    pub phase: String,
    /// From when until when it is, counted from the start.
    pub time: Range<Duration>,
}

impl Timeline {
    /// All phases in order.
    #[must_use]
    pub fn stretches(&self, pace: Pace) -> Vec<Stretch> {
        let mut stretches = Vec::new();
        lay_out(&self.0, pace, &mut stretches);
        stretches
    }

    /// When each stretch of a phase is.
    #[must_use]
    pub fn during(&self, phase: &str, pace: Pace) -> Vec<Range<Duration>> {
        let named = self.stretches(pace).into_iter().filter(|stretch| stretch.phase == phase);
        named.map(|stretch| stretch.time).collect()
    }

    /// How long everything takes.
    #[must_use]
    pub fn length(&self, pace: Pace) -> Duration {
        self.stretches(pace).last().map_or(Duration::ZERO, |stretch| stretch.time.end)
    }

    /// Whether there is a phase of this name.
    #[must_use]
    pub fn has(&self, phase: &str) -> bool {
        self.names().contains(&phase)
    }

    /// The names of the phases.
    #[must_use]
    pub fn names(&self) -> Vec<&str> {
        fn collect<'a>(parts: &'a [Part], names: &mut Vec<&'a str>) {
            for part in parts {
                match part {
                    Part::Phase { name, .. } => names.push(name),
                    Part::Repeated { parts, .. } => collect(parts, names),
                }
            }
        }
        let mut names = Vec::new();
        collect(&self.0, &mut names);
        names
    }
}

fn lay_out(parts: &[Part], pace: Pace, stretches: &mut Vec<Stretch>) {
    for part in parts {
        match part {
            Part::Phase { name, length, real } => {
                let begins = stretches.last().map_or(Duration::ZERO, |last| last.time.end);
                let length = match pace {
                    Pace::Virtual => *length,
                    Pace::Real => *real,
                };
                stretches.push(Stretch { phase: name.clone(), time: begins..begins + length });
            }
            Part::Repeated { times, real, parts } => {
                let times = match pace {
                    Pace::Virtual => *times,
                    Pace::Real => *real,
                };
                (0..times).for_each(|_| lay_out(parts, pace, stretches));
            }
        }
    }
}
