//! What a limiter answers: admit with what was taken, or refuse with a reason and a way back.

use std::time::Duration;

use crate::units::Cost;

/// One limiter's answer. `T` is what was taken: a [`Charge`] (refundable) or a permit (in flight).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "an unread verdict lets everything through"]
pub enum Verdict<T> {
    /// The request may pass.
    Admit(T),
    /// The request may not pass now.
    Refuse(Refusal),
}

impl<T> Verdict<T> {
    /// A no.
    pub const fn refuse(reason: Reason, retry: Retry) -> Self {
        Self::Refuse(Refusal { reason, retry })
    }

    /// Whether it is a yes.
    #[must_use]
    pub const fn is_admit(&self) -> bool {
        matches!(self, Self::Admit(_))
    }

    /// What was taken, if it is a yes.
    #[must_use]
    pub fn admitted(self) -> Option<T> {
        match self {
            Self::Admit(taken) => Some(taken),
            Self::Refuse(_) => None,
        }
    }

    /// Why not, if it is a no.
    #[must_use]
    pub fn refusal(self) -> Option<Refusal> {
        match self {
            Self::Admit(_) => None,
            Self::Refuse(refusal) => Some(refusal),
        }
    }

    /// The same answer, with what was taken turned into something else.
    pub fn map<U>(self, turn: impl FnOnce(T) -> U) -> Verdict<U> {
        match self {
            Self::Admit(taken) => Verdict::Admit(turn(taken)),
            Self::Refuse(refusal) => Verdict::Refuse(refusal),
        }
    }
}

/// A no, with its reason and when to come back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Refusal {
    /// Why.
    pub reason: Reason,
    /// When it may work.
    pub retry: Retry,
}

/// Why a limiter refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Reason {
    /// The quota is used up for now.
    QuotaSpent,
    /// The request costs more than the quota can ever hold at once.
    CostAboveBurst,
    /// The request would have to wait, or has waited, longer than its limiter lets anybody wait.
    WaitTooLong,
    /// All places are taken.
    LimitReached,
    /// An operator blocked this key.
    Blocked,
    /// The table of keys is full of active keys, and what newcomers share is used up.
    OverflowSpent,
    /// Its level of criticality is being shed.
    Shed,
    /// What is left is kept for critical requests.
    Reserved,
    /// The queue has no room.
    QueueFull,
    /// It left the queue to make room for another.
    Displaced,
    /// It left the queue because everybody waits too long.
    StandingQueue,
    /// Its deadline has passed, or would pass before the answer.
    DeadlinePassed,
    /// The breaker of what would be called is open.
    BreakerOpen,
    /// What would be called refuses so much that this caller holds back.
    Throttled,
    /// Retries and hedges have used up their share of the traffic.
    RetryBudgetSpent,
    /// The request has had all its attempts.
    AttemptsSpent,
    /// Another attempt would fail again, or must not be made.
    NotRetryable,
    /// What picks its counter could be read in two ways.
    AmbiguousKey,
}

impl Reason {
    /// The reason as one word for logs and messages.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::QuotaSpent => "quota_spent",
            Self::CostAboveBurst => "cost_above_burst",
            Self::WaitTooLong => "wait_too_long",
            Self::LimitReached => "limit_reached",
            Self::Blocked => "blocked",
            Self::OverflowSpent => "overflow_spent",
            Self::BreakerOpen => "breaker_open",
            Self::Throttled => "throttled",
            Self::RetryBudgetSpent => "retry_budget_spent",
            Self::AttemptsSpent => "attempts_spent",
            Self::NotRetryable => "not_retryable",
            Self::AmbiguousKey => "ambiguous_key",
            Self::Shed => "shed",
            Self::Reserved => "reserved",
            Self::QueueFull => "queue_full",
            Self::Displaced => "displaced",
            Self::StandingQueue => "standing_queue",
            Self::DeadlinePassed => "deadline_passed",
        }
    }
}

/// When a refused request may work; the longer way back is the greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Retry {
    /// Waiting this long is enough, unless somebody else takes the place first.
    After(Duration),
    /// No wait helps: the request costs more than the rule can ever allow.
    Never,
}

/// What a request took from a quota. It can be settled once: to its true cost, or to nothing.
///
/// A charge that is dropped stands as it was taken. It cannot be copied, since each copy could be given back:
///
/// ```compile_fail
/// use tidegate_core::shell::AtomicDue;
/// use tidegate_core::rate::TokenBucket;
/// use tidegate_core::{Cost, Moment, Quota};
///
/// let now = Moment::ORIGIN;
/// let limiter = AtomicDue::new();
/// let rule = limiter.enrol(&TokenBucket::new(Quota::per_second(Cost::ONE)?))?;
/// let mut charge = limiter.decide(&rule, now, Cost::ONE).admitted().expect("the first of one");
/// let mut copy = charge.clone();
/// limiter.refund(&rule, now, &mut charge);
/// limiter.refund(&rule, now, &mut copy);
/// # Ok::<(), tidegate_core::Invalid>(())
/// ```
#[derive(Debug, PartialEq, Eq)]
pub struct Charge {
    cost: Cost,
    wait: Duration,
    is_settled: bool,
    /// Where on the limiter's own line the charge lies: the end of its stretch of due time, its
    /// window, its moment. Only the algorithm that wrote it can read it.
    pub(crate) mark: u64,
    /// The number under which its shell enrolled the rule that the mark is expressed in.
    pub(crate) serial: u32,
    /// The life of the state that it was taken in, where its shell keeps lives apart; else how many resets it had
    /// counted by then.
    pub(crate) life: u32,
    /// How many times its quota the key had: what counted was the cost divided by that.
    boost: u32,
    is_overflow: bool,
}

impl Charge {
    pub(crate) const fn new(cost: Cost, mark: u64) -> Self {
        Self {
            cost,
            wait: Duration::ZERO,
            is_settled: false,
            mark,
            serial: 0,
            life: 0,
            boost: 1,
            is_overflow: false,
        }
    }

    pub(crate) const fn with_wait(self, wait: Duration) -> Self {
        Self { wait, ..self }
    }

    pub(crate) const fn made_under(self, serial: u32) -> Self {
        Self { serial, ..self }
    }

    pub(crate) const fn in_life(self, life: u32) -> Self {
        Self { life, ..self }
    }

    /// This charge as what `cost` came to under a boost.
    pub(crate) const fn boosted(self, boost: u32, cost: Cost) -> Self {
        Self { boost, cost, ..self }
    }

    pub(crate) const fn shared(self) -> Self {
        Self { is_overflow: true, ..self }
    }

    /// How it is corrected where what it was taken from is gone: at the expense of what newcomers share.
    pub(crate) const fn as_shared(&self) -> Self {
        Self { is_overflow: true, ..*self }
    }

    /// What `cost` counts for this charge: under a boost by three, a third of it, rounded up.
    #[inline]
    pub(crate) const fn counted(&self, cost: Cost) -> Cost {
        cost.divided(self.boost)
    }

    /// What was taken; once settled, the true cost.
    #[must_use]
    pub const fn cost(&self) -> Cost {
        self.cost
    }

    /// How long the request must wait before it goes on. Zero except for limiters that shape.
    #[must_use]
    pub const fn wait(&self) -> Duration {
        self.wait
    }

    /// Whether it was taken from what the newcomers of a full table share.
    #[must_use]
    pub const fn is_overflow(&self) -> bool {
        self.is_overflow
    }

    /// Whether the charge has been settled or refunded.
    #[must_use]
    pub const fn is_settled(&self) -> bool {
        self.is_settled
    }

    /// Marks the charge as settled at `true_cost` and returns what had been taken, the first time.
    pub(crate) const fn close(&mut self, true_cost: Cost) -> Option<Cost> {
        if self.is_settled {
            return None;
        }
        let taken = self.cost;
        self.cost = true_cost;
        self.is_settled = true;
        Some(taken)
    }
}

/// How much of a quota is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// The most that can be taken at once.
    pub limit: Cost,
    /// What is taken now; above the limit when true costs turned out larger than estimates.
    pub used: Cost,
    /// What could be taken now.
    pub remaining: Cost,
    /// The time after which, without further requests, nothing counts as used.
    pub reset: Duration,
}
