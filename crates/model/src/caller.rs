//! How a caller behaves: when it attempts, and when it tries again.

use std::fmt;
use std::time::Duration;

use tidegate_core::retry::{Advice, Attempts};
use tidegate_core::{Criticality, Moment, Verdict, breaker};

use crate::chance::Chance;

/// What a caller hears of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It worked.
    Ok,
    /// It went wrong.
    Failed,
    /// The other side said no.
    Refused(Advice),
    /// Nothing came in time.
    TimedOut,
    /// The caller's own side said no; nothing was sent.
    NotSent,
}

/// What the caller's own limiters are asked about one attempt.
#[derive(Clone, Copy, Debug)]
pub struct Intent {
    /// How urgent it is.
    pub criticality: Criticality,
    /// How many attempts of the same request went before.
    pub tried: u32,
}

/// A caller's behaviour on one link.
pub trait Manners: fmt::Debug {
    /// May this attempt be sent? What is taken is given back with the answer.
    fn send(&mut self, now: Moment, intent: &Intent, dice: &mut Chance) -> Verdict<Pass>;

    /// An attempt that was sent ended so.
    fn answered(&mut self, now: Moment, pass: Pass, answer: Answer);

    /// Whether to try again after `answer`, and after which pause. `made` is what the core knows of the
    /// request's attempts.
    fn retry(
        &mut self,
        now: Moment,
        intent: &Intent,
        made: &mut Attempts,
        answer: Answer,
        dice: &mut Chance,
    ) -> Option<Duration>;

    /// What a service that gave up after `answer` tells its own caller.
    fn give_up(&self, answer: Answer) -> Answer {
        if answer == Answer::Ok { Answer::Ok } else { Answer::Failed }
    }

    /// How often its breaker has tripped, if it has one.
    fn trips(&self) -> u64 {
        0
    }
}

/// What a caller's limiters gave for one attempt.
#[derive(Debug)]
pub struct Pass {
    pub(crate) level: Criticality,
    pub(crate) breaker: Option<breaker::Pass>,
}

/// Tries a fixed number of times, whatever was said, after a fixed pause.
#[derive(Clone, Copy, Debug)]
pub struct Stubborn {
    /// How often in all.
    pub attempts: u32,
    /// How long in between.
    pub pause: Duration,
}

impl Stubborn {
    /// Tries this often, at once.
    #[must_use]
    pub const fn times(attempts: u32) -> Self {
        Self { attempts, pause: Duration::ZERO }
    }
}

impl Manners for Stubborn {
    fn send(&mut self, _: Moment, intent: &Intent, _: &mut Chance) -> Verdict<Pass> {
        Verdict::Admit(Pass { level: intent.criticality, breaker: None })
    }

    fn answered(&mut self, _: Moment, _: Pass, _: Answer) {}

    fn retry(
        &mut self,
        _: Moment,
        intent: &Intent,
        _: &mut Attempts,
        _: Answer,
        _: &mut Chance,
    ) -> Option<Duration> {
        (intent.tried < self.attempts).then_some(self.pause)
    }
}
