//! Refusals by rule and reason.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::Gate;
use super::admin::upstreams;
use super::blocking::OPERATOR;
use super::plan::Ruled;
use super::stripes::Count;
use crate::decision::ReasonWord;

/// As metrics and answers call a key that could be read in two ways.
const AMBIGUOUS: &str = "ambiguous_key";

/// How many requests were refused by one rule, upstream or order of an operator, for one reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReasonRefusals {
    /// The rule; an upstream is `upstream:orders`, an operator `operator:block`.
    pub rule: String,
    /// The reason, as metrics write it.
    pub reason: &'static str,
    /// Requests since the gate was made, or the rule was changed.
    pub refused: u64,
}

impl Gate {
    /// What was refused, by rule and reason and without what is zero. It does not look into the tables: to be asked
    /// every second.
    #[must_use]
    pub fn refusals_by_reason(&self) -> Vec<ReasonRefusals> {
        let plan = Arc::clone(&self.current.read().plan);
        let mut all = Vec::new();
        let mut add = |rule: &str, reason, refused| {
            if refused > 0 {
                all.push(ReasonRefusals { rule: rule.to_owned(), reason, refused });
            }
        };
        for ruled in &plan.rules {
            for (reason, refused) in of_rule(ruled) {
                add(&ruled.rule.name, reason, refused);
            }
        }
        for upstream in upstreams(&plan) {
            for (reason, counts) in ReasonWord::ALL.iter().zip(upstream.refused) {
                add(&upstream.name, reason.as_str(), counts.iter().sum());
            }
        }
        add(OPERATOR, ReasonWord::Blocked.as_str(), self.books.blocked.iter().map(Count::sum).sum());
        add(OPERATOR, AMBIGUOUS, self.books.unclear.iter().map(Count::sum).sum());
        all
    }
}

fn of_rule(ruled: &Ruled) -> [(&'static str, u64); 3] {
    let counts = &ruled.counts;
    let ambiguous = counts.ambiguous.iter().map(|count| count.load(Ordering::Relaxed)).sum();
    let blocked = counts.blocked.iter().map(|count| count.load(Ordering::Relaxed)).sum();
    let refused: u64 = counts.refused.iter().map(Count::sum).sum();
    let usual = refused.saturating_sub(ambiguous).saturating_sub(blocked);
    [
        (ReasonWord::of_limit(&ruled.rule.limit).as_str(), usual),
        (AMBIGUOUS, ambiguous),
        (ReasonWord::Blocked.as_str(), blocked),
    ]
}
