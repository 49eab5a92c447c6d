//! One request over several limiters: charged by all of them or by none.
//!
//! A request may meet a quota of its caller, one of its route and one of the whole service. If the third
//! refuses after the first two were charged, the caller has paid for nothing. Locking all of them for
//! every request would make them one big lock. So we ask first and undo if we must:
//!
//! 1. *Peek* at all. If any refuses, nothing is charged, and the answer is the refusal with the longest
//!    way back: coming again earlier would only meet that one.
//! 2. *Charge* in order. Another thread may have been faster since step 1; whoever is then refused
//!    *refunds* what this request was charged so far, exactly.
//!
//! | limiter          | left before | peek | charge | left after |
//! |------------------|-------------|------|--------|------------|
//! | caller, 10 a min | 4           | ok   |        | 4          |
//! | route, 50 a sec  | 0           | no, 20 ms |   | 0          |
//! | service, 1000 a s | 0          | no, 1 ms  |   | 0          |
//!
//! The answer: refused by the second, come again in 20 ms. Between the charge and the refund of step 2
//! another request can be refused that would just have fitted; none can pass that should not.

use std::time::Duration;

use crate::units::Cost;
use crate::verdict::{Charge, Refusal, Verdict};

/// One of several limiters that a request meets: a shell or a table, with rule, key and moment chosen.
pub trait Limiter {
    /// What [`take`](Self::take) would answer.
    fn peek(&self, cost: Cost) -> Verdict<Duration>;
    /// Takes `cost` if it fits.
    fn take(&self, cost: Cost) -> Verdict<Charge>;
    /// Gives a charge back.
    fn refund(&self, charge: &mut Charge);
}

/// A limiter made of its three answers.
pub(crate) struct Bound<P, T, R> {
    pub(crate) peek: P,
    pub(crate) take: T,
    pub(crate) refund: R,
}

impl<P, T, R> Limiter for Bound<P, T, R>
where
    P: Fn(Cost) -> Verdict<Duration>,
    T: Fn(Cost) -> Verdict<Charge>,
    R: Fn(&mut Charge),
{
    fn peek(&self, cost: Cost) -> Verdict<Duration> {
        (self.peek)(cost)
    }

    fn take(&self, cost: Cost) -> Verdict<Charge> {
        (self.take)(cost)
    }

    fn refund(&self, charge: &mut Charge) {
        (self.refund)(charge);
    }
}

/// What a request asks of one limiter, and what it was charged there once it is admitted.
pub struct Ask<'a> {
    limiter: &'a dyn Limiter,
    cost: Cost,
    charge: Option<Charge>,
}

impl std::fmt::Debug for Ask<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ask").field("cost", &self.cost).field("charge", &self.charge).finish_non_exhaustive()
    }
}

impl<'a> Ask<'a> {
    /// Asks `limiter` for `cost`.
    #[must_use]
    pub fn new(limiter: &'a dyn Limiter, cost: Cost) -> Self {
        Self { limiter, cost, charge: None }
    }

    /// The charge to settle or refund later, once the request has been admitted.
    pub fn charge(&mut self) -> Option<&mut Charge> {
        self.charge.as_mut()
    }

    fn give_back(&mut self) {
        if let Some(mut charge) = self.charge.take() {
            self.limiter.refund(&mut charge);
        }
    }
}

/// The answer of several limiters together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "an unread verdict lets everything through"]
pub enum Joint {
    /// All were charged. The request waits as long as the slowest of them asks.
    Admit {
        /// The longest wait.
        wait: Duration,
    },
    /// None was charged.
    Refuse {
        /// The position of the limiter with the longest way back.
        by: usize,
        /// Its refusal.
        refusal: Refusal,
    },
}

/// Charges all of `asks` or none of them.
///
/// ```
/// use tidegate_core::rate::TokenBucket;
/// use tidegate_core::shell::AtomicDue;
/// use tidegate_core::together::{Ask, Joint, decide};
/// use tidegate_core::{Cost, Moment, Quota};
///
/// let now = Moment::ORIGIN;
/// let (caller, service) = (AtomicDue::new(), AtomicDue::new());
/// let ten = caller.enrol(&TokenBucket::new(Quota::per_second(Cost::of(10))?))?;
/// let two = service.enrol(&TokenBucket::new(Quota::per_second(Cost::of(2))?))?;
///
/// let (caller_now, service_now) = (caller.at(&ten, now), service.at(&two, now));
/// let mut asks = [Ask::new(&caller_now, Cost::of(3)), Ask::new(&service_now, Cost::of(3))];
/// assert!(matches!(decide(&mut asks), Joint::Refuse { by: 1, .. }));
/// assert_eq!(caller.usage(&ten, now).used, Cost::ZERO);
/// # Ok::<(), tidegate_core::Invalid>(())
/// ```
pub fn decide(asks: &mut [Ask<'_>]) -> Joint {
    if let Some(refused) = longest_refusal(asks) {
        return refused;
    }
    let mut wait = Duration::ZERO;
    for by in 0..asks.len() {
        let (earlier, rest) = asks.split_at_mut(by);
        let Some(ask) = rest.first_mut() else { break };
        match ask.limiter.take(ask.cost) {
            Verdict::Admit(charge) => {
                wait = wait.max(charge.wait());
                ask.charge = Some(charge);
            }
            Verdict::Refuse(refusal) => {
                earlier.iter_mut().for_each(Ask::give_back);
                return Joint::Refuse { by, refusal };
            }
        }
    }
    Joint::Admit { wait }
}

fn longest_refusal(asks: &[Ask<'_>]) -> Option<Joint> {
    let refusals = asks.iter().enumerate().filter_map(|(by, ask)| {
        let refusal = ask.limiter.peek(ask.cost).refusal()?;
        Some((by, refusal))
    });
    let (by, refusal) = refusals.reduce(|a, b| if b.1.retry > a.1.retry { b } else { a })?;
    Some(Joint::Refuse { by, refusal })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rate::{LeakyBucket, TokenBucket};
    use crate::shell::AtomicDue;
    use crate::units::{Moment, Quota};
    use crate::verdict::{Reason, Retry};

    const NOW: Moment = Moment::ORIGIN;

    fn spent(quota: Quota) -> (AtomicDue, crate::shell::Enrolled<crate::shell::Fine>) {
        let limiter = AtomicDue::new();
        let rule = limiter.enrol(&TokenBucket::new(quota)).unwrap();
        assert!(limiter.decide(&rule, NOW, quota.burst()).is_admit());
        (limiter, rule)
    }

    #[test]
    fn the_refusal_with_the_longest_way_back_answers_and_nothing_is_charged() {
        let caller = AtomicDue::new();
        let ten = caller.enrol(&TokenBucket::new(Quota::per_minute(Cost::of(10)).unwrap())).unwrap();
        assert!(caller.decide(&ten, NOW, Cost::of(6)).is_admit());
        let (route, fifty) = spent(Quota::per_second(Cost::of(50)).unwrap());
        let (service, many) = spent(Quota::per_second(Cost::of(1_000)).unwrap());

        let limiters = (caller.at(&ten, NOW), route.at(&fifty, NOW), service.at(&many, NOW));
        let mut asks =
            [&limiters.0 as &dyn Limiter, &limiters.1, &limiters.2].map(|l| Ask::new(l, Cost::ONE));
        let retry = Retry::After(Duration::from_millis(20));
        let refusal = Refusal { reason: Reason::QuotaSpent, retry };
        assert_eq!(decide(&mut asks), Joint::Refuse { by: 1, refusal });
        assert_eq!(caller.usage(&ten, NOW).remaining, Cost::of(4));
    }

    #[test]
    fn the_longest_wait_counts() {
        let quota = |rate| Quota::per_second(Cost::of(rate)).unwrap();
        let (slow, fast) = (AtomicDue::new(), AtomicDue::new());
        let two = slow.enrol(&LeakyBucket::new(quota(2), Cost::of(5)).unwrap()).unwrap();
        let ten = fast.enrol(&LeakyBucket::new(quota(10), Cost::of(5)).unwrap()).unwrap();
        let (a, b) = (slow.at(&two, NOW), fast.at(&ten, NOW));
        let waits = [0, 500, 1_000].map(Duration::from_millis);
        for wait in waits {
            let mut asks = [Ask::new(&b, Cost::ONE), Ask::new(&a, Cost::ONE)];
            assert_eq!(decide(&mut asks), Joint::Admit { wait });
        }
    }
}
