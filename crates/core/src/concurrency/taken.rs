//! How many places are taken, counted by threads that rarely meet.
//!
//! One word counts them, with a lane of 16 bits for each level of criticality, so that one swap decides over the total
//! and the [`Shares`] at once:
//!
//! ```text
//! taken   [critical_plus: 16][critical: 16][sheddable_plus: 16][sheddable: 16]
//! ```
//!
//! A word that another core wrote last takes 30 to 90 ns to come over, and when all cores want it, they queue for it. Near
//! the limit that is the price of being exact. Far from it, nobody needs to be: so while there is plenty of room, a
//! thread takes 16 places from the word at once and keeps what it does not need in a **stock** on a line of its own,
//! where it also puts what comes back. With 500 places and two threads:
//!
//! | what happens         | the word | A's stock | B's stock | in flight |
//! |----------------------|---------:|----------:|----------:|----------:|
//! | A takes a place      | 16       | 15        | 0         | 1         |
//! | A takes another      | 16       | 14        | 0         | 2         |
//! | B takes one          | 32       | 14        | 15        | 3         |
//! | one of A's ends on B | 32       | 14        | 16        | 2         |
//!
//! A stock of 32 gives 16 back. The word never says less than what is in flight, so the limit is never exceeded. It may
//! say more, by 32 for each level in each of four stocks. So who finds fewer than 128 places left by the word ends the
//! time of plenty and gives all stocks back before anybody is refused; it begins again with 256.

use super::shares::{self, Shares};
use crate::stripe;
use crate::sync::{AtomicBool, AtomicU64, Ordering};
use crate::units::Criticality;

/// Stocks. Under loom one is enough: what races is a stock with the word.
const STOCKS: usize = if cfg!(loom) { 1 } else { 4 };
/// Places that go from the word to a stock and back at once.
const BATCH: u64 = if cfg!(loom) { 2 } else { 16 };
/// Free places from which on there is plenty, and twice as many before that begins again. So many threads as batches fit
/// in here would have to fill up their stocks in the same few nanoseconds for anybody else to be refused meanwhile.
const ROOMY: u64 = if cfg!(loom) { 2 } else { 128 };
/// Requests after which a thread adds up again what is in flight: a look at the stocks of others takes as long as the word.
const LOOK_EVERY: u64 = 64;

/// The places that are taken.
#[derive(Debug, Default)]
pub(super) struct Taken {
    word: Line<AtomicU64>,
    /// Read at every request and hardly ever written.
    is_roomy: Line<AtomicBool>,
    stocks: [Line<Stock>; STOCKS],
}

/// A line of memory of its own, so that writing one thing does not slow down reading another.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct Line<T>(pub(super) T);

#[derive(Debug, Default)]
struct Stock {
    /// In lanes, as in the word.
    places: AtomicU64,
    /// What is in flight, as far as its thread knows: what others do is seen every few requests.
    in_flight: AtomicU64,
    /// Counts requests, to know when it is time for that.
    turn: AtomicU64,
}

/// The terms on which a place is taken.
#[derive(Clone, Copy, Debug)]
pub(super) struct Terms<'a> {
    pub(super) limit: u64,
    pub(super) shares: &'a Shares,
    pub(super) level: Criticality,
}

impl Terms<'_> {
    /// Whether one more fits beside what is taken and so many more of the level. What is above the limit may be more than
    /// a lane can hold, so that is looked at first.
    #[inline]
    fn fits(&self, taken: u64, more: u64) -> bool {
        shares::total(taken) + more < self.limit
            && self.shares.fits(taken + more * shares::one(self.level), self.limit, self.level)
    }
}

impl Taken {
    /// Takes a place if one is free; says how many are in flight then.
    #[inline]
    pub(super) fn take(&self, terms: Terms<'_>) -> Option<u64> {
        // Relaxed throughout, but for stocks: the word guards itself and publishes nothing else.
        if self.is_roomy()
            && let Some(in_flight) = self.take_from_stock(terms)
        {
            return Some(in_flight);
        }
        let one = shares::one(terms.level);
        let mut taken = self.word.0.load(Ordering::Relaxed);
        while terms.fits(taken, 0) {
            let more = taken + one;
            match self.word.0.compare_exchange_weak(taken, more, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return Some(shares::total(more)),
                Err(found) => taken = found,
            }
        }
        None
    }

    /// Takes a place whether one is free or not; says how many are in flight then.
    pub(super) fn take_anyway(&self, level: Criticality) -> u64 {
        self.word.0.fetch_add(shares::one(level), Ordering::Relaxed);
        shares::total(self.counts())
    }

    /// Gives a place back.
    #[inline]
    pub(super) fn give_back(&self, terms: Terms<'_>) {
        let one = shares::one(terms.level);
        if self.is_roomy() {
            return self.give_to_stock(terms.level);
        }
        let taken = self.word.0.fetch_sub(one, Ordering::Relaxed);
        if terms.fits(taken, 2 * ROOMY) {
            self.is_roomy.0.store(true, Ordering::Relaxed);
        }
    }

    /// What is in flight, in lanes. While there are stocks it is as exact as one look after another can be.
    pub(super) fn counts(&self) -> u64 {
        if !self.is_roomy() {
            return self.word.0.load(Ordering::Relaxed);
        }
        let mut kept = 0;
        for stock in &self.stocks {
            kept += stock.0.places.load(Ordering::Relaxed);
        }
        let taken = self.word.0.load(Ordering::Relaxed);
        let lane = |index| shares::in_lane(taken, index).saturating_sub(shares::in_lane(kept, index));
        Criticality::ALL.into_iter().map(|level| lane(level.index()) * shares::one(level)).sum()
    }

    /// Gives all stocks back, because places are scarce.
    pub(super) fn end_plenty(&self) {
        self.is_roomy.0.store(false, Ordering::Relaxed);
        for stock in &self.stocks {
            self.give_up(&stock.0);
        }
    }

    #[inline]
    fn is_roomy(&self) -> bool {
        self.is_roomy.0.load(Ordering::Relaxed)
    }

    fn own_stock(&self) -> &Stock {
        &self.stocks[stripe::own(STOCKS)].0
    }

    /// Takes a place from the thread's own stock. Not inlined, nor is giving one back to it: near the limit, where every
    /// instruction counts, there would be some twenty more.
    #[inline(never)]
    fn take_from_stock(&self, terms: Terms<'_>) -> Option<u64> {
        let (stock, one) = (self.own_stock(), shares::one(terms.level));
        let kept = stock.places.load(Ordering::Relaxed);
        if shares::in_lane(kept, terms.level.index()) > 0
            && stock.places.compare_exchange(kept, kept - one, Ordering::Relaxed, Ordering::Relaxed).is_ok()
        {
            return Some(self.seen(stock));
        }
        self.fill_up(stock, terms)
    }

    /// Takes a batch from the word: one place for the caller, the others for its stock.
    fn fill_up(&self, stock: &Stock, terms: Terms<'_>) -> Option<u64> {
        let one = shares::one(terms.level);
        let taken = self.word.0.fetch_add(BATCH * one, Ordering::Relaxed);
        if !terms.fits(taken, BATCH - 1 + ROOMY) {
            self.word.0.fetch_sub(BATCH * one, Ordering::Relaxed);
            self.end_plenty();
            return None;
        }
        self.keep(stock, (BATCH - 1) * one);
        Some(self.seen(stock))
    }

    #[inline(never)]
    fn give_to_stock(&self, level: Criticality) {
        let (stock, one) = (self.own_stock(), shares::one(level));
        let in_flight = stock.in_flight.load(Ordering::Relaxed);
        stock.in_flight.store(in_flight.saturating_sub(1), Ordering::Relaxed);
        let kept = self.keep(stock, one);
        if shares::in_lane(kept, level.index()) >= 2 * BATCH {
            let less = kept - BATCH * one;
            // Who is beaten to it leaves that to whoever comes next.
            if stock.places.compare_exchange(kept, less, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
                self.word.0.fetch_sub(BATCH * one, Ordering::Relaxed);
            }
        }
    }

    /// Puts places into a stock; returns what it holds then.
    ///
    /// Whoever ends the time of plenty says so and then empties the stock; whoever puts something in looks afterwards
    /// whether that was said. Both change the stock's word, with release and acquire: the second of them sees what the
    /// first one did, so nothing stays behind.
    #[inline]
    fn keep(&self, stock: &Stock, places: u64) -> u64 {
        let kept = stock.places.fetch_add(places, Ordering::AcqRel) + places;
        if !self.is_roomy() {
            self.give_up(stock);
        }
        kept
    }

    fn give_up(&self, stock: &Stock) {
        let kept = stock.places.swap(0, Ordering::AcqRel);
        self.word.0.fetch_sub(kept, Ordering::Relaxed);
        // What happens until there is a stock again is not seen from here.
        stock.turn.store(0, Ordering::Relaxed);
    }

    /// How many are in flight with one more, as far as this stock's thread knows.
    #[inline]
    fn seen(&self, stock: &Stock) -> u64 {
        let turn = stock.turn.load(Ordering::Relaxed);
        stock.turn.store(turn.wrapping_add(1), Ordering::Relaxed);
        let in_flight = if turn.is_multiple_of(LOOK_EVERY) {
            shares::total(self.counts())
        } else {
            stock.in_flight.load(Ordering::Relaxed) + 1
        };
        stock.in_flight.store(in_flight, Ordering::Relaxed);
        in_flight
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEVEL: Criticality = Criticality::Critical;
    const TERMS: Terms<'_> = terms(500);

    const fn terms(limit: u64) -> Terms<'static> {
        Terms { limit, shares: &Shares::NONE, level: LEVEL }
    }

    /// The word, and the stock of this thread.
    fn shown(taken: &Taken) -> (u64, u64) {
        let of = |word: &AtomicU64| shares::total(word.load(Ordering::Relaxed));
        (of(&taken.word.0), of(&taken.own_stock().places))
    }

    /// In the time of plenty, with nothing taken.
    fn plenty() -> Taken {
        let taken = Taken::default();
        assert_eq!(taken.take(TERMS), Some(1));
        taken.give_back(TERMS);
        assert!(taken.is_roomy());
        taken
    }

    /// On a thread that has another stock than this one.
    fn elsewhere<T: Send>(act: impl Fn() -> T + Sync) -> T {
        let here = stripe::own(STOCKS);
        let act = || (stripe::own(STOCKS) != here).then(&act);
        loop {
            let acted = std::thread::scope(|scope| scope.spawn(act).join().unwrap());
            if let Some(acted) = acted {
                return acted;
            }
        }
    }

    #[test]
    fn two_threads_share_five_hundred_places_as_in_the_example() {
        let taken = plenty();
        assert_eq!((taken.take(TERMS), shown(&taken)), (Some(1), (16, 15)));
        assert_eq!((taken.take(TERMS), shown(&taken)), (Some(2), (16, 14)));
        elsewhere(|| {
            assert_eq!((taken.take(TERMS), shown(&taken)), (Some(3), (32, 15)));
            taken.give_back(TERMS);
            assert_eq!((shown(&taken), shares::total(taken.counts())), ((32, 16), 2));
        });
        assert_eq!(shown(&taken), (32, 14));
    }

    #[test]
    fn a_stock_that_grows_gives_a_batch_back() {
        let taken = plenty();
        for _ in 0..20 {
            taken.take(TERMS).unwrap();
        }
        assert_eq!(shown(&taken), (32, 12));
        for _ in 0..19 {
            taken.give_back(TERMS);
        }
        assert_eq!(shown(&taken), (32, 31));
        taken.give_back(TERMS);
        assert_eq!((shown(&taken), shares::total(taken.counts())), ((16, 16), 0));
    }

    #[test]
    fn every_place_can_be_taken_and_none_beyond_the_limit() {
        let taken = plenty();
        elsewhere(|| taken.take(TERMS)).unwrap();
        let rest = std::iter::from_fn(|| taken.take(TERMS)).count();
        assert_eq!((rest, shares::total(taken.counts())), (499, 500));
        assert!(!taken.is_roomy());
    }

    #[test]
    fn the_highest_limit_fills_the_highest_lane_and_no_more() {
        let taken = Taken::default();
        let limit = u64::from(crate::concurrency::bounds::MOST_PLACES);
        let terms = Terms { limit, shares: &Shares::NONE, level: Criticality::CriticalPlus };
        for _ in 0..2 {
            let count = std::iter::from_fn(|| taken.take(terms)).count();
            assert_eq!((count as u64, shares::total(taken.counts())), (limit, limit));
            for _ in 0..count {
                taken.give_back(terms);
            }
            assert_eq!(taken.counts(), 0);
        }
    }

    #[test]
    fn what_one_thread_has_in_flight_is_known_to_it_exactly() {
        let taken = plenty();
        let mut in_flight = 0;
        for round in 0..1_000 {
            if round % 7 < 4 {
                in_flight += 1;
                assert_eq!(taken.take(TERMS), Some(in_flight));
            } else if in_flight > 0 {
                in_flight -= 1;
                taken.give_back(TERMS);
            }
            assert_eq!(shares::total(taken.counts()), in_flight);
        }
    }

    #[test]
    fn what_is_in_flight_is_known_again_after_places_were_scarce() {
        let taken = plenty();
        for in_flight in 1..=450 {
            assert_eq!(taken.take(TERMS), Some(in_flight));
        }
        assert!(!taken.is_roomy());
        for _ in 0..350 {
            taken.give_back(TERMS);
        }
        assert!(taken.is_roomy());
        assert_eq!((taken.take(TERMS), taken.take(TERMS)), (Some(101), Some(102)));
    }

    #[test]
    fn stocks_come_back_when_the_limit_falls() {
        let taken = plenty();
        assert_eq!(taken.take(TERMS), Some(1));
        elsewhere(|| taken.take(TERMS)).unwrap();
        taken.end_plenty();
        assert_eq!((shown(&taken), shares::total(taken.counts())), ((2, 0), 2));
        assert_eq!((taken.take(terms(3)), taken.take(terms(3))), (Some(3), None));
    }
}
