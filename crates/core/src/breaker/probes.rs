//! The probes of a half-open breaker: bounded in number and in time.
//!
//! A probe that takes too long has failed, so that the round can end. It is still on its way, though: if its attempt may
//! take 30 s and a round ends after 10, three rounds would have three times as many in flight as are allowed. So a
//! probe that has not come back *holds* its place in the next rounds. One that never comes back, because whoever had its
//! pass lost it, must not hold it for ever: it is forgotten after ten times the limit.
//!
//! Four places, a limit of 10 s, and an upstream that hangs; attempts are given up after 30 s:
//!
//! | at   | what happens                         | in flight |
//! |------|--------------------------------------|-----------|
//! | 5 s  | half-open: four probes               | 4         |
//! | 15 s | they have failed; open for 10 s      | 4         |
//! | 25 s | half-open: no place, refused         | 4         |
//! | 35 s | the four come back: four probes      | 4         |

use std::time::Duration;

use crate::units::Moment;
use crate::units::share::is_at_least;

/// A place for one probe. It is used once per round, except that a cancelled probe leaves it free again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Free,
    Running(Moment),
    /// Failed because its time was over; it has not come back.
    Late(Moment),
    Good,
    Bad,
    /// Not come back since this round, which is over.
    Held {
        began: Moment,
        round: u64,
    },
}

/// How many times the limit a probe that has not come back holds its place.
const KEPT: u32 = 10;

#[derive(Clone, Debug)]
pub(super) struct Probes {
    places: Box<[Place]>,
}

/// What the probes say together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Finding {
    Well,
    Unwell,
    NotYet,
}

impl Probes {
    pub(super) fn new(probes: u32) -> Self {
        Self { places: vec![Place::Free; usize::try_from(probes).unwrap_or(1).max(1)].into() }
    }

    /// Ends this round. Who has not come back holds its place.
    pub(super) fn clear(&mut self, round: u64) {
        for place in &mut self.places {
            *place = match *place {
                Place::Running(began) | Place::Late(began) => Place::Held { began, round },
                Place::Held { .. } => *place,
                Place::Free | Place::Good | Place::Bad => Place::Free,
            };
        }
    }

    /// A probe of an earlier round came back: its place is free.
    pub(super) fn release(&mut self, place: u32, of: u64) {
        let place = usize::try_from(place).ok().and_then(|place| self.places.get_mut(place));
        if let Some(place) = place.filter(|place| matches!(place, Place::Held { round, .. } if *round == of))
        {
            *place = Place::Free;
        }
    }

    /// A free place for a probe that starts now.
    pub(super) fn take(&mut self, now: Moment) -> Option<u32> {
        let place = self.places.iter().position(|place| *place == Place::Free)?;
        self.places[place] = Place::Running(now);
        u32::try_from(place).ok()
    }

    /// The probe in this place ended. One that ran out of time before has failed already, and stays so.
    pub(super) fn end(&mut self, place: u32, is_good: bool) {
        self.finish(place, if is_good { Place::Good } else { Place::Bad });
    }

    /// The probe in this place was cancelled: nothing is learnt, another may go.
    pub(super) fn cancel(&mut self, place: u32) {
        self.finish(place, Place::Free);
    }

    fn finish(&mut self, place: u32, end: Place) {
        let place = usize::try_from(place).ok().and_then(|place| self.places.get_mut(place));
        match place {
            Some(place @ Place::Running(_)) => *place = end,
            Some(place @ Place::Late(_)) => *place = Place::Bad,
            Some(Place::Free | Place::Good | Place::Bad | Place::Held { .. }) | None => {}
        }
    }

    /// Fails the probes that have run for `limit`, and forgets those of earlier rounds that seem lost. A probe
    /// from the future means that the clock was set back; its time starts again.
    pub(super) fn expire(&mut self, now: Moment, limit: Duration) {
        for place in &mut self.places {
            match place {
                Place::Running(began) => {
                    *began = (*began).min(now);
                    if now.since(*began) >= limit {
                        *place = Place::Late(*began);
                    }
                }
                Place::Held { began, .. } => {
                    *began = (*began).min(now);
                    if now.since(*began) >= limit.saturating_mul(KEPT) {
                        *place = Place::Free;
                    }
                }
                Place::Free | Place::Late(_) | Place::Good | Place::Bad => {}
            }
        }
    }

    /// How long until the oldest probe has failed or is forgotten, if nothing else happens.
    pub(super) fn longest_left(&self, now: Moment, limit: Duration) -> Duration {
        let left = |place: &Place| match place {
            Place::Running(began) => Some(limit.saturating_sub(now.since(*began))),
            Place::Held { began, .. } => Some(limit.saturating_mul(KEPT).saturating_sub(now.since(*began))),
            Place::Free | Place::Late(_) | Place::Good | Place::Bad => None,
        };
        self.places.iter().filter_map(left).min().unwrap_or(Duration::ZERO)
    }

    /// The finding, as soon as the probes still missing cannot change it.
    pub(super) fn finding(&self, failure: u64) -> Finding {
        let count = |is_wanted: fn(&Place) -> bool| {
            self.places.iter().map(|place| u64::from(is_wanted(place))).sum::<u64>()
        };
        let good = count(|place| *place == Place::Good);
        let bad = count(|place| matches!(place, Place::Bad | Place::Late(_)));
        let all = u64::try_from(self.places.len()).unwrap_or(u64::MAX);
        if is_at_least(bad, all, failure) {
            Finding::Unwell
        } else if is_at_least(all - good, all, failure) {
            Finding::NotYet
        } else {
            Finding::Well
        }
    }
}
