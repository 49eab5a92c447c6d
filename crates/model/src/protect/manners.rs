//! Manners of the core's parts: attempts and back-off, a budget, and if wanted a throttle and a breaker.

use std::time::Duration;

use tidegate_core::breaker::{self, Breaker, BreakerRule};
use tidegate_core::permit::Outcome;
use tidegate_core::retry::{
    Advice, Attempts, Backoff, BudgetRule, Failure, RetryBudget, RetryRule, RetryTerms,
};
use tidegate_core::throttle::{self, Throttle, ThrottleRule};
use tidegate_core::{Invalid, Moment, Verdict};

use crate::caller::{Answer, Intent, Manners, Pass};
use crate::chance::Chance;

/// A caller that asks the core before every attempt.
#[derive(Debug)]
pub(super) struct Careful {
    rule: RetryRule,
    budget: Option<RetryBudget>,
    throttle: Option<Throttle>,
    breaker: Option<Breaker>,
}

impl Careful {
    /// A caller who makes at most so many attempts, within its budget.
    pub(super) fn new(attempts: u32) -> Self {
        Self::made_of(attempts).expect("the sizes of scenarios are in their ranges")
    }

    fn made_of(attempts: u32) -> Result<Self, Invalid> {
        let backoff = Backoff::new(Duration::from_millis(10))?;
        Ok(Self {
            rule: RetryRule::new(RetryTerms { attempts, backoff, ..RetryTerms::default() })?,
            budget: Some(RetryBudget::new(BudgetRule::default(), Moment::ORIGIN)),
            throttle: None,
            breaker: None,
        })
    }

    pub(super) fn without_budget(self) -> Self {
        Self { budget: None, ..self }
    }

    pub(super) fn with_throttle(self) -> Self {
        Self { throttle: Some(Throttle::new(ThrottleRule::default(), Moment::ORIGIN)), ..self }
    }

    pub(super) fn with_breaker(self, rule: BreakerRule) -> Self {
        Self { breaker: Some(Breaker::new(rule, Moment::ORIGIN)), ..self }
    }
}

impl Manners for Careful {
    fn send(&mut self, now: Moment, intent: &Intent, dice: &mut Chance) -> Verdict<Pass> {
        if let Some(budget) = self.budget.as_ref().filter(|_| intent.tried == 0) {
            budget.request(now);
        }
        let level = intent.criticality;
        if let Some(Verdict::Refuse(refusal)) =
            self.throttle.as_ref().map(|throttle| throttle.admit(level, now, dice.roll()))
        {
            return Verdict::Refuse(refusal);
        }
        match self.breaker.as_mut().map(|breaker| breaker.admit(now, dice.roll())) {
            None => Verdict::Admit(Pass { level, breaker: None }),
            Some(verdict) => verdict.map(|pass| Pass { level, breaker: Some(pass) }),
        }
    }

    fn answered(&mut self, now: Moment, pass: Pass, answer: Answer) {
        let (said, outcome) = match answer {
            Answer::Ok => (throttle::Answer::Accepted, Outcome::Ok),
            Answer::Failed => (throttle::Answer::Accepted, Outcome::Failed),
            Answer::TimedOut => (throttle::Answer::Refused, Outcome::Failed),
            Answer::Refused(_) => (throttle::Answer::Refused, Outcome::Overloaded),
            Answer::NotSent => return,
        };
        if let Some(throttle) = &self.throttle {
            throttle.answered(pass.level, now, said);
        }
        let given: Option<breaker::Pass> = pass.breaker;
        if let Some((breaker, pass)) = self.breaker.as_mut().zip(given) {
            breaker.record(pass, now, outcome);
        }
    }

    fn retry(
        &mut self,
        now: Moment,
        _: &Intent,
        made: &mut Attempts,
        answer: Answer,
        dice: &mut Chance,
    ) -> Option<Duration> {
        let advice = match answer {
            Answer::Ok | Answer::NotSent => return None,
            Answer::Failed | Answer::TimedOut => Advice::None,
            Answer::Refused(advice) => advice,
        };
        let wait = self.rule.next(made, now, Failure::Transient(advice), dice.roll()).admitted()?;
        let is_affordable = self.budget.as_ref().is_none_or(|budget| budget.take(now).is_admit());
        is_affordable.then_some(wait)
    }

    fn give_up(&self, answer: Answer) -> Answer {
        match answer {
            Answer::Ok => Answer::Ok,
            Answer::Failed | Answer::TimedOut => Answer::Failed,
            // Whoever is above must not try what was tried already.
            Answer::Refused(_) | Answer::NotSent => Answer::Refused(Advice::Never),
        }
    }

    fn trips(&self) -> u64 {
        self.breaker.as_ref().map_or(0, Breaker::trips)
    }
}
