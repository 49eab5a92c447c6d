//! One key of a rule, in each way there is to keep it.

use std::time::Duration;

use tidegate_core::keyed::{DueTable, Key, MaxKeys};
use tidegate_core::rate::{Algorithm, Due};
use tidegate_core::shell::{AtomicDue, Enrolled, Fine, Packed};
use tidegate_core::{Charge, Cost, Moment, Usage, Verdict};

use crate::draw::start;
use crate::promise::{Promise, Rule};

pub(crate) trait Kept {
    fn decide(&mut self, now: Moment, cost: Cost) -> Verdict<Charge>;
    fn peek(&self, now: Moment, cost: Cost) -> Verdict<Duration>;
    fn settle(&mut self, now: Moment, charge: &mut Charge, true_cost: Cost);
    fn usage(&self, now: Moment) -> Usage;

    /// The nanoseconds that rounding can make of an interval: a grain where the clock is read, and one where the room
    /// is rounded up.
    fn slack(&self) -> u128;
}

/// In ticks of a nanosecond a grain is worth at most ten, where a quota grants units in one.
const FINE_SLACK: u128 = 2 * 10;

/// The plain rule with a state.
pub(crate) struct Plain {
    rule: Rule,
    state: Due,
}

impl Plain {
    pub(crate) fn new(promise: &Promise) -> Self {
        Self { rule: promise.rule, state: promise.rule.fresh(start()) }
    }
}

impl Kept for Plain {
    fn decide(&mut self, now: Moment, cost: Cost) -> Verdict<Charge> {
        self.rule.decide(&mut self.state, now, cost)
    }

    fn peek(&self, now: Moment, cost: Cost) -> Verdict<Duration> {
        self.rule.peek(&self.state, now, cost)
    }

    fn settle(&mut self, now: Moment, charge: &mut Charge, true_cost: Cost) {
        self.rule.settle(&mut self.state, now, charge, true_cost);
    }

    fn usage(&self, now: Moment) -> Usage {
        self.rule.usage(&self.state, now)
    }

    fn slack(&self) -> u128 {
        FINE_SLACK
    }
}

/// A counter that threads share.
pub(crate) struct Shared {
    limiter: AtomicDue,
    rule: Enrolled<Fine>,
}

impl Shared {
    pub(crate) fn new(promise: &Promise) -> Self {
        let limiter = AtomicDue::new();
        let rule = limiter.enrol(&promise.rule).expect("room for a rule");
        Self { limiter, rule }
    }
}

impl Kept for Shared {
    fn decide(&mut self, now: Moment, cost: Cost) -> Verdict<Charge> {
        self.limiter.decide(&self.rule, now, cost)
    }

    fn peek(&self, now: Moment, cost: Cost) -> Verdict<Duration> {
        self.limiter.peek(&self.rule, now, cost)
    }

    fn settle(&mut self, now: Moment, charge: &mut Charge, true_cost: Cost) {
        self.limiter.settle(&self.rule, now, charge, true_cost);
    }

    fn usage(&self, now: Moment) -> Usage {
        self.limiter.usage(&self.rule, now)
    }

    fn slack(&self) -> u128 {
        FINE_SLACK
    }
}

/// A key of a table.
pub(crate) struct Tabled {
    table: DueTable,
    rule: Enrolled<Packed>,
    key: Key,
    extent: u64,
}

impl Tabled {
    pub(crate) fn new(promise: &Promise) -> Self {
        let table = DueTable::new(MaxKeys::new(10).expect("ten keys"), 7);
        let rule = table.enrol(&promise.rule).expect("room for a rule");
        let key = table.key("caller");
        Self { table, rule, key, extent: promise.extent() }
    }
}

impl Kept for Tabled {
    fn decide(&mut self, now: Moment, cost: Cost) -> Verdict<Charge> {
        self.table.decide(&self.rule, self.key, now, cost)
    }

    fn peek(&self, now: Moment, cost: Cost) -> Verdict<Duration> {
        self.table.peek(&self.rule, self.key, now, cost)
    }

    fn settle(&mut self, now: Moment, charge: &mut Charge, true_cost: Cost) {
        self.table.settle(&self.rule, self.key, now, charge, true_cost);
    }

    fn usage(&self, now: Moment) -> Usage {
        self.table.usage(&self.rule, self.key, now)
    }

    /// A tick is at most 30 billionths of the extent, and a grain is worth up to two.
    fn slack(&self) -> u128 {
        let tick = u128::from(self.extent >> 25).max(1);
        2 * 2 * tick
    }
}
