//! What a gate remembers of its decisions: numbers, counts, the last ones, the heaviest callers.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tidegate_core::Invalid;
use tidegate_core::heavy::TopCallers;
use tidegate_core::permit::Outcome;

use crate::decision::DecisionId;

/// Callers on each list of the heaviest.
const TOP_CALLERS: usize = 32;

/// What one rule has decided since the gate was made, policies that replaced each other included.
#[derive(Debug, Default)]
pub(crate) struct RuleCounts {
    pub(crate) admitted: AtomicU64,
    pub(crate) refused: AtomicU64,
    pub(crate) shadow_refused: AtomicU64,
}

/// Adds one. Relaxed: counts are read for show, and each stands for itself.
#[inline]
pub(crate) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

#[derive(Debug)]
pub(crate) struct Books {
    decided: AtomicU64,
    /// An odd number, so that multiplying by it maps every number to another one.
    stride: u64,
    rules: Mutex<BTreeMap<String, Arc<RuleCounts>>>,
    pub(crate) callers: TopCallers,
    pub(crate) admitted: AtomicU64,
    pub(crate) refused: AtomicU64,
    pub(crate) ended: [AtomicU64; 4],
}

impl Books {
    pub(crate) fn new(seed: u64) -> Result<Self, Invalid> {
        Ok(Self {
            decided: AtomicU64::new(0),
            stride: seed | 1,
            rules: Mutex::default(),
            callers: TopCallers::new(TOP_CALLERS)?,
            admitted: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            ended: Default::default(),
        })
    }

    /// A number that no other decision of this gate has, and that does not tell how many there were.
    #[inline]
    pub(crate) fn next_id(&self) -> DecisionId {
        let number = self.decided.fetch_add(1, Ordering::Relaxed);
        DecisionId::new(number.wrapping_add(1).wrapping_mul(self.stride))
    }

    /// A request has ended so, after so long.
    pub(crate) fn end(&self, _id: DecisionId, outcome: Outcome, _took: Option<Duration>) {
        count(&self.ended[outcome as usize]);
    }

    /// The counts of the rule with this name.
    pub(crate) fn counts(&self, rule: &str) -> Arc<RuleCounts> {
        let mut rules = self.rules.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(rules.entry(rule.to_owned()).or_default())
    }
}
