//! What a gate remembers of its decisions: numbers, counts, the last ones, the heaviest callers.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tidegate_core::heavy::{Event, TopCallers};
use tidegate_core::keyed::Key;
use tidegate_core::permit::Outcome;
use tidegate_core::{Cost, Criticality, Invalid, Refusal};

use super::Now;
use super::check::{Check, Keyed};
use super::keys::Part;
use super::recent::{Note, Recent, Spot, Text};
use super::stripes::{Apart, Count, Counts, STRIPES};
use super::walk::Walk;
use crate::decision::{Admitted, DecisionId, ReasonWord};
use crate::policy::{KeySource, Network};

/// Callers on each list of the heaviest.
const TOP_CALLERS: usize = 32;

/// Requests are all counted for the lists of the heaviest callers as long as all are [noted](super::recent). In a flood one
/// of so many is, for all of them: whoever is heavy enough for the list has thousands.
const ONE_IN: u32 = 16;

/// Names from which on the counts of rules and upstreams that no policy has are let go. Some kilobytes each, and a policy
/// that is changed every minute under new names would keep them all.
const MOST_COUNTS: usize = 1_024;

/// What one rule has decided since the gate was made, policies that replaced each other included.
#[derive(Debug, Default)]
pub(crate) struct RuleCounts {
    pub(crate) admitted: Count,
    /// By criticality.
    pub(crate) refused: [Count; 4],
    /// By criticality; of the refused ones, those whose key could be read in two ways.
    pub(crate) ambiguous: [AtomicU64; 4],
    /// By criticality; of the refused ones, those whose caller an operator keeps out.
    pub(crate) blocked: [AtomicU64; 4],
    pub(crate) shadow_refused: Count,
}

/// What one upstream has turned away since the gate was made, by reason and criticality.
#[derive(Debug, Default)]
pub(crate) struct TurnedCounts(Counts<{ ReasonWord::ALL.len() * 4 }>);

impl TurnedCounts {
    fn add(&self, word: ReasonWord, criticality: Criticality) {
        self.0.add(word as usize * 4 + criticality.index());
    }

    /// In the order of [`ReasonWord::ALL`], then of [`Criticality::ALL`].
    pub(crate) fn sums(&self) -> [[u64; 4]; ReasonWord::ALL.len()] {
        let sum = |word| Criticality::ALL.map(|level| self.0.sum(word as usize * 4 + level.index()));
        ReasonWord::ALL.map(sum)
    }
}

#[derive(Debug)]
pub(crate) struct Books {
    /// In parts by caller, so that the same requests get the same numbers each time.
    decided: Count,
    /// An odd number, so that multiplying by it maps every number to another one.
    stride: u64,
    rules: Mutex<BTreeMap<String, Arc<RuleCounts>>>,
    upstreams: Mutex<BTreeMap<String, Arc<TurnedCounts>>>,
    /// Requests turned away of callers that nobody could name, by the callers' part.
    unnamed: [Apart<AtomicU64>; STRIPES],
    pub(crate) callers: TopCallers,
    pub(crate) recent: Recent,
    pub(crate) refused: Count,
    /// By criticality: callers that an operator keeps out altogether.
    pub(crate) blocked: [Count; 4],
    /// By criticality: those who could be such a caller.
    pub(crate) unclear: [Count; 4],
    pub(crate) ended: [Count; 4],
}

/// What was decided, for the books.
#[derive(Clone, Copy)]
pub(crate) struct Entry<'a> {
    pub(crate) refusal: Option<Refusal>,
    /// The rule that refused, or the first in shadow that would have.
    pub(crate) rule: Option<&'a str>,
    /// Its position, where it is one of the policy's.
    pub(crate) position: Option<u16>,
    pub(crate) is_shadow_refused: bool,
    pub(crate) wait: Duration,
}

impl Books {
    pub(crate) fn new(seed: u64) -> Result<Self, Invalid> {
        Ok(Self {
            decided: Count::default(),
            stride: seed | 1,
            rules: Mutex::default(),
            upstreams: Mutex::default(),
            unnamed: Default::default(),
            callers: TopCallers::new(TOP_CALLERS)?,
            recent: Recent::new(),
            refused: Count::default(),
            blocked: Default::default(),
            unclear: Default::default(),
            ended: Default::default(),
        })
    }

    /// How many decisions there were.
    pub(crate) fn decided(&self) -> u64 {
        self.decided.sum()
    }

    /// Writes a decision down. Its number is one that no other decision of this gate has, and that does not tell
    /// how many there were.
    #[inline]
    pub(crate) fn enter(&self, walk: &Walk<'_>, now: Now, entry: Entry<'_>) -> (DecisionId, Spot) {
        let stripe = walk.caller_key.map_or(0, Key::bits) % STRIPES as u64;
        let part = usize::try_from(stripe).unwrap_or(0);
        let turn = self.decided.next_of(part);
        let number = turn.wrapping_mul(STRIPES as u64).wrapping_add(stripe);
        let id = DecisionId::new(number.wrapping_add(1).wrapping_mul(self.stride));
        if entry.refusal.is_some() {
            self.refused.add();
        }
        let is_told = entry.refusal.is_some() || entry.is_shadow_refused;
        let is_noted = self.recent.has_room(part, is_told, now.moment);
        let spot = if is_noted || turn.is_multiple_of(u64::from(ONE_IN)) {
            self.write_down(walk, now, entry, (id, turn, is_noted))
        } else {
            Spot::NOWHERE
        };
        (id, spot)
    }

    /// Names the caller, counts what it costs, and notes the decision.
    fn write_down(
        &self,
        walk: &Walk<'_>,
        now: Now,
        entry: Entry<'_>,
        (id, turn, is_noted): (DecisionId, u64, bool),
    ) -> Spot {
        let mut caller = Text::EMPTY;
        if let Ok(part) = walk.caller {
            part.show(&mut caller);
        }
        match counted_as(walk, entry.position) {
            Some((key, name)) => self.rank(key, name.as_str(), walk.cost, entry, is_noted),
            None => {
                if let Some(key) = walk.caller_key {
                    self.rank(key, caller.as_str(), walk.cost, entry, is_noted);
                }
            }
        }
        if !is_noted {
            return Spot::NOWHERE;
        }
        let note = Note {
            id,
            time: now.wall,
            method: Text::new(walk.attributes.method),
            path: Text::new(walk.attributes.path),
            route: walk.route.map_or(Text::EMPTY, |(_, route)| Text::new(&route.name)),
            caller,
            fingerprint: walk.caller_key.map(Key::bits),
            criticality: walk.criticality,
            cost: walk.cost,
            rule: entry.rule.map_or(Text::EMPTY, Text::new),
            refusal: entry.refusal,
            is_shadow_refused: entry.is_shadow_refused,
            wait: entry.wait,
            duration: None,
            outcome: None,
        };
        let stripe = walk.caller_key.map_or(0, Key::bits) % STRIPES as u64;
        self.recent.keep(turn.wrapping_add(stripe * STRIPES as u64), &note)
    }

    fn rank(&self, key: Key, caller: &str, cost: Cost, entry: Entry<'_>, is_noted: bool) {
        let times = if is_noted { 1 } else { u64::from(ONE_IN) };
        if entry.refusal.is_some() {
            return self.callers.record(key, caller, Event::Refused(times));
        }
        if entry.is_shadow_refused {
            self.callers.record(key, caller, Event::ShadowRefused(times));
        }
        let cost = Cost::from_micros(cost.micros().saturating_mul(times));
        self.callers.record(key, caller, Event::Admitted(cost));
    }

    /// A request has ended so, after so long.
    #[inline]
    pub(crate) fn end(&self, spot: Spot, id: DecisionId, outcome: Outcome, took: Option<Duration>) {
        self.ended[outcome as usize].add();
        self.recent.end(spot, id, outcome, took);
    }

    /// Has a request carry the note of its admission.
    pub(crate) fn keep_note(&self, admitted: &mut Admitted) {
        admitted.note = self.recent.copy(admitted.spot, admitted.id).map(Box::new);
    }

    /// A request that was admitted is refused after all, by an upstream with this name.
    ///
    /// Whoever turns it away does not know it any more: its caller's name is in the note of its admission, if there
    /// is one. In a flood not all have one, and those without are counted with the next one of their part that has.
    pub(crate) fn turn_away(
        &self,
        now: Now,
        admitted: &Admitted,
        refusal: Refusal,
        (by, counts): (&str, Option<&TurnedCounts>),
    ) {
        self.refused.add();
        if let Some(counts) = counts {
            counts.add(ReasonWord::of_reason(refusal.reason), admitted.criticality);
        }
        let part = usize::try_from(admitted.caller.map_or(0, Key::bits) % STRIPES as u64).unwrap_or(0);
        let Apart(unnamed) = &self.unnamed[part];
        let took = now.moment.since(admitted.began.moment);
        let turned = |note: &mut Note| {
            (note.rule, note.refusal, note.is_shadow_refused) = (Text::new(by), Some(refusal), false);
            note.duration = Some(took);
        };
        let has_room = || self.recent.has_room(part, true, now.moment);
        let noted = (admitted.spot, admitted.id, admitted.note.as_deref());
        match self.recent.turn_away(noted, has_room, turned) {
            Some(name) => {
                if let Some(key) = admitted.caller {
                    let times = unnamed.swap(0, Ordering::Relaxed).saturating_add(1);
                    self.callers.record(key, name.as_str(), Event::Refused(times));
                }
            }
            None if admitted.caller.is_some() => _ = unnamed.fetch_add(1, Ordering::Relaxed),
            None => {}
        }
    }

    /// The counts of the upstream with this name.
    pub(crate) fn turned(&self, upstream: &str) -> Arc<TurnedCounts> {
        kept(&self.upstreams, upstream)
    }

    /// The counts of the rule with this name.
    pub(crate) fn counts(&self, rule: &str) -> Arc<RuleCounts> {
        kept(&self.rules, rule)
    }
}

/// The counts with this name. Those that no policy has any more are kept for one that has them again, and let go when
/// there are too many.
fn kept<T: Default>(counts: &Mutex<BTreeMap<String, Arc<T>>>, name: &str) -> Arc<T> {
    let mut counts = counts.lock().unwrap_or_else(PoisonError::into_inner);
    if counts.len() >= MOST_COUNTS {
        counts.retain(|_, counts| Arc::strong_count(counts) > 1);
    }
    Arc::clone(counts.entry(name.to_owned()).or_default())
}

/// The caller as a rule counts it: the rule that refused, else the first that tells senders apart. None where that is
/// by `[caller]`, alone or with something else, or by nothing that a sender has.
fn counted_as(walk: &Walk<'_>, position: Option<u16>) -> Option<(Key, Text<32>)> {
    let is_sender = |source: &KeySource| matches!(source, KeySource::Header(_) | KeySource::ClientIp);
    let tells = |check: &&Check| {
        let key = &walk.ruled(check.rule).rule.key.0;
        check.keyed != Keyed::Everybody && (check.keyed == Keyed::Caller || key.iter().any(is_sender))
    };
    let mut checks = walk.checks().iter().filter(tells);
    let check = match position {
        Some(position) => checks.clone().find(|check| check.rule == position).or_else(|| checks.next()),
        None => checks.next(),
    }?;
    let ruled = walk.ruled(check.rule);
    if check.keyed == Keyed::Caller || ruled.tells_callers && ruled.rule.key.0.len() > 1 {
        return None;
    }
    let (key, mut name) = (walk.composite(ruled).ok()?, Text::EMPTY);
    for (number, part) in walk.parts(ruled).flatten().enumerate() {
        if number > 0 {
            name.append("|");
        }
        let mut shown = Text::<32>::EMPTY;
        part.show(&mut shown);
        name.append(shown.as_str());
    }
    Some((key, name))
}

impl Part<'_> {
    /// Writes what may be shown. What does not fit is cut.
    #[inline]
    fn show<const N: usize>(&self, text: &mut Text<N>) {
        // The usual cases in a few instructions: every decision comes by here.
        match self {
            Part::Text(bytes) if bytes.is_ascii() => return text.shorten(bytes),
            Part::Address(Network { address: IpAddr::V4(address), prefix: 32 }) => {
                return text.dotted(*address);
            }
            Part::Text(_) | Part::Address(_) | Part::Everybody => {}
        }
        let written = write!(text, "{self}");
        debug_assert!(written.is_ok(), "writing to a text of fixed length never fails");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Server;

    #[test]
    fn counts_of_names_that_nobody_has_are_let_go_when_there_are_too_many() {
        let books = Books::new(1).unwrap();
        let held = books.counts("held");
        held.admitted.add();
        for number in 0..3_000 {
            drop((books.counts(&number.to_string()), books.turned(&number.to_string())));
        }
        assert!(books.rules.lock().unwrap().len() <= MOST_COUNTS + 1);
        assert!(books.upstreams.lock().unwrap().len() <= MOST_COUNTS + 1);
        assert_eq!(books.counts("held").admitted.sum(), 1);
    }

    #[test]
    fn what_is_shown_in_haste_is_what_is_shown() {
        for name in
            ["", "acct_1", "twelve_chars", "thirteen_char", "sk_live_4eC39HqLyjWDarj", "ünïcödé_lönger"]
        {
            let (part, mut text) = (Part::Text(name.as_bytes()), Text::<32>::EMPTY);
            part.show(&mut text);
            assert_eq!(text.as_str(), part.to_string());
        }
        for address in [[0, 0, 0, 0], [192, 0, 2, 1], [10, 20, 99, 100], [255, 255, 255, 255]] {
            let network = Server::default().network_of(address.into());
            let (part, mut text) = (Part::Address(network), Text::<32>::EMPTY);
            part.show(&mut text);
            assert_eq!(text.as_str(), part.to_string());
        }
    }
}
