//! How operators name callers: by identity, or by the fingerprint that lists show.
//!
//! Lists shorten what may be a secret, so nobody can order anything for `sk_live_…` by it. The fingerprint beside it is
//! the very key that the counters have, and names the same caller.

use std::fmt;
use std::sync::Arc;

use tidegate_core::Cost;
use tidegate_core::heavy::Ranking;
use tidegate_core::keyed::Key;

use super::keys::{Keys, written};
use super::{Gate, Now};
use crate::policy::{KeySource, Policy, Rule};

/// A caller as an operator names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallerName {
    /// By what it sends, or its address.
    Identity(String),
    /// By its fingerprint.
    Fingerprint {
        /// The fingerprint.
        bits: u64,
        /// What lists called it when it was named.
        shown: Option<String>,
    },
}

impl CallerName {
    pub(crate) fn key(&self, keys: &Keys, policy: &Policy) -> Key {
        match self {
            Self::Identity(identity) => keys.of(&written(identity, policy)),
            Self::Fingerprint { bits, .. } => Key::from_bits(*bits),
        }
    }

    /// What the counters of its own limits are called: no identity has a control character.
    pub(crate) fn label(&self) -> String {
        match self {
            Self::Identity(identity) => identity.clone(),
            Self::Fingerprint { bits, .. } => format!("\u{0}{bits:016x}"),
        }
    }
}

/// A counter as an operator names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CounterName<'a> {
    /// The parts of the key with `|` between; requests without a key are `-`.
    Written(&'a str),
    /// The key's fingerprint.
    Fingerprint(u64),
}

impl<'a> From<&'a str> for CounterName<'a> {
    fn from(key: &'a str) -> Self {
        Self::Written(key)
    }
}

impl Gate {
    /// A caller as lists show it: of more than twelve characters the first eight.
    #[must_use]
    pub fn shown(&self, caller: &CallerName) -> String {
        match caller {
            CallerName::Identity(identity) => written(identity, &self.policy()).to_string(),
            CallerName::Fingerprint { .. } => caller.to_string(),
        }
    }

    /// What lists call the caller with this fingerprint, if one of them has it.
    #[must_use]
    pub fn shown_as(&self, fingerprint: u64) -> Option<String> {
        let listed = self.listed().into_iter().find(|(_, bits)| *bits == fingerprint);
        let noted = || {
            let mut records = self.recent(false).into_iter();
            records.find(|record| record.fingerprint == Some(fingerprint))?.caller
        };
        listed.map(|(shown, _)| shown).or_else(noted)
    }

    /// Whether a caller is in the table, has an order or a counter in use, or is in one of the lists.
    #[must_use]
    pub fn has_seen(&self, caller: &CallerName, now: Now) -> bool {
        let key = self.key_of(caller);
        let current = self.current.read();
        let is_ordered = current.overrides.contains_key(&key) || current.blocks.contains_key(&key);
        if is_ordered || current.known(key).is_some() {
            return true;
        }
        let rules: Vec<_> = current.plan.rules.iter().map(|ruled| ruled.rule.clone()).collect();
        drop(current);
        let is_senders = |rule: &&Arc<Rule>| {
            matches!(rule.key.0.as_slice(), [KeySource::Caller | KeySource::Header(_) | KeySource::ClientIp])
        };
        let is_counted = rules.iter().filter(is_senders).any(|rule| {
            let usage = self.counter(&rule.name, CounterName::Fingerprint(key.bits()), now);
            usage.is_some_and(|usage| usage.used > Cost::ZERO)
        });
        is_counted || self.shown_as(key.bits()).is_some()
    }

    /// The callers whose names are nearest to a text, as lists show them, with their fingerprints.
    #[must_use]
    pub fn nearest_callers(&self, text: &str, most: usize) -> Vec<(String, u64)> {
        let mut listed = self.listed();
        let distance = |shown: &str| {
            let start = shown.trim_end_matches('…');
            let text: String = if start.len() < shown.len() {
                text.chars().take(start.chars().count()).collect()
            } else {
                text.to_owned()
            };
            strsim::damerau_levenshtein(start, &text)
        };
        listed.sort_by_cached_key(|(shown, bits)| (distance(shown), *bits));
        listed.truncate(most);
        listed
    }

    /// The callers on the lists, each once.
    fn listed(&self) -> Vec<(String, u64)> {
        let lists = [Ranking::Refusals, Ranking::ShadowRefusals, Ranking::Cost];
        let heavy = lists.into_iter().flat_map(|ranking| self.callers(ranking, usize::MAX));
        let mut listed: Vec<(String, u64)> =
            heavy.map(|heavy| (heavy.name.as_str().to_owned(), heavy.key.bits())).collect();
        listed.sort_by_key(|(_, bits)| *bits);
        listed.dedup_by_key(|(_, bits)| *bits);
        listed
    }
}

impl From<&str> for CallerName {
    fn from(identity: &str) -> Self {
        Self::Identity(identity.to_owned())
    }
}

impl fmt::Display for CallerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Identity(identity) => f.write_str(identity),
            Self::Fingerprint { shown: Some(shown), .. } => f.write_str(shown),
            Self::Fingerprint { bits, shown: None } => write!(f, "{bits:016x}"),
        }
    }
}
