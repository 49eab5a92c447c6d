//! Our throttle, in front of a service that refuses everything.

use std::error::Error;
use std::time::Duration;

use tidegate_core::throttle::{Answer, Throttle, ThrottleRule, ThrottleTerms};
use tidegate_core::{Criticality, Moment, Roll};

use super::driven::Mechanism;
use super::now;
use crate::contender::Mode;

/// Asks whether a request may be sent. The other side has refused within the window, so every answer takes
/// the whole computation; only the roll tells who passes.
pub(crate) struct Throttled {
    throttle: Throttle,
    roll: Roll,
}

const LEVEL: Criticality = Criticality::Critical;

impl Throttled {
    pub(crate) fn new(mode: Mode) -> Result<Self, Box<dyn Error>> {
        // The ceiling is .95: nothing above passes for sure, and nothing at zero once there is any odds.
        let roll = Roll::new(match mode {
            Mode::Admitting => 0.99,
            Mode::Refusing => 0.0,
        })?;
        // Longer than a run, so that the refusal counts to its end and no probe passes on the way.
        let window = Duration::from_secs(600);
        let terms = ThrottleTerms { window, probe_every: window, ..ThrottleTerms::default() };
        let now = now();
        let throttle = Throttle::new(ThrottleRule::new(terms)?, now);
        for _ in 0..100 {
            // The first that the odds refuse passes as a probe, here and not during the run.
            let _ = throttle.admit(LEVEL, now, Roll::new(0.0)?);
            throttle.answered(LEVEL, now, Answer::Refused);
        }
        Ok(Self { throttle, roll })
    }
}

impl Mechanism for Throttled {
    #[inline]
    fn serve(&self, mut clock: impl FnMut() -> Moment) -> bool {
        self.throttle.admit(LEVEL, clock(), self.roll).is_admit()
    }
}
