//! What is decided with at this moment, and how it is replaced.
//!
//! A policy, its limits and what was switched at run time are one value, which is never changed but replaced as a
//! whole. A decision looks at it under a read lock and lets go when it has decided; a replacement waits for the
//! decisions under way, some hundred nanoseconds. That wait buys a proof: when [`Cell::replace`] returns, nobody
//! decides under the old limits any more, so their places in the tables can be given to others.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use tidegate_core::Moment;
use tidegate_core::keyed::Key;

use super::plan::{ByKey, Chosen, Known, Limits, Plan};
use crate::policy::Mode;

/// Everything a decision needs.
#[derive(Clone, Debug)]
pub(crate) struct Current {
    pub(crate) version: u64,
    pub(crate) plan: Arc<Plan>,
    pub(crate) limits: Arc<Limits>,
    /// By the rule's position: its mode, as written or as switched.
    pub(crate) modes: Vec<Switch>,
    /// Limits that an operator gave single callers for a time.
    pub(crate) overrides: HashMap<Key, Vec<Own>, ByKey>,
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

/// Holds what is current.
#[derive(Debug)]
pub(crate) struct Cell(RwLock<Current>);

impl Cell {
    pub(crate) const fn new(current: Current) -> Self {
        Self(RwLock::new(current))
    }

    #[inline]
    pub(crate) fn read(&self) -> RwLockReadGuard<'_, Current> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts `new` in its place and returns what was there, which nobody looks at any more.
    pub(crate) fn replace(&self, new: Current) -> Current {
        std::mem::replace(&mut *self.0.write().unwrap_or_else(PoisonError::into_inner), new)
    }
}
