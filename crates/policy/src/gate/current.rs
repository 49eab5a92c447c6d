//! What is decided with at this moment, and how it is replaced.
//!
//! A policy, its limits and what was switched at run time are one value, which is never changed but replaced as a
//! whole. A decision looks at it under a read lock and lets go when it has decided; a replacement waits for the
//! decisions under way, some hundred nanoseconds. That wait buys a proof: when [`Cell::replace`] returns, nobody
//! decides under the old limits any more, so their places in the tables can be given to others.

use std::collections::HashMap;
use std::ops::Deref;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use tidegate_core::Moment;
use tidegate_core::keyed::Key;

use super::blocking::Blocks;
use super::plan::{ByKey, Chosen, Known, Limits, Plan};
use super::stripes::{Apart, STRIPES, own};
use crate::policy::Mode;

/// Everything a decision needs.
#[derive(Clone, Debug)]
pub(crate) struct Current {
    pub(crate) version: u64,
    pub(crate) plan: Arc<Plan>,
    pub(crate) limits: Arc<Limits>,
    /// By the rule's position: its mode, as written or as switched.
    pub(crate) modes: Arc<[Switch]>,
    /// Limits that an operator gave single callers for a time.
    pub(crate) overrides: Arc<HashMap<Key, Vec<Own>, ByKey>>,
    /// Callers that an operator keeps out.
    pub(crate) blocks: Arc<Blocks>,
    /// Whether there are any: what every decision asks.
    pub(crate) has_blocks: bool,
}

/// A rule's mode, and what an operator switched it to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Switch {
    pub(crate) written: Mode,
    pub(crate) switched: Option<(Mode, Option<Moment>)>,
}

impl Switch {
    #[inline]
    pub(crate) fn mode(&self, now: Moment) -> Mode {
        match self.switched {
            None => self.written,
            Some((mode, until)) if until.is_none_or(|until| now < until) => mode,
            Some(_) => self.written,
        }
    }
}

/// A limit that one caller was given for a time.
#[derive(Clone, Debug)]
pub(crate) struct Own {
    pub(crate) rule: u16,
    pub(crate) chosen: Chosen,
    pub(crate) until: Moment,
}

impl Current {
    pub(crate) fn set_blocks(&mut self, blocks: Blocks) {
        self.has_blocks = !blocks.is_empty();
        self.blocks = Arc::new(blocks);
    }

    #[inline]
    pub(crate) fn mode(&self, rule: u16, now: Moment) -> Mode {
        self.modes.get(usize::from(rule)).map_or(Mode::Disabled, |switch| switch.mode(now))
    }

    #[inline]
    pub(crate) fn known(&self, caller: Key) -> Option<&Known> {
        if self.limits.callers.is_empty() { None } else { self.limits.callers.get(&caller) }
    }

    #[inline]
    pub(crate) fn overridden(&self, caller: Key, rule: u16, now: Moment) -> Option<&Chosen> {
        if self.overrides.is_empty() {
            return None;
        }
        let own = self.overrides.get(&caller)?.iter().find(|own| own.rule == rule && now < own.until)?;
        Some(&own.chosen)
    }
}

/// Holds what is current, once for each [stripe](super::stripes) of threads: a lock that all of them took for every
/// decision would be the one thing they all wait for.
#[derive(Debug)]
pub(crate) struct Cell([Apart<RwLock<Held>>; STRIPES]);

/// What one stripe's threads look at, with a count of its own of who holds on to the plan.
#[derive(Debug)]
pub(crate) struct Held {
    current: Current,
    pub(crate) plan: HeldPlan,
}

/// A plan that is held on to.
pub(crate) type HeldPlan = Arc<Arc<Plan>>;

impl Deref for Held {
    type Target = Current;

    fn deref(&self) -> &Current {
        &self.current
    }
}

impl Held {
    fn new(current: &Current) -> Self {
        Self { current: current.clone(), plan: Arc::new(Arc::clone(&current.plan)) }
    }
}

impl Cell {
    pub(crate) fn new(current: &Current) -> Self {
        Self(std::array::from_fn(|_| Apart(RwLock::new(Held::new(current)))))
    }

    #[inline]
    pub(crate) fn read(&self) -> RwLockReadGuard<'_, Held> {
        self.0[own()].0.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts `new` in its place. When this returns, nobody looks at what was there any more.
    pub(crate) fn replace(&self, new: &Current) {
        for Apart(stripe) in &self.0 {
            let new = Held::new(new);
            let old = std::mem::replace(&mut *stripe.write().unwrap_or_else(PoisonError::into_inner), new);
            drop(old);
        }
    }
}
