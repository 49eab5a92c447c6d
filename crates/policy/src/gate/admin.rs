//! What operators do to a running gate: replace the policy, switch modes, give a caller a limit of its own, look.
//!
//! Switches and overrides are an overlay: the policy stays what was written, and at their end the gate decides by
//! it again without anybody's help. They survive a new policy as long as it has a rule of that name.
//!
//! | what | until | survives a new policy |
//! |---|---|---|
//! | [`Gate::set_mode`] | its end, or for good | yes |
//! | [`Gate::set_override`] | its end | yes |
//! | counters of a rule | | when its name, key, family of algorithms and `max_keys` stay the same |
//! | what a reserve has in flight, how far a shed rule has come | | when its name stays the same |

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard, PoisonError};

use tidegate_core::heavy::{Heavy, Ranking};
use tidegate_core::keyed::Key;
use tidegate_core::permit::Outcome;
use tidegate_core::{Invalid, Moment, Usage};

use super::blocking::{Block, OPERATOR, blocks};
use super::current::{Current, Own, Switch};
use super::keys::{Keying, Part, written};
use super::naming::{CallerName, CounterName};
use super::plan::{Builder, Chosen, Counters, Measure, Plan, Ruled};
use super::stripes::Count;
use super::{Gate, Now};
use crate::decision::{DecisionId, ReasonWord, places};
use crate::policy::{KeySource, Limit, Mode, Policy};
use crate::record::Record;

/// The most overrides that stand at once.
pub(super) const MOST_STANDING: usize = 1024;

/// What operators ordered, by the names in the policy.
#[derive(Debug, Default)]
pub(super) struct Overlay {
    modes: HashMap<String, (Mode, Option<Moment>)>,
    overrides: Vec<Order>,
    pub(super) blocks: Vec<Block>,
}

impl Overlay {
    pub(super) fn standing_overrides(&self, now: Now) -> usize {
        self.overrides.iter().filter(|order| now.moment < order.until).count()
    }
}

/// One caller's limit by one rule, for a time.
#[derive(Clone, Debug, PartialEq)]
pub struct Order {
    /// The caller.
    pub caller: CallerName,
    /// The rule.
    pub rule: String,
    /// What it allows that caller.
    pub limit: Limit,
    /// When that ends.
    pub until: Moment,
}

/// What a gate has done since it was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statistics {
    /// Decisions that admitted. A request that an upstream turns away leaves this count for the other one.
    pub admitted: u64,
    /// Decisions that refused, and requests that an upstream turned away.
    pub refused: u64,
    /// How many admitted requests ended so: ok, failed, overloaded, abandoned.
    pub ended: [u64; 4],
    /// Its rules, in the order of the policy.
    pub rules: Vec<RuleStatistics>,
    /// Requests of callers that an operator keeps out altogether, by criticality, in the order of
    /// [`Criticality::ALL`](tidegate_core::Criticality::ALL).
    pub blocked: [u64; 4],
    /// Requests that could be such a caller's, in the same order.
    pub unclear: [u64; 4],
    /// Its upstreams, in the order of the policy.
    pub upstreams: Vec<UpstreamRefusals>,
}

/// What one upstream has turned away of what the rules had admitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpstreamRefusals {
    /// Its name in metrics and records: `upstream:orders`.
    pub name: Arc<str>,
    /// By reason, in the order of [`ReasonWord::ALL`](crate::ReasonWord::ALL), and by criticality, in the order of
    /// [`Criticality::ALL`](tidegate_core::Criticality::ALL).
    pub refused: [[u64; 4]; ReasonWord::ALL.len()],
}

impl UpstreamRefusals {
    /// All of them.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.refused.iter().flatten().sum()
    }
}

/// What one rule has done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleStatistics {
    /// Its name.
    pub rule: String,
    /// Its mode at this moment.
    pub mode: Mode,
    /// Requests that it let pass while it was enforced, those among them that an upstream then turned away.
    pub admitted: u64,
    /// Requests that it refused.
    pub refused: u64,
    /// Those by criticality, in the order of [`Criticality::ALL`](tidegate_core::Criticality::ALL).
    pub refused_by_criticality: [u64; 4],
    /// Of those the ones whose key could be read in two ways.
    pub ambiguous_by_criticality: [u64; 4],
    /// Of those the ones whose caller an operator keeps out.
    pub blocked_by_criticality: [u64; 4],
    /// Requests that passed and that it, or its shadow value, would have refused.
    pub shadow_refused: u64,
    /// Keys that have something used or in flight.
    pub keys: usize,
    /// How often a newcomer found the table full and was decided by the shared counter.
    pub overflowed: u64,
    /// The bytes its counters occupy.
    pub bytes: usize,
}

/// What one rule has refused, or an upstream has turned away.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleRefusals {
    /// Its name; of an upstream, `upstream:orders`.
    pub rule: String,
    /// Requests that it refused.
    pub refused: u64,
    /// Requests that passed and that it, or its shadow value, would have refused.
    pub shadow_refused: u64,
    /// How often a newcomer found the table full and was decided by the shared counter.
    pub overflowed: u64,
}

impl Gate {
    /// Replaces the policy. Rules that stay the same keep their counters, changed ones what was consumed; requests
    /// admitted before give back what they hold as if nothing had happened.
    ///
    /// # Errors
    /// When the policy exceeds a bound (see [`Gate::new`]); then nothing changes.
    pub fn swap(&self, policy: Policy, now: Now) -> Result<u64, Invalid> {
        let overlay = self.changing();
        let version = self.version() + 1;
        self.rebuild(&overlay, policy, version, now)?;
        Ok(version)
    }

    /// Switches a rule's mode, until a moment or for good.
    ///
    /// # Errors
    /// When there is no such rule.
    pub fn set_mode(&self, rule: &str, mode: Mode, now: Now, until: Option<Moment>) -> Result<(), Invalid> {
        let mut overlay = self.changing();
        self.known_rule(rule)?;
        overlay.modes.retain(|_, (_, until)| until.is_none_or(|until| now.moment < until));
        overlay.modes.insert(rule.to_owned(), (mode, until));
        self.switch(&overlay);
        if mode == Mode::Disabled {
            self.rest(rule);
        }
        Ok(())
    }

    /// Ends what [`set_mode`](Self::set_mode) switched.
    ///
    /// # Errors
    /// When there is no such rule.
    pub fn clear_mode(&self, rule: &str) -> Result<(), Invalid> {
        let mut overlay = self.changing();
        self.known_rule(rule)?;
        overlay.modes.remove(rule);
        self.switch(&overlay);
        Ok(())
    }

    /// Gives a caller a limit of its own by a rule, until a moment. Of a rate it begins with nothing used.
    ///
    /// # Errors
    /// When there is no such rule, its key does not tell callers apart, the limit is of another kind than the rule's,
    /// or 1024 of them stand already.
    pub fn set_override(
        &self,
        caller: impl Into<CallerName>,
        rule: &str,
        limit: Limit,
        until: Moment,
        now: Now,
    ) -> Result<(), Invalid> {
        let caller = caller.into();
        let mut overlay = self.changing();
        self.known_rule(rule)?;
        let tells_callers = |ruled: &Ruled| {
            let is_senders =
                matches!(ruled.rule.key.0.as_slice(), [KeySource::Header(_) | KeySource::ClientIp]);
            ruled.rule.name == rule && (ruled.tells_callers || is_senders)
        };
        if !self.current.read().plan.rules.iter().any(tells_callers) {
            return Err(Invalid::new("rule of an override", rule, "one whose key tells callers apart"));
        }
        let before = overlay.overrides.clone();
        let key = self.key_of(&caller);
        let is_other = |order: &Order| self.key_of(&order.caller) != key || order.rule != rule;
        overlay.overrides.retain(|order| is_other(order) && now.moment < order.until);
        if overlay.overrides.len() + overlay.blocks.len() >= MOST_STANDING {
            return Err(Invalid::new("overrides", MOST_STANDING + 1, "at most 1024 at once"));
        }
        overlay.overrides.push(Order { caller, rule: rule.to_owned(), limit, until });
        let built = self.rebuild_as_it_is(&overlay, now);
        if built.is_err() {
            overlay.overrides = before;
        }
        built
    }

    /// Ends a caller's own limit by a rule; returns whether there was one.
    ///
    /// # Errors
    /// Never for a policy that was taken before.
    pub fn clear_override(
        &self,
        caller: impl Into<CallerName>,
        rule: &str,
        now: Now,
    ) -> Result<bool, Invalid> {
        let mut overlay = self.changing();
        let count = overlay.overrides.len();
        let key = self.key_of(&caller.into());
        overlay.overrides.retain(|order| self.key_of(&order.caller) != key || order.rule != rule);
        if overlay.overrides.len() == count {
            return Ok(false);
        }
        self.rebuild_as_it_is(&overlay, now).map(|()| true)
    }

    /// The overrides that stand.
    #[must_use]
    pub fn overrides(&self, now: Now) -> Vec<Order> {
        let overlay = self.changing();
        overlay.overrides.iter().filter(|order| now.moment < order.until).cloned().collect()
    }

    /// A rule's mode, and until when it was switched to it; none when there is no such rule.
    #[must_use]
    pub fn mode(&self, rule: &str, now: Now) -> Option<(Mode, Option<Moment>)> {
        let current = self.current.read();
        let index = current.plan.rules.iter().position(|ruled| ruled.rule.name == rule)?;
        let switch = current.modes.get(index)?;
        let mode = switch.mode(now.moment);
        let until = switch.switched.and_then(|(_, until)| until).filter(|until| now.moment < *until);
        Some((mode, until))
    }

    /// What a key has used by a rule; none when there is no such rule, it counts nothing, or the key has too few parts. The parts of a
    /// composite key are separated by `|`; requests without a key are `-`.
    #[must_use]
    pub fn counter<'k>(&self, rule: &str, key: impl Into<CounterName<'k>>, now: Now) -> Option<Usage> {
        let current = self.current.read();
        let usage = self.with_counter(&current, rule, key.into(), now, |chosen, key| match &chosen.measure {
            Measure::Rate(counter) => Some(counter.usage(key, now)),
            Measure::Places(table, limit) => Some(places(table.in_flight(key), *limit)),
            Measure::Reserved(reserved) => {
                let capacity = reserved.room().capacity;
                Some(places(reserved.in_flight(key), capacity))
            }
            Measure::Shed(_) => None,
        });
        usage.flatten()
    }

    /// Forgets what a key has used by a rule; returns whether that could be done. Places in flight come back by
    /// themselves and are not forgotten.
    pub fn reset_counter<'k>(&self, rule: &str, key: impl Into<CounterName<'k>>, now: Now) -> bool {
        let current = self.current.read();
        let reset = self.with_counter(&current, rule, key.into(), now, |chosen, key| match &chosen.measure {
            Measure::Rate(counter) => {
                counter.reset(key, now);
                true
            }
            Measure::Places(..) | Measure::Reserved(_) | Measure::Shed(_) => false,
        });
        reset.unwrap_or(false)
    }

    /// The last decisions, the latest first: 1024 refused ones, and those that a shadow would have refused among
    /// them; and 256 others. In a flood not all of them are noted.
    #[must_use]
    pub fn recent(&self, is_refused_only: bool) -> Vec<Record> {
        self.books.recent.records(is_refused_only)
    }

    /// One of the last decisions.
    #[must_use]
    pub fn decision(&self, id: DecisionId) -> Option<Record> {
        self.books.recent.find(id)
    }

    /// The heaviest callers, at most 32, by the key of the rule that refused or of the first that tells callers apart.
    /// Requests are counted, and in a flood estimated from one in sixteen.
    #[must_use]
    pub fn callers(&self, ranking: Ranking, most: usize) -> Vec<Heavy> {
        let mut ranked = self.books.callers.ranked(ranking);
        ranked.truncate(most);
        ranked
    }

    /// Halves what [`callers`](Self::callers) counts, so that the past fades; to be called every minute.
    pub fn fade_callers(&self) {
        self.books.callers.fade();
    }

    /// What each rule has refused, and each upstream that has turned anything away, without looking into the tables:
    /// to be asked every second.
    #[must_use]
    pub fn refusals(&self) -> Vec<RuleRefusals> {
        let plan = Arc::clone(&self.current.read().plan);
        let refusals = |ruled: &Ruled| {
            let stores = plan.stores.iter().filter(|kept| kept.name.rule == ruled.rule.name);
            let overflowed = stores.map(|kept| match &kept.counters {
                Counters::Rate(store) => store.overflowed(),
                Counters::Places(table) => table.overflowed(),
                Counters::Shed(_) => 0,
            });
            RuleRefusals {
                rule: ruled.rule.name.clone(),
                refused: ruled.counts.refused.iter().map(Count::sum).sum(),
                shadow_refused: ruled.counts.shadow_refused.sum(),
                overflowed: overflowed.sum(),
            }
        };
        let turned = upstreams(&plan).filter(|upstream| upstream.total() > 0);
        let turned = turned.map(|upstream| RuleRefusals {
            rule: upstream.name.to_string(),
            refused: upstream.total(),
            shadow_refused: 0,
            overflowed: 0,
        });
        let orders = self.books.blocked.iter().chain(&self.books.unclear);
        let refused = orders.map(Count::sum).sum();
        let ordered = RuleRefusals { rule: OPERATOR.to_owned(), refused, shadow_refused: 0, overflowed: 0 };
        let ordered = (refused > 0).then_some(ordered);
        plan.rules.iter().map(refusals).chain(turned).chain(ordered).collect()
    }

    /// What it has done since it was made. Counting keys walks the tables beside live traffic.
    #[must_use]
    pub fn statistics(&self, now: Now) -> Statistics {
        let current = Current::clone(&self.current.read());
        let refused = self.books.refused.sum();
        let rules = (0..).zip(&current.plan.rules).map(|(index, ruled)| {
            let refused_by_criticality = ruled.counts.refused.each_ref().map(Count::sum);
            let ambiguous = ruled.counts.ambiguous.each_ref();
            let mut statistics = RuleStatistics {
                rule: ruled.rule.name.clone(),
                mode: current.mode(index, now.moment),
                admitted: ruled.counts.admitted.sum(),
                refused: refused_by_criticality.iter().sum(),
                refused_by_criticality,
                blocked_by_criticality: ruled
                    .counts
                    .blocked
                    .each_ref()
                    .map(|count| count.load(Ordering::Relaxed)),
                ambiguous_by_criticality: ambiguous.map(|count| count.load(Ordering::Relaxed)),
                shadow_refused: ruled.counts.shadow_refused.sum(),
                keys: 0,
                overflowed: 0,
                bytes: 0,
            };
            for kept in current.plan.stores.iter().filter(|kept| kept.name.rule == ruled.rule.name) {
                let (keys, overflowed, bytes) = match &kept.counters {
                    Counters::Rate(store) => (store.active(now), store.overflowed(), store.bytes()),
                    Counters::Places(table) => (table.active(), table.overflowed(), table.bytes()),
                    Counters::Shed(shedder) => (0, 0, size_of_val(&**shedder)),
                };
                statistics.keys += keys;
                statistics.overflowed += overflowed;
                statistics.bytes += bytes;
            }
            statistics
        });
        let outcomes = [Outcome::Ok, Outcome::Failed, Outcome::Overloaded, Outcome::Abandoned];
        Statistics {
            admitted: self.books.decided().saturating_sub(refused),
            refused,
            ended: outcomes.map(|outcome| self.books.ended[outcome as usize].sum()),
            rules: rules.collect(),
            blocked: self.books.blocked.each_ref().map(Count::sum),
            unclear: self.books.unclear.each_ref().map(Count::sum),
            upstreams: upstreams(&current.plan).collect(),
        }
    }

    pub(super) fn changing(&self) -> MutexGuard<'_, Overlay> {
        self.changing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn key_of(&self, caller: &CallerName) -> Key {
        let plan = Arc::clone(&self.current.read().plan);
        caller.key(&plan.keys, &plan.policy)
    }

    /// The fingerprint of a caller, as lists show it.
    #[must_use]
    pub fn fingerprint(&self, caller: &CallerName) -> u64 {
        self.key_of(caller).bits()
    }

    pub(super) fn known_rule(&self, rule: &str) -> Result<(), Invalid> {
        let is_known = self.current.read().plan.rules.iter().any(|ruled| ruled.rule.name == rule);
        if is_known { Ok(()) } else { Err(Invalid::new("rule", rule, "one of the policy's rules")) }
    }

    fn rebuild_as_it_is(&self, overlay: &Overlay, now: Now) -> Result<(), Invalid> {
        let (policy, version) = (self.policy(), self.version());
        self.rebuild(overlay, Arc::unwrap_or_clone(policy), version, now)
    }

    /// Puts `policy` under the overlay in the place of what is there.
    fn rebuild(&self, overlay: &Overlay, policy: Policy, version: u64, now: Now) -> Result<(), Invalid> {
        let before = Arc::clone(&self.current.read().plan);
        let told = self.told.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut builder = Builder::new(self.seed, Arc::clone(&before.keys), &before.stores, now).told(told);
        let built = own_limits(&mut builder, overlay, &policy, &before.keys, now)
            .and_then(|overrides| Ok((overrides, builder.build(policy, &self.books)?)));
        let result = built.map(|(overrides, (plan, limits))| {
            let modes = modes(overlay, &plan.rules);
            let (plan, limits, overrides) = (Arc::new(plan), Arc::new(limits), Arc::new(overrides));
            let blocks = blocks(overlay, &plan.policy, &plan.keys, now);
            let (has_blocks, blocks) = (!blocks.is_empty(), Arc::new(blocks));
            let new = Current { version, plan, limits, modes, overrides, blocks, has_blocks };
            self.current.replace(&new);
        });
        // Whoever decided under what was there has finished, so its limits can leave the tables; and so can those
        // that were enrolled for a policy that was then not taken.
        let after = Arc::clone(&self.current.read().plan);
        after.stores.iter().filter_map(|kept| kept.rate()).for_each(|store| store.tidy(now));
        result
    }

    fn switch(&self, overlay: &Overlay) {
        let mut current = Current::clone(&self.current.read());
        current.modes = modes(overlay, &current.plan.rules);
        self.current.replace(&current);
    }

    fn with_counter<T>(
        &self,
        current: &Current,
        rule: &str,
        key: CounterName<'_>,
        now: Now,
        then: impl FnOnce(&Chosen, Key) -> T,
    ) -> Option<T> {
        let position = current.plan.rules.iter().position(|ruled| ruled.rule.name == rule)?;
        let (index, ruled) = (u16::try_from(position).ok()?, current.plan.rules.get(position)?);
        let keys = &current.plan.keys;
        let (key, caller) = match (&ruled.keying, key) {
            (Keying::Global, _) => (keys.everybody, None),
            (_, CounterName::Fingerprint(bits)) => {
                let key = Key::from_bits(bits);
                (key, (ruled.rule.key.0.len() == 1).then_some(key))
            }
            (_, CounterName::Written("-")) => (keys.missing, None),
            (Keying::Caller | Keying::Parts(_), CounterName::Written(key)) => {
                let parts = parts_of(ruled, &current.plan.policy, key)?;
                let is_caller = |source: &KeySource| {
                    *source == KeySource::Caller || current.plan.policy.caller.0.contains(source)
                };
                let at = ruled.rule.key.0.iter().position(is_caller);
                let caller = at.or((parts.len() == 1).then_some(0)).and_then(|at| parts.get(at));
                (keys.all(&parts), caller.map(|part| keys.of(part)))
            }
        };
        if let Some(own) = caller.and_then(|caller| current.overridden(caller, index, now.moment)) {
            return Some(then(own, key));
        }
        let known = caller.and_then(|caller| current.known(caller));
        let limits = current.limits.rules.get(position)?;
        let (chosen, _) = limits.choose(index, current.plan.policy.default_criticality, known);
        Some(then(chosen, key))
    }
}

pub(super) fn upstreams(plan: &Plan) -> impl Iterator<Item = UpstreamRefusals> {
    plan.upstreams.iter().map(|upstream| UpstreamRefusals {
        name: Arc::clone(&upstream.refuses_as),
        refused: upstream.counts.sums(),
    })
}

fn modes(overlay: &Overlay, rules: &[Ruled]) -> Arc<[Switch]> {
    let switch = |ruled: &Ruled| Switch {
        written: ruled.rule.mode,
        switched: overlay.modes.get(&ruled.rule.name).copied(),
    };
    rules.iter().map(switch).collect()
}

type Owns = HashMap<Key, Vec<Own>, super::plan::ByKey>;

fn own_limits(
    builder: &mut Builder,
    overlay: &Overlay,
    policy: &Policy,
    keys: &super::keys::Keys,
    now: Now,
) -> Result<Owns, Invalid> {
    let mut owns = Owns::default();
    for order in overlay.overrides.iter().filter(|order| now.moment < order.until) {
        let found = (0..).zip(&policy.rules).find(|(_, rule)| rule.name == order.rule);
        let Some((rule, written_rule)) = found else { continue };
        let chosen = builder.own(written_rule, &order.caller.label(), &order.limit)?;
        let own = Own { rule, chosen, until: order.until };
        owns.entry(order.caller.key(keys, policy)).or_default().push(own);
    }
    Ok(owns)
}

/// The parts of a key as an operator writes them.
fn parts_of<'a>(ruled: &Ruled, policy: &Policy, key: &'a str) -> Option<Vec<Part<'a>>> {
    let sources = &ruled.rule.key.0;
    let texts: Vec<&str> = key.splitn(sources.len().max(1), '|').collect();
    if texts.len() != sources.len() {
        return None;
    }
    let part = |(source, text): (&KeySource, &'a str)| match source {
        KeySource::Caller | KeySource::ClientIp => written(text, policy),
        KeySource::Header(_) | KeySource::Path | KeySource::Route => Part::Text(text.as_bytes()),
        KeySource::Global => Part::Everybody,
    };
    Some(sources.iter().zip(texts).map(part).collect())
}
