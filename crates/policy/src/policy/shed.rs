use std::sync::Arc;
use std::time::Duration;

use tidegate_core::{Criticality, Ratio};

use super::SignalName;

/// A share of places kept for what matters.
#[derive(Clone, Debug, PartialEq)]
pub struct Reserve {
    /// How many places there are.
    pub capacity: Capacity,
    /// Only requests of this criticality and above may take the last of them; never the lowest, below which
    /// there is nobody.
    pub level: Criticality,
    /// How large a share of the places that is: above nothing and below everything. Where the capacity is
    /// known, one place at least is kept and one is left.
    pub kept: Ratio,
}

/// How many places a reserve is a share of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Capacity {
    /// So many: two at least.
    Places(u32),
    /// The limit of an upstream, by its name, as it is at the moment.
    Upstream(Arc<str>),
}

/// Refusing by criticality while signals are above their targets, slowly.
#[derive(Clone, Debug, PartialEq)]
pub struct Shed {
    /// The signals and their targets in their units (shares from 0 to 1, seconds): one at least, none twice.
    /// Any signal above its target counts.
    pub targets: Vec<(SignalName, f64)>,
    /// What may be shed, the least critical first: one level at least, and none before all that are below it.
    pub order: Vec<Criticality>,
    /// How long it takes from nothing to everything of one level, and back; at most a day.
    pub ramp: Duration,
}
