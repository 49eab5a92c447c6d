//! The failsafe crate: a breaker behind a mutex.

use std::error::Error;
use std::iter::Repeat;
use std::time::Duration;

use failsafe::failure_policy::{
    ConsecutiveFailures, OrElse, SuccessRateOverTimeWindow, consecutive_failures,
    success_rate_over_time_window,
};
use failsafe::{Config, FailurePolicy, StateMachine};

use super::HOUR;
use crate::contender::{Contender, Slice, timed};
use crate::start::Start;

/// The head of its column.
pub(crate) const NAME: &str = "failsafe";

type Waits = Repeat<Duration>;
type Policy = OrElse<SuccessRateOverTimeWindow<Waits>, ConsecutiveFailures<Waits>>;
type Breaker = StateMachine<Policy, ()>;

/// `is_call_permitted` alone.
pub(crate) struct Check(Breaker);

/// `is_call_permitted`, then `on_success`.
pub(crate) struct Call(Breaker);

impl Check {
    pub(crate) fn closed() -> Self {
        Self(closed())
    }

    /// One that opened just now, for an hour.
    pub(crate) fn open() -> Result<Self, Box<dyn Error>> {
        let breaker = closed();
        (0..1_000).for_each(|_| breaker.on_error());
        if breaker.is_call_permitted() {
            return Err("failures did not open failsafe's breaker".into());
        }
        Ok(Self(breaker))
    }
}

impl Call {
    pub(crate) fn closed() -> Self {
        Self(closed())
    }
}

impl Contender for Check {
    fn name(&self) -> &'static str {
        NAME
    }

    fn shared(&self, ids: &[u64], start: &Start) -> Slice {
        timed(ids, start, |_| self.0.is_call_permitted())
    }
}

impl Contender for Call {
    fn name(&self) -> &'static str {
        NAME
    }

    fn shared(&self, ids: &[u64], start: &Start) -> Slice {
        timed(ids, start, |_| {
            let is_permitted = self.0.is_call_permitted();
            if is_permitted {
                self.0.on_success();
            }
            is_permitted
        })
    }
}

/// Its two policies in one, as it ships them; the window and the share are those of ours.
fn closed() -> Breaker {
    let waits = std::iter::repeat(HOUR);
    let share = success_rate_over_time_window(0.5, 50, Duration::from_secs(10), waits.clone());
    Config::new().failure_policy(share.or_else(consecutive_failures(5, waits))).build()
}
