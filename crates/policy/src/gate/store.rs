//! Where a rule's counters are kept, whatever its algorithm.
//!
//! A [`Store`] is one table of counters. It outlives policies: a rule that is changed goes on with the store of
//! its predecessor. A [`Counter`] is a store under one limit: the default one, or that of a plan. A table knows
//! at most 16 limits at once, so limits that nobody uses any more must leave it again:
//!
//! | moment            | limits in the store            | who holds them               |
//! |-------------------|--------------------------------|------------------------------|
//! | policy 1          | 10/s                           | policy 1                     |
//! | policy 2 is taken | 10/s, 15/s                     | policy 1 and 2               |
//! | nobody is deciding under policy 1 | 10/s, 15/s     | only the store itself; policy 2 |
//! | [`Store::tidy`]   | 15/s                           | what 10/s wrote is now expressed in 15/s |
//!
//! Nearly every rule is of the due family, so its counters are known by their own type ([`Counting::Due`]) and decided
//! with in place; the others are called.
//!
//! Admitted requests remember the number of the limit that charged them, not the limit, so that a response
//! that streams for hours keeps nothing in the table. Who settles after that limit has left takes more if the
//! true cost was more. In the due family it gives nothing back; elsewhere it does as long as what it took still
//! counts and the windows have changed at most once.

use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use tidegate_core::keyed::{CellTable, Cells, Counters, DueSlots, DueTable, Foreseen, Key, MaxKeys, Table};
use tidegate_core::rate::{Calendar, FixedWindow, SlidingLog, SlidingWindow, WarmUp};
use tidegate_core::{Charge, Cost, Invalid, Moment, Usage, Verdict, WallTime};

use super::Now;
use crate::policy::{Rate, Shape};

/// The number of a limit in its store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ticket(u32);

/// One rate limit over its store's counters.
pub(crate) trait Counter: Send + Sync + fmt::Debug {
    fn ticket(&self) -> Ticket;
    fn rate(&self) -> &Rate;
    /// Has the key's counter fetched, so that it is at hand when it is asked.
    fn touch(&self, key: Key);
    fn peek(&self, key: Key, now: Now, cost: Cost) -> Verdict<Duration>;
    fn take(&self, key: Key, now: Now, cost: Cost) -> Verdict<Charge>;
    fn settle(&self, key: Key, now: Now, charge: &mut Charge, true_cost: Cost);
    fn usage(&self, key: Key, now: Now) -> Usage;
    fn reset(&self, key: Key, now: Now);
}

/// One rate limit over its store's counters, as it is decided with.
#[derive(Clone, Debug)]
pub(crate) enum Counting {
    /// Of the due family.
    Due(Arc<Enlisted<DueSlots>>),
    /// Of another one.
    Other(Arc<dyn Counter>),
}

impl Deref for Counting {
    type Target = dyn Counter;

    #[inline]
    fn deref(&self) -> &(dyn Counter + 'static) {
        match self {
            Self::Due(limit) => &**limit,
            Self::Other(limit) => &**limit,
        }
    }
}

impl Counting {
    #[inline]
    pub(crate) fn ticket(&self) -> Ticket {
        match self {
            Self::Due(limit) => limit.ticket,
            Self::Other(limit) => limit.ticket(),
        }
    }

    #[inline]
    pub(crate) fn touch(&self, key: Key) {
        match self {
            Self::Due(limit) => limit.table.touch(key),
            Self::Other(limit) => limit.touch(key),
        }
    }

    /// What the counter would answer, where it can also say what it takes to do it.
    #[inline]
    pub(crate) fn foresee(&self, key: Key, now: Now, cost: Cost) -> Option<Verdict<Foreseen<'_>>> {
        match self {
            Self::Due(limit) => limit.table.foresee(&limit.rule, key, now.moment, cost),
            Self::Other(_) => None,
        }
    }
}

/// One table of counters of a rate rule.
pub(crate) trait Store: Send + Sync + fmt::Debug {
    /// The counters under `rate`. `label` says what the limit is for, so that its successor inherits from it.
    fn enrol(&self, label: &str, rate: &Rate, now: Now) -> Result<Counting, Invalid>;
    /// The limit with this number, or another one if it has left.
    fn counter(&self, ticket: Ticket) -> Option<Arc<dyn Counter>>;
    /// Lets limits go that nobody uses any more.
    fn tidy(&self, now: Now);
    /// How many keys have something used. Walks the table.
    fn active(&self, now: Now) -> usize;
    fn overflowed(&self) -> u64;
    fn bytes(&self) -> usize;
}

/// A store for rates of this shape.
pub(crate) fn store_for(shape: &Shape, max_keys: MaxKeys, seed: u64) -> Arc<dyn Store> {
    match shape {
        Shape::TokenBucket(_) | Shape::LeakyBucket(_) | Shape::Smooth(_) => {
            Arc::new(Kept::new(DueTable::new(max_keys, seed)))
        }
        Shape::WarmUp(_) => Arc::new(Kept::new(CellTable::<WarmUp>::new(max_keys, seed))),
        Shape::FixedWindow(_) => Arc::new(Kept::new(CellTable::<FixedWindow>::new(max_keys, seed))),
        Shape::Calendar(_) => Arc::new(Kept::new(CellTable::<Calendar>::new(max_keys, seed))),
        Shape::SlidingWindow(_) => Arc::new(Kept::new(CellTable::<SlidingWindow>::new(max_keys, seed))),
        Shape::SlidingLog(_) => Arc::new(Kept::new(CellTable::<SlidingLog>::new(max_keys, seed))),
    }
}

/// What can share a store: shapes of one family.
pub(crate) const fn family(shape: &Shape) -> &'static str {
    match shape {
        Shape::TokenBucket(_) | Shape::LeakyBucket(_) | Shape::Smooth(_) => "due",
        Shape::WarmUp(_) => "warm_up",
        Shape::FixedWindow(_) => "fixed_window",
        Shape::Calendar(_) => "calendar",
        Shape::SlidingWindow(_) => "sliding_window",
        Shape::SlidingLog(_) => "sliding_log",
    }
}

/// The clock that a table is told.
trait Reading: tidegate_core::units::Time {
    fn of(now: Now) -> Self;
}

impl Reading for Moment {
    #[inline]
    fn of(now: Now) -> Self {
        now.moment
    }
}

impl Reading for WallTime {
    #[inline]
    fn of(now: Now) -> Self {
        now.wall
    }
}

/// Counters that know which shapes are theirs.
trait Family: Counters + Sized {
    fn enrol(table: &Table<Self>, shape: &Shape) -> Result<Self::Rule, Invalid>;
    fn counting(limit: Arc<Enlisted<Self>>) -> Counting;
}

fn other_family<R>(shape: &Shape) -> Result<R, Invalid> {
    Err(Invalid::new("algorithm", family(shape), "of the family that the counters are of"))
}

impl Family for DueSlots {
    fn enrol(table: &DueTable, shape: &Shape) -> Result<Self::Rule, Invalid> {
        match shape {
            Shape::TokenBucket(rule) => table.enrol(rule),
            Shape::LeakyBucket(rule) => table.enrol(rule),
            Shape::Smooth(rule) => table.enrol(rule),
            other => other_family(other),
        }
    }

    fn counting(limit: Arc<Enlisted<Self>>) -> Counting {
        Counting::Due(limit)
    }
}

macro_rules! family_of_cells {
    ($($rule:ident),*) => {$(
        impl Family for Cells<$rule> {
            fn enrol(table: &CellTable<$rule>, shape: &Shape) -> Result<Self::Rule, Invalid> {
                match shape {
                    Shape::$rule(rule) => table.enrol(rule.clone()),
                    other => other_family(other),
                }
            }

            fn counting(limit: Arc<Enlisted<Self>>) -> Counting {
                Counting::Other(limit)
            }
        }
    )*};
}

family_of_cells!(WarmUp, FixedWindow, Calendar, SlidingWindow, SlidingLog);

/// A table and the limits it knows.
struct Kept<C: Counters> {
    table: Arc<Table<C>>,
    limits: RwLock<Limits<C>>,
}

struct Limits<C: Counters> {
    enlisted: Vec<Arc<Enlisted<C>>>,
    next: u32,
}

/// A limit that a table knows.
pub(crate) struct Enlisted<C: Counters> {
    table: Arc<Table<C>>,
    rule: C::Rule,
    rate: Rate,
    label: String,
    ticket: Ticket,
}

impl<C: Counters> fmt::Debug for Kept<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kept").field("table", &self.table).finish_non_exhaustive()
    }
}

impl<C: Counters> fmt::Debug for Enlisted<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Enlisted")
            .field("label", &self.label)
            .field("rate", &self.rate)
            .finish_non_exhaustive()
    }
}

impl<C: Counters> Kept<C> {
    fn new(table: Table<C>) -> Self {
        let limits = RwLock::new(Limits { enlisted: Vec::new(), next: 0 });
        Self { table: Arc::new(table), limits }
    }
}

impl<C> Limits<C>
where
    C: Counters<Time: Reading>,
{
    /// Retires what only the store still holds, while somebody is there to inherit.
    fn retire_unused(&mut self, table: &Table<C>, now: Now) {
        while let Some(index) = self.enlisted.iter().position(|limit| Arc::strong_count(limit) == 1) {
            if self.enlisted.len() == 1 {
                return;
            }
            let Some(leaving) = Arc::into_inner(self.enlisted.remove(index)) else { return };
            let is_successor = |limit: &&Arc<Enlisted<C>>| limit.label == leaving.label;
            let successor = self.enlisted.iter().rev().find(is_successor);
            if let Some(heir) = successor.or(self.enlisted.first()) {
                table.retire(leaving.rule, &heir.rule, C::Time::of(now));
            }
        }
    }
}

impl<C> Store for Kept<C>
where
    C: Family<Time: Reading + Send + Sync, Rule: Send + Sync> + Send + Sync + 'static,
{
    fn enrol(&self, label: &str, rate: &Rate, now: Now) -> Result<Counting, Invalid> {
        let mut limits = self.limits.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = limits.enlisted.iter().find(|limit| limit.rate == *rate) {
            return Ok(C::counting(Arc::clone(known)));
        }
        if limits.enlisted.len() == MOST_LIMITS {
            limits.retire_unused(&self.table, now);
        }
        let (rule, ticket) = (C::enrol(&self.table, &rate.shape)?, Ticket(limits.next));
        limits.next = limits.next.wrapping_add(1);
        let (table, label) = (Arc::clone(&self.table), label.to_owned());
        let limit = Arc::new(Enlisted { table, rule, rate: rate.clone(), label, ticket });
        limits.enlisted.push(Arc::clone(&limit));
        Ok(C::counting(limit))
    }

    fn counter(&self, ticket: Ticket) -> Option<Arc<dyn Counter>> {
        let limits = self.limits.read().unwrap_or_else(PoisonError::into_inner);
        let known = limits.enlisted.iter().find(|limit| limit.ticket == ticket);
        let limit = known.or(limits.enlisted.last())?;
        Some(Arc::<Enlisted<C>>::clone(limit))
    }

    fn tidy(&self, now: Now) {
        let mut limits = self.limits.write().unwrap_or_else(PoisonError::into_inner);
        limits.retire_unused(&self.table, now);
    }

    fn active(&self, now: Now) -> usize {
        self.table.active(C::Time::of(now))
    }

    fn overflowed(&self) -> u64 {
        self.table.overflowed()
    }

    fn bytes(&self) -> usize {
        self.table.bytes()
    }
}

/// What a table can know at once.
const MOST_LIMITS: usize = 16;

impl<C> Counter for Enlisted<C>
where
    C: Family<Time: Reading + Send + Sync, Rule: Send + Sync> + Send + Sync,
{
    fn ticket(&self) -> Ticket {
        self.ticket
    }

    fn rate(&self) -> &Rate {
        &self.rate
    }

    #[inline]
    fn touch(&self, key: Key) {
        self.table.touch(key);
    }

    fn peek(&self, key: Key, now: Now, cost: Cost) -> Verdict<Duration> {
        self.table.peek(&self.rule, key, C::Time::of(now), cost)
    }

    fn take(&self, key: Key, now: Now, cost: Cost) -> Verdict<Charge> {
        self.table.decide(&self.rule, key, C::Time::of(now), cost)
    }

    fn settle(&self, key: Key, now: Now, charge: &mut Charge, true_cost: Cost) {
        self.table.settle(&self.rule, key, C::Time::of(now), charge, true_cost);
    }

    fn usage(&self, key: Key, now: Now) -> Usage {
        self.table.usage(&self.rule, key, C::Time::of(now))
    }

    fn reset(&self, key: Key, now: Now) {
        self.table.reset(&self.rule, key, C::Time::of(now));
    }
}
