//! The last decisions, in rings of fixed length.
//!
//! Whoever asks "why was I refused?" has a decision's number in hand. So the last decisions are kept: refused ones
//! and those that a shadow rule would have refused in a ring of their own, so that a flood of admitted requests
//! does not wash them away. Notes have a fixed size, names are cut to it, and writing one takes a lock that only
//! two decisions a whole ring apart could contend for.
//!
//! In a flood nobody could read them as fast as they come, writing them down would be a tenth of an admission and half
//! of a refusal, and one caller's would wash away all others'. So each of sixteen parts of the callers has a sixteenth
//! of each ring noted every sixtieth of a second:
//!
//! | | a part's, in a span | all are noted up to | of a million a second |
//! |---|---|---|---|
//! | admitted | 16 | 15 000 a second | one in 65 |
//! | refused | 64 | 61 000 a second | one in 16 |
//!
//! A request that waits for a place is admitted and may yet be refused. By then others may have taken its place among
//! the admitted, so it carries a copy of its note.

use std::fmt;
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tidegate_core::permit::Outcome;
use tidegate_core::{Cost, Criticality, Moment, Refusal, WallTime};

use super::stripes::{Apart, STRIPES};
use crate::decision::DecisionId;
use crate::record::{Decided, Record};

/// Refused decisions that are kept.
const REFUSED: usize = 1024;
/// Admitted decisions that are kept.
const ADMITTED: usize = 256;

/// Decisions noted in a span, for each part of the callers: together, a whole ring.
const ADMITTED_IN_A_SPAN: u64 = (ADMITTED / STRIPES) as u64;
const REFUSED_IN_A_SPAN: u64 = (REFUSED / STRIPES) as u64;
/// A span is 2^24 ns, about a sixtieth of a second.
const SPAN_BITS: u32 = 24;
/// The lower bits of a part's word, in which it counts.
const COUNTED: u64 = 0xff;

/// The first bytes of a text, cut between characters, in place.
#[derive(Clone, Copy)]
pub(crate) struct Text<const N: usize> {
    length: u8,
    bytes: [u8; N],
}

impl<const N: usize> Text<N> {
    pub(crate) const EMPTY: Self = Self { length: 0, bytes: [0; N] };

    pub(crate) fn new(text: &str) -> Self {
        let mut new = Self::EMPTY;
        new.append(text);
        new
    }

    pub(crate) fn append(&mut self, text: &str) {
        let start = usize::from(self.length);
        let end = text.floor_char_boundary(N.min(255) - start);
        self.bytes[start..start + end].copy_from_slice(&text.as_bytes()[..end]);
        self.length = u8::try_from(start + end).unwrap_or(self.length);
    }

    /// Of more than twelve characters, which must be ASCII, the first eight.
    pub(crate) fn shorten(&mut self, ascii: &[u8]) {
        let end = if ascii.len() > 12 { 8 } else { ascii.len() };
        self.bytes[..end].copy_from_slice(&ascii[..end]);
        self.length = u8::try_from(end).unwrap_or(0);
        if ascii.len() > end {
            self.append("…");
        }
    }

    /// An address, as its `Display` writes it.
    pub(crate) fn dotted(&mut self, address: Ipv4Addr) {
        for (number, octet) in address.octets().into_iter().enumerate() {
            if number > 0 {
                self.put(b'.');
            }
            for place in [100, 10, 1] {
                if octet >= place || place == 1 {
                    self.put(b'0' + octet / place % 10);
                }
            }
        }
    }

    /// One more character, if there is room.
    fn put(&mut self, ascii: u8) {
        if let Some(place) = self.bytes.get_mut(usize::from(self.length)) {
            *place = ascii;
            self.length += 1;
        }
    }

    pub(crate) fn as_str(&self) -> &str {
        std::str::from_utf8(&self.bytes[..usize::from(self.length)]).unwrap_or_default()
    }

    fn owned(&self) -> Option<String> {
        let text = self.as_str();
        (!text.is_empty()).then(|| text.to_owned())
    }
}

impl<const N: usize> fmt::Write for Text<N> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.append(text);
        Ok(())
    }
}

impl<const N: usize> fmt::Debug for Text<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_str().fmt(f)
    }
}

/// What is kept of a decision.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Note {
    pub(crate) id: DecisionId,
    pub(crate) time: WallTime,
    pub(crate) method: Text<8>,
    pub(crate) path: Text<64>,
    pub(crate) route: Text<24>,
    pub(crate) caller: Text<32>,
    pub(crate) fingerprint: Option<u64>,
    pub(crate) criticality: Criticality,
    pub(crate) cost: Cost,
    /// The rule or upstream that refused, or the first rule in shadow that would have.
    pub(crate) rule: Text<40>,
    pub(crate) refusal: Option<Refusal>,
    pub(crate) is_shadow_refused: bool,
    pub(crate) wait: Duration,
    pub(crate) duration: Option<Duration>,
    pub(crate) outcome: Option<Outcome>,
}

impl Note {
    pub(crate) fn record(&self) -> Record {
        let rule = self.rule.owned();
        let shadow_refusals =
            if self.is_shadow_refused { rule.iter().cloned().collect() } else { Vec::new() };
        Record {
            id: Some(self.id),
            method: self.method.as_str().to_owned(),
            path: self.path.as_str().to_owned(),
            route: self.route.owned(),
            caller: self.caller.owned(),
            fingerprint: self.fingerprint,
            criticality: self.criticality,
            cost: self.cost,
            decided: if self.refusal.is_none() { Decided::Admitted } else { Decided::Refused },
            rule: rule.filter(|_| self.refusal.is_some()),
            reason: self.refusal.map(|refusal| refusal.reason.as_str().to_owned()),
            retry: self.refusal.map(|refusal| refusal.retry),
            shadow_refusals,
            wait: self.wait,
            duration: self.duration,
            outcome: self.outcome,
            ..Record::malformed(self.time)
        }
    }
}

/// Where a note was put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Spot(u32);

impl Spot {
    pub(crate) const NOWHERE: Self = Self(u32::MAX);
}

/// The last decisions of a gate.
pub(crate) struct Recent {
    /// Refused ones, and admitted ones that a shadow would have refused.
    refused: Ring,
    next_refused: AtomicU64,
    /// Others, each at the turn its caller's part of the count gives it.
    admitted: Ring,
    /// For each part, admitted and refused: the span in which it was last noted, and how often.
    paced: [Apart<Paced>; STRIPES],
}

#[derive(Default)]
struct Paced {
    admitted: AtomicU64,
    refused: AtomicU64,
}

struct Ring(Box<[Mutex<Option<Note>>]>);

impl fmt::Debug for Recent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recent").finish_non_exhaustive()
    }
}

impl Recent {
    pub(crate) fn new() -> Self {
        let (refused, admitted) = (Ring::new(REFUSED), Ring::new(ADMITTED));
        Self { refused, next_refused: AtomicU64::new(0), admitted, paced: Default::default() }
    }

    /// Whether another decision of this part is to be noted now, among the refused or the admitted. Threads that ask
    /// at once may both be told so, which does no harm.
    #[inline]
    pub(crate) fn has_room(&self, stripe: usize, is_refused: bool, now: Moment) -> bool {
        let span = now.nanos() >> SPAN_BITS << 8;
        let Apart(paced) = &self.paced[stripe % STRIPES];
        let (part, most) = if is_refused {
            (&paced.refused, REFUSED_IN_A_SPAN)
        } else {
            (&paced.admitted, ADMITTED_IN_A_SPAN)
        };
        let word = part.load(Ordering::Relaxed);
        let counted = if word & !COUNTED == span { word & COUNTED } else { 0 };
        let has_room = counted < most;
        if has_room {
            part.store(span | (counted + 1), Ordering::Relaxed);
        }
        has_room
    }

    /// Keeps a note, of an admitted request at its turn; the spot is where to add how it ended.
    #[inline]
    pub(crate) fn keep(&self, turn: u64, note: &Note) -> Spot {
        let is_refused = note.refusal.is_some() || note.is_shadow_refused;
        let place = if is_refused {
            self.refused.keep(self.next_refused.fetch_add(1, Ordering::Relaxed), note)
        } else {
            REFUSED + self.admitted.keep(turn, note)
        };
        Spot(u32::try_from(place).unwrap_or(u32::MAX))
    }

    /// Adds how it ended, if the note is still there.
    #[inline]
    pub(crate) fn end(&self, spot: Spot, id: DecisionId, outcome: Outcome, duration: Option<Duration>) {
        let spot = spot.0 as usize;
        let place = match spot.checked_sub(REFUSED) {
            None => self.refused.0.get(spot),
            Some(spot) => self.admitted.0.get(spot),
        };
        if let Some(note) =
            place.map(|place| place.lock().unwrap_or_else(PoisonError::into_inner)).as_deref_mut()
            && let Some(note) = note.as_mut().filter(|note| note.id == id)
        {
            (note.outcome, note.duration) = (Some(outcome), duration);
        }
    }

    /// The note, if it is still there.
    pub(crate) fn copy(&self, spot: Spot, id: DecisionId) -> Option<Note> {
        let spot = spot.0 as usize;
        match spot.checked_sub(REFUSED) {
            None => self.refused.with(spot, id, |note| *note),
            Some(spot) => self.admitted.with(spot, id, |note| *note),
        }
    }

    /// Takes the note of an admission to the refused ones, changed by `turn`, if there is room; returns the caller's
    /// name. If the note is not there any more, the copy is taken; nothing if there is none.
    pub(crate) fn turn_away(
        &self,
        (spot, id, copy): (Spot, DecisionId, Option<&Note>),
        has_room: impl FnOnce() -> bool,
        turn: impl Fn(&mut Note),
    ) -> Option<Text<32>> {
        let spot = spot.0 as usize;
        let found = match spot.checked_sub(REFUSED) {
            None => {
                // It is among the refused ones already, since a shadow would have refused it.
                let turned = self.refused.with(spot, id, |note| {
                    note.as_mut().map(|note| {
                        turn(note);
                        note.caller
                    })
                });
                if turned.is_some() {
                    return turned;
                }
                None
            }
            Some(admitted) => self.admitted.with(admitted, id, Option::take),
        };
        let mut note = found.or(copy.copied())?;
        turn(&mut note);
        if has_room() {
            self.refused.keep(self.next_refused.fetch_add(1, Ordering::Relaxed), &note);
        }
        Some(note.caller)
    }

    /// What is kept, the latest first.
    pub(crate) fn records(&self, is_refused_only: bool) -> Vec<Record> {
        let mut records: Vec<Record> = self.refused.records().collect();
        if is_refused_only {
            records.retain(|record| !record.is_admitted());
        } else {
            records.extend(self.admitted.records());
        }
        records.sort_by(|a, b| b.time.cmp(&a.time).then(a.id.cmp(&b.id)));
        records
    }

    pub(crate) fn find(&self, id: DecisionId) -> Option<Record> {
        self.refused.find(id).or_else(|| self.admitted.find(id))
    }
}

impl Ring {
    fn new(length: usize) -> Self {
        Self((0..length).map(|_| Mutex::new(None)).collect())
    }

    #[inline]
    fn keep(&self, turn: u64, note: &Note) -> usize {
        let place = usize::try_from(turn % self.0.len() as u64).unwrap_or(0);
        *self.0[place].lock().unwrap_or_else(PoisonError::into_inner) = Some(*note);
        place
    }

    /// Does something with the note at a place, if it is still that of this decision.
    fn with<T>(
        &self,
        place: usize,
        id: DecisionId,
        then: impl FnOnce(&mut Option<Note>) -> Option<T>,
    ) -> Option<T> {
        let mut note = self.0.get(place)?.lock().unwrap_or_else(PoisonError::into_inner);
        if note.as_ref().is_some_and(|note| note.id == id) { then(&mut note) } else { None }
    }

    fn records(&self) -> impl Iterator<Item = Record> {
        let notes = self.0.iter().map(|note| *note.lock().unwrap_or_else(PoisonError::into_inner));
        notes.flatten().map(|note| note.record())
    }

    fn find(&self, id: DecisionId) -> Option<Record> {
        self.0.iter().find_map(|note| {
            let note = note.lock().unwrap_or_else(PoisonError::into_inner);
            note.as_ref().filter(|note| note.id == id).map(Note::record)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_are_noted_in_a_span_and_as_many_in_the_next() {
        let recent = Recent::new();
        for (is_refused, most) in [(false, 16), (true, 64)] {
            let noted = |nanos| {
                (0..100).filter(|_| recent.has_room(3, is_refused, Moment::from_nanos(nanos))).count()
            };
            assert_eq!([noted(5), noted(6), noted(1 << 24), noted(5)], [most, 0, most, most]);
            assert!(recent.has_room(4, is_refused, Moment::from_nanos(5)));
        }
    }
}
