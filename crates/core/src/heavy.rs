//! Who costs most and who is refused most, in bounded memory.
//!
//! During an incident the first question is "who is it?". Counting every caller needs memory for every
//! caller, and strangers can invent callers. So we keep only the heaviest, by the Space-Saving rule: a
//! list of fixed length; a caller on it is counted; a caller not on it takes the place of the lightest one
//! **and starts from its count**, remembered as a possible error.
//!
//! A list of two, every request costing 1:
//!
//! | request of | list afterwards       | possible error |
//! |------------|-----------------------|----------------|
//! | ann        | ann 1                 |                |
//! | ann        | ann 2                 |                |
//! | bob        | ann 2, bob 1          |                |
//! | cid        | ann 2, cid 2          | cid 1          |
//! | ann        | ann 3, cid 2          | cid 1          |
//!
//! A count is never too small and too large by at most its error. With k places and a total of n, whoever
//! has more than n/k is on the list for sure. What it cannot do is name the light ones.
//!
//! Three lists are kept ([`TopCallers`]): by cost admitted, by requests refused, by requests that a shadow
//! rule would have refused. [`TopCallers::fade`] halves all counts; called every minute, it lets the past
//! weigh half as much with each minute.
//!
//! Source: Metwally, Agrawal, El Abbadi, "Efficient computation of frequent and top-k elements in data
//! streams", 2005.

mod space_saving;

pub use space_saving::{Heavy, Name};

use self::space_saving::SpaceSaving;
use crate::keyed::Key;
use crate::sync::{Mutex, lock};
use crate::units::{Cost, Invalid};

/// Parts of the lists that can be written at once. A caller's part is chosen by its hash, so that every
/// caller is counted in one place.
const STRIPES: usize = 8;

/// What happened to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// It passed at this cost.
    Admitted(Cost),
    /// It was refused, and stands for so many that were.
    Refused(u64),
    /// It passed, though a shadow rule would have refused it, and stands for so many that did.
    ShadowRefused(u64),
}

/// By what callers are ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ranking {
    /// The cost admitted, in millionths.
    Cost,
    /// Requests refused.
    Refusals,
    /// Requests that a shadow rule would have refused.
    ShadowRefusals,
}

/// The heaviest callers of a rule, recorded by many threads.
///
/// ```
/// use tidegate_core::heavy::{Event, Ranking, TopCallers};
/// use tidegate_core::keyed::{DueTable, MaxKeys};
/// use tidegate_core::Cost;
///
/// let table = DueTable::new(MaxKeys::new(100)?, 1);
/// let top = TopCallers::new(10)?;
/// for caller in ["ann", "bob", "ann"] {
///     top.record(table.key(caller), caller, Event::Admitted(Cost::ONE));
/// }
/// let heaviest = &top.ranked(Ranking::Cost)[0];
/// assert_eq!((heaviest.name.as_str(), heaviest.weight), ("ann", 2_000_000));
/// # Ok::<(), tidegate_core::Invalid>(())
/// ```
#[derive(Debug)]
pub struct TopCallers {
    places: usize,
    stripes: [Mutex<Lists>; STRIPES],
}

#[derive(Debug)]
struct Lists {
    cost: SpaceSaving,
    refusals: SpaceSaving,
    shadow_refusals: SpaceSaving,
}

impl TopCallers {
    /// Lists of this many callers.
    ///
    /// # Errors
    /// When the lists would have no place, or more than 1024: their search takes time in proportion.
    pub fn new(places: usize) -> Result<Self, Invalid> {
        if !(1..=1024).contains(&places) {
            return Err(Invalid::new("top callers", places, "from 1 to 1024"));
        }
        let list = || SpaceSaving::new(places);
        let lists = || Lists { cost: list(), refusals: list(), shadow_refusals: list() };
        Ok(Self { places, stripes: [(); STRIPES].map(|()| Mutex::new(lists())) })
    }

    /// Counts what happened to a request of the caller known as `key` and called `name`.
    pub fn record(&self, key: Key, name: &str, event: Event) {
        let mut lists = lock(&self.stripes[key.place(STRIPES)]);
        match event {
            Event::Admitted(cost) => lists.cost.add(key, name, cost.micros()),
            Event::Refused(times) => lists.refusals.add(key, name, times),
            Event::ShadowRefused(times) => lists.shadow_refusals.add(key, name, times),
        }
    }

    /// The heaviest callers, the heaviest first; equals by name, so that the order is the same each time.
    #[must_use]
    pub fn ranked(&self, ranking: Ranking) -> Vec<Heavy> {
        let mut all = Vec::new();
        for stripe in &self.stripes {
            all.extend(lock(stripe).list(ranking).entries());
        }
        all.sort_by(|a: &Heavy, b| {
            b.weight.cmp(&a.weight).then_with(|| a.name.as_str().cmp(b.name.as_str()))
        });
        all.truncate(self.places);
        all
    }

    /// Halves all counts, so that the past fades.
    pub fn fade(&self) {
        for stripe in &self.stripes {
            let Lists { cost, refusals, shadow_refusals } = &mut *lock(stripe);
            [cost, refusals, shadow_refusals].into_iter().for_each(SpaceSaving::fade);
        }
    }
}

impl Lists {
    const fn list(&self, ranking: Ranking) -> &SpaceSaving {
        match ranking {
            Ranking::Cost => &self.cost,
            Ranking::Refusals => &self.refusals,
            Ranking::ShadowRefusals => &self.shadow_refusals,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_ranking_counts_its_own_events_and_fades() {
        let top = TopCallers::new(4).unwrap();
        let (ann, bob) = (Key(1), Key(u64::MAX));
        top.record(ann, "ann", Event::Admitted(Cost::of(3)));
        top.record(bob, "bob", Event::Admitted(Cost::of(5)));
        top.record(ann, "ann", Event::Refused(1));
        top.record(bob, "bob", Event::ShadowRefused(1));
        let names =
            |ranking| top.ranked(ranking).iter().map(|h| h.name.as_str().to_owned()).collect::<Vec<_>>();
        assert_eq!(names(Ranking::Cost), ["bob", "ann"]);
        assert_eq!(names(Ranking::Refusals), ["ann"]);
        assert_eq!(names(Ranking::ShadowRefusals), ["bob"]);
        top.fade();
        assert_eq!(top.ranked(Ranking::Cost)[0].weight, 2_500_000);
        assert_eq!(top.ranked(Ranking::Refusals), []);
    }

    #[test]
    fn lists_of_no_length_are_refused() {
        assert_eq!(
            TopCallers::new(0).unwrap_err().to_string(),
            "top callers is 0, but must be from 1 to 1024"
        );
    }
}
