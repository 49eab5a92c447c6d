//! Our breaker, as threads share it.

use std::error::Error;

use tidegate_core::breaker::{BreakerRule, BreakerTerms, OpenTime, SharedBreaker, State};
use tidegate_core::permit::Outcome;
use tidegate_core::{Invalid, Moment, Roll};

use super::driven::Mechanism;
use super::now;
use crate::contenders::HOUR;

/// Asks for an attempt and brings no result.
pub(crate) struct Check(Asked);

/// Asks for an attempt and tells that it went well.
pub(crate) struct Call(Asked);

struct Asked {
    breaker: SharedBreaker,
    roll: Roll,
}

impl Check {
    pub(crate) fn closed() -> Result<Self, Invalid> {
        Asked::closed().map(Self)
    }

    /// One that opened just now, for an hour.
    pub(crate) fn open() -> Result<Self, Box<dyn Error>> {
        let asked = Asked::closed()?;
        let now = now();
        while let Some(pass) = asked.breaker.admit(now, asked.roll).admitted() {
            asked.breaker.record(pass, now, Outcome::Failed);
        }
        if asked.breaker.state() != State::Open {
            return Err("failures did not open our breaker".into());
        }
        Ok(Self(asked))
    }
}

impl Call {
    pub(crate) fn closed() -> Result<Self, Invalid> {
        Asked::closed().map(Self)
    }
}

impl Asked {
    fn closed() -> Result<Self, Invalid> {
        let terms = BreakerTerms::default();
        let open = OpenTime { first: HOUR, longest: HOUR, ..terms.open };
        let rule = BreakerRule::new(BreakerTerms { open, ..terms })?;
        Ok(Self { breaker: SharedBreaker::new(rule, now()), roll: Roll::new(0.5)? })
    }
}

impl Mechanism for Check {
    #[inline]
    fn serve(&self, mut clock: impl FnMut() -> Moment) -> bool {
        self.0.breaker.admit(clock(), self.0.roll).is_admit()
    }
}

impl Mechanism for Call {
    #[inline]
    fn serve(&self, mut clock: impl FnMut() -> Moment) -> bool {
        let pass = self.0.breaker.admit(clock(), self.0.roll).admitted();
        pass.map(|pass| self.0.breaker.record(pass, clock(), Outcome::Ok)).is_some()
    }
}
