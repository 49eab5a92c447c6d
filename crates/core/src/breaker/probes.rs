//! The probes of a half-open breaker: bounded in number and in time.

use std::time::Duration;

use crate::units::Moment;
use crate::units::share::is_at_least;

/// A place for one probe. It is used once per round, except that a cancelled probe leaves it free again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Free,
    Running(Moment),
    Good,
    Bad,
}

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

    pub(super) fn clear(&mut self) {
        self.places.fill(Place::Free);
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
        if let Some(place @ Place::Running(_)) = place {
            *place = end;
        }
    }

    /// Fails the probes that have run for `limit`. A probe from the future means that the clock was set
    /// back; its time starts again.
    pub(super) fn expire(&mut self, now: Moment, limit: Duration) {
        for place in &mut self.places {
            if let Place::Running(began) = place {
                *began = (*began).min(now);
                if now.since(*began) >= limit {
                    *place = Place::Bad;
                }
            }
        }
    }

    /// How long until the oldest running probe has failed, if nothing else happens.
    pub(super) fn longest_left(&self, now: Moment, limit: Duration) -> Duration {
        let left = |place: &Place| match place {
            Place::Running(began) => Some(limit.saturating_sub(now.since(*began))),
            Place::Free | Place::Good | Place::Bad => None,
        };
        self.places.iter().filter_map(left).min().unwrap_or(Duration::ZERO)
    }

    /// The finding, as soon as the probes still missing cannot change it.
    pub(super) fn finding(&self, failure: u64) -> Finding {
        let count = |wanted| self.places.iter().map(|place| u64::from(*place == wanted)).sum::<u64>();
        let (good, bad) = (count(Place::Good), count(Place::Bad));
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
