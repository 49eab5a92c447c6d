//! Callers that an operator keeps out, by one rule or altogether, whatever modes rules are in.
//!
//! A caller is met by what the policy recognises it by, and by what single rules count it by: where `[caller]` says
//! nothing of keys and a rule has `key = "header:x-api-key"`, both the address and the key can be kept out. Exempt
//! routes stay open, since health checks come by them.
//!
//! While anybody is kept out, a request whose caller can be read in two ways is refused as such: it could be anybody.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tidegate_core::keyed::Key;
use tidegate_core::{Invalid, Moment, Reason, Refusal, Retry};

use super::admin::{MOST_STANDING, Overlay};
use super::books::Entry;
use super::keys::{Keys, NoPart};
use super::naming::CallerName;
use super::plan::ByKey;
use super::walk::Walk;
use super::{Gate, HeldPlan, Now};
use crate::decision::{Cause, Decision, Mets, Refused};
use crate::policy::Policy;

/// What a refusal names where no rule does: an operator's order for everything that a caller sends.
pub const OPERATOR: &str = "operator:block";

/// A caller that is kept out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// The caller.
    pub caller: CallerName,
    /// The rule on whose routes it is kept out; none for all routes that are not exempt.
    pub rule: Option<String>,
    /// When that ends; none for until it is ended.
    pub until: Option<Moment>,
}

impl Block {
    pub(super) fn stands(&self, now: Moment) -> bool {
        self.until.is_none_or(|until| now < until)
    }
}

/// The same by the rule's position.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Barred {
    pub(crate) rule: Option<u16>,
    pub(crate) until: Option<Moment>,
}

pub(crate) type Blocks = HashMap<Key, Vec<Barred>, ByKey>;

/// What stands as a map, for a policy; what is for a rule that it does not have waits for one that does.
pub(super) fn blocks(overlay: &Overlay, policy: &Policy, keys: &Keys, now: Now) -> Blocks {
    let mut blocks = Blocks::default();
    for block in overlay.blocks.iter().filter(|block| block.stands(now.moment)) {
        let position = |name: &String| (0..).zip(&policy.rules).find(|(_, rule)| rule.name == *name);
        let rule = match &block.rule {
            None => None,
            Some(name) => match position(name) {
                Some((index, _)) => Some(index),
                None => continue,
            },
        };
        let barred = Barred { rule, until: block.until };
        blocks.entry(block.caller.key(keys, policy)).or_default().push(barred);
    }
    blocks
}

impl Gate {
    /// Keeps a caller out, by one rule or altogether. What was ordered for the same caller and rule before ends.
    ///
    /// # Errors
    /// When there is no such rule, or 1024 orders stand already.
    pub fn block(&self, block: Block, now: Now) -> Result<(), Invalid> {
        let mut overlay = self.changing();
        if let Some(rule) = &block.rule {
            self.known_rule(rule)?;
        }
        let key = self.key_of(&block.caller);
        let mut standing = overlay.blocks.clone();
        standing.retain(|other| {
            other.stands(now.moment) && (self.key_of(&other.caller) != key || other.rule != block.rule)
        });
        if standing.len() + overlay.standing_overrides(now) >= MOST_STANDING {
            return Err(Invalid::new("overrides", MOST_STANDING + 1, "at most 1024 at once"));
        }
        standing.push(block);
        overlay.blocks = standing;
        self.switch_blocks(&overlay, now);
        Ok(())
    }

    /// Lets a caller in again that was kept out by this rule, or altogether; returns whether it was.
    pub fn unblock(&self, caller: &CallerName, rule: Option<&str>, now: Now) -> bool {
        let mut overlay = self.changing();
        let key = self.key_of(caller);
        let count = overlay.blocks.len();
        let is_other = |block: &Block| self.key_of(&block.caller) != key || block.rule.as_deref() != rule;
        overlay.blocks.retain(|block| is_other(block) && block.stands(now.moment));
        self.switch_blocks(&overlay, now);
        overlay.blocks.len() < count
    }

    /// The callers that are kept out.
    #[must_use]
    pub fn blocks(&self, now: Now) -> Vec<Block> {
        self.changing().blocks.iter().filter(|block| block.stands(now.moment)).cloned().collect()
    }

    fn switch_blocks(&self, overlay: &Overlay, now: Now) {
        let mut current = super::Current::clone(&self.current.read());
        let plan = Arc::clone(&current.plan);
        current.set_blocks(blocks(overlay, &plan.policy, &plan.keys, now));
        self.current.replace(&current);
    }

    /// The refusal of a request whose caller is kept out, if it is.
    #[cold]
    pub(super) fn refuse_blocked(&self, walk: &Walk<'_>, plan: &HeldPlan, now: Now) -> Option<Decision> {
        let (refusal, cause, position) = match walk.barred()? {
            Err(header) => {
                let refusal = Refusal { reason: Reason::AmbiguousKey, retry: Retry::Never };
                (refusal, Cause::BadKey { header: header.into() }, None)
            }
            Ok(barred) => {
                let after =
                    |until: Moment| Retry::After(until.since(now.moment).max(Duration::from_nanos(1)));
                let retry = barred.until.map_or(Retry::Never, after);
                (Refusal { reason: Reason::Blocked, retry }, Cause::Blocked, barred.rule)
            }
        };
        let level = walk.criticality.index();
        let rule = if let Some(position) = position {
            let ruled = walk.ruled(position);
            ruled.counts.refused[level].add();
            ruled.counts.blocked[level].fetch_add(1, Ordering::Relaxed);
            ruled.rule.name.as_str()
        } else {
            let counts = if cause == Cause::Blocked { &self.books.blocked } else { &self.books.unclear };
            counts[level].add();
            OPERATOR
        };
        let (refusal_noted, wait) = (Some(refusal), Duration::ZERO);
        let entry =
            Entry { refusal: refusal_noted, rule: Some(rule), position, is_shadow_refused: false, wait };
        let (id, _) = self.books.enter(walk, now, entry);
        Some(Decision::Refuse(Refused {
            id,
            refusal,
            cause,
            criticality: walk.criticality,
            cost: walk.cost,
            plan: Arc::clone(plan),
            route: walk.route.map_or(0, |(index, _)| index),
            position: position.unwrap_or(u16::MAX),
            upstream: None,
            at: now,
            caller: walk.caller_key,
            mets: Mets::new(),
        }))
    }
}

impl<'a> Walk<'a> {
    /// The order that keeps its caller out, or the header field by which it could be two callers.
    pub(crate) fn barred(&self) -> Option<Result<Barred, &'a str>> {
        let (_, route) = self.route.filter(|(_, route)| !route.is_exempt)?;
        if let Err(NoPart::Repeated(header)) = self.caller {
            return Some(Err(header));
        }
        let is_meant = |barred: &&Barred| {
            barred.until.is_none_or(|until| self.now < until)
                && barred.rule.is_none_or(|rule| route.rules.contains(&usize::from(rule)))
        };
        let found = |key: &Key| self.current.blocks.get(key)?.iter().find(is_meant).copied();
        if let Some(barred) = self.caller_key.as_ref().and_then(found) {
            return Some(Ok(barred));
        }
        for check in self.checks() {
            for part in self.parts(self.ruled(check.rule)) {
                match part {
                    Ok(part) => {
                        let barred = found(&self.plan().keys.of(&part));
                        let of_rule = |barred: &Barred| barred.rule.is_none_or(|rule| rule == check.rule);
                        if let Some(barred) = barred.filter(of_rule) {
                            return Some(Ok(barred));
                        }
                    }
                    Err(NoPart::Repeated(header)) => return Some(Err(header)),
                    Err(NoPart::Missing) => {}
                }
            }
        }
        None
    }
}
