use std::borrow::Cow;
use std::sync::PoisonError;

use crate::rate::{Correction, Schedule};
use crate::sync::RwLock;
use crate::units::{Cost, Invalid};
use crate::verdict::Charge;

/// Rules one shell can know at once. A state word spends four bits on saying which one wrote it.
const PLACES: u32 = 16;

/// A rule that a shell knows, and can therefore meet in the states it keeps.
///
/// It is used with the shell that enrolled it, and returned to it by `retire` when nobody decides
/// with it any more; the type is not `Clone`, so owning it proves that.
#[derive(Debug)]
pub struct Enrolled<R> {
    pub(crate) rule: R,
    /// Unique in its shell; modulo [`PLACES`] it is the rule's place.
    pub(crate) serial: u32,
}

impl<R> Enrolled<R> {
    /// What a state word says of the rule that wrote it.
    pub(crate) const fn stamp(&self) -> u64 {
        stamp(self.serial)
    }

    /// This rule as the one that wrote a word, or will.
    pub(crate) const fn writer(&self) -> Writer<'_, R>
    where
        R: Clone,
    {
        Writer { rule: Cow::Borrowed(&self.rule), serial: self.serial }
    }
}

/// A schedule in ticks of a nanosecond, as [`AtomicDue`](super::AtomicDue) uses.
#[derive(Clone, Copy, Debug)]
pub struct Fine(pub(crate) Schedule);

/// A schedule in ticks that fit a packed slot, as [`DueTable`](crate::keyed::DueTable) uses.
#[derive(Clone, Copy, Debug)]
pub struct Packed(pub(crate) Schedule);

/// Fine or packed: a rule that is a schedule.
pub(crate) trait Scheduled: Clone {
    fn schedule(&self) -> &Schedule;
}

impl Scheduled for Fine {
    #[inline]
    fn schedule(&self) -> &Schedule {
        &self.0
    }
}

impl Scheduled for Packed {
    #[inline]
    fn schedule(&self) -> &Schedule {
        &self.0
    }
}

/// The rule that wrote a state word.
#[derive(Clone, Debug)]
pub(crate) struct Writer<'a, R: Clone> {
    pub(crate) rule: Cow<'a, R>,
    serial: u32,
}

impl<R: Clone> Writer<'_, R> {
    /// What the state word says of it.
    pub(crate) const fn stamp(&self) -> u64 {
        stamp(self.serial)
    }
}

impl<R: Scheduled> Writer<'_, R> {
    /// What settling `charge` comes to for a word of this writer whose key is so far ahead of `granted`. A charge
    /// that another rule made owes what it proves to have cost more, but gives nothing back: this rule's clock may
    /// have granted long ago what the other's has still to grant.
    pub(crate) fn correction(
        &self,
        granted: u64,
        ahead: u64,
        charge: &Charge,
        (taken, true_cost): (Cost, Cost),
    ) -> Correction {
        let schedule = self.rule.schedule();
        let is_own = charge.serial == self.serial;
        // Whatever ended at the origin, the clock has granted.
        let (seen, end) = if is_own { (schedule.seen(granted, ahead), charge.mark) } else { (granted, 0) };
        schedule.correction(seen, end, taken, true_cost)
    }
}

const fn stamp(serial: u32) -> u64 {
    (serial % PLACES) as u64
}

/// The rules a shell knows. Locked only to enrol, to retire, and to look up a rule other than the
/// one a caller holds: never while all callers hold the same rule.
#[derive(Debug)]
pub(crate) struct Roster<R> {
    places: [RwLock<Place<R>>; PLACES as usize],
}

#[derive(Debug)]
struct Place<R> {
    serial: u32,
    rule: Option<R>,
}

impl<R: Clone> Roster<R> {
    pub(crate) fn new() -> Self {
        let mut serial = 0;
        let places = [(); PLACES as usize].map(|()| {
            serial += 1;
            RwLock::new(Place { serial: serial - 1, rule: None })
        });
        Self { places }
    }

    pub(crate) fn enrol(&self, rule: R) -> Result<Enrolled<R>, Invalid> {
        for place in &self.places {
            let mut place = place.write().unwrap_or_else(PoisonError::into_inner);
            if place.rule.is_none() {
                place.rule = Some(rule.clone());
                return Ok(Enrolled { rule, serial: place.serial });
            }
        }
        Err(Invalid::new("rules of one counter", "17", "at most 16 at once; retire one first"))
    }

    /// Frees the place of a rule. Its next tenant gets a new serial, so charges made under the old one
    /// are never read with the wrong rule.
    pub(crate) fn retire(&self, serial: u32) {
        let mut place = self.place(serial).write().unwrap_or_else(PoisonError::into_inner);
        if place.serial == serial {
            *place = Place { serial: serial.wrapping_add(PLACES), rule: None };
        }
    }

    /// The rule that wrote a word with this stamp.
    pub(crate) fn stamped(&self, stamp: u64) -> Option<R> {
        Some(self.at_place(stamp)?.rule.into_owned())
    }

    /// The rule that wrote a word with this stamp: the caller's own at hand, another looked up.
    pub(crate) fn writer<'a>(&self, rule: &'a Enrolled<R>, stamp: u64) -> Option<Writer<'a, R>> {
        if stamp == rule.stamp() { Some(rule.writer()) } else { self.at_place(stamp) }
    }

    fn at_place<'a>(&self, stamp: u64) -> Option<Writer<'a, R>>
    where
        R: 'a,
    {
        let place = self.places.get(usize::try_from(stamp).ok()?)?;
        let place = place.read().unwrap_or_else(PoisonError::into_inner);
        Some(Writer { rule: Cow::Owned(place.rule.clone()?), serial: place.serial })
    }

    /// The rule enrolled under this serial, unless it has been retired.
    pub(crate) fn numbered(&self, serial: u32) -> Option<R> {
        let place = self.place(serial).read().unwrap_or_else(PoisonError::into_inner);
        if place.serial == serial { place.rule.clone() } else { None }
    }

    fn place(&self, serial: u32) -> &RwLock<Place<R>> {
        &self.places[(serial % PLACES) as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_roster_says_so_and_a_retired_place_gets_a_new_number() {
        let roster = Roster::new();
        let rules: Vec<_> = (0..PLACES).map(|rule| roster.enrol(rule).unwrap()).collect();
        assert!(roster.enrol(99).is_err());
        roster.retire(rules[3].serial);
        let newcomer = roster.enrol(77).unwrap();
        assert_eq!(newcomer.stamp(), rules[3].stamp());
        assert_eq!(roster.numbered(newcomer.serial), Some(77));
        assert_eq!(roster.numbered(rules[3].serial), None);
    }
}
