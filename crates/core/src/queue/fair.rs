//! Turns for keys, in a bounded number of lists.
//!
//! One caller sends 1000 requests, nine others one each. First in, first out makes the nine wait behind
//! the thousand. A list for each key, served in turn, would serve them at once, but keys are chosen by
//! strangers and lists are memory. A fixed number of lists, picked by a hash of the key, is bounded, and
//! puts one in 64 callers behind the greedy one for as long as it sends.
//!
//! So each key is dealt a *hand* of several lists, and its request goes to the shortest of them. A greedy
//! key fills its own hand; somebody else is stuck only if *all* of its lists are among the filled ones.
//! With 64 lists and hands of 8 that befalls one key in 4 426 165 368 for one greedy key. With plain
//! hashing (hands of 1) it is one in 64.
//!
//! Lists have no bounds of their own: a bound on their length would be one more number that is wrong both
//! ways. When the queue as a whole is full, the longest list gives up its newest entry, and a newcomer
//! to the longest list is refused. Whoever fills the queue makes room for the others.
//!
//! Four lists, hands of two; the greedy key `g` holds {0, 1}, `h` holds {1, 2}; room for 6:
//!
//! | comes       | lists after            | why                                         |
//! |-------------|------------------------|---------------------------------------------|
//! | `g` 6 times | ggg · ggg · — · —      | always the shorter of its two               |
//! | `h`         | ggg · gg · h · —       | full: a longest list gives up its newest    |
//! | `g`         | gg · ggg · h · —       | the same: here another `g` has to go        |
//! | served      | g, g, h, g, …          | the lists in turn                           |
//!
//! The price: a greedy key is served from all the lists of its hand, so it may get up to 8 turns where
//! others get one. A smaller hand gives it less and hides others from it less well.
//!
//! Source: Kubernetes API priority and fairness, whose 64 queues and hands of 8 are the default;
//! dropping from the longest is from fq_codel (RFC 8290).

use std::fmt;
use std::hash::{BuildHasher, Hash};

use foldhash::quality::FixedState;

use crate::keyed::Key;
use crate::units::Invalid;

/// Lists for keys to take turns in, and how many of them a key may use.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Fair {
    lists: u8,
    hand: u8,
    seed: u64,
}

/// One bit each in a word.
const MOST_LISTS: u8 = 64;

/// 64 lists dealt in hands of 16 use 88 bits of a hash; with 8 they use 48, and a hash has 64.
const LARGEST_HAND: u8 = 8;

impl Fair {
    /// 64 lists and hands of 8, dealt with a seed that strangers do not know.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self { lists: MOST_LISTS, hand: LARGEST_HAND, seed }
    }

    /// The same with this many lists.
    ///
    /// # Errors
    /// When there would be fewer than a hand, or more than 64.
    pub fn with_lists(self, lists: u8) -> Result<Self, Invalid> {
        if (self.hand..=MOST_LISTS).contains(&lists) {
            Ok(Self { lists, ..self })
        } else {
            Err(Invalid::new("lists", lists, "at least the hand and at most 64"))
        }
    }

    /// The same with hands of this many lists.
    ///
    /// # Errors
    /// When a hand would be empty or above 8, or hold more lists than there are.
    pub fn with_hand(self, hand: u8) -> Result<Self, Invalid> {
        if (1..=LARGEST_HAND.min(self.lists)).contains(&hand) {
            Ok(Self { hand, ..self })
        } else {
            Err(Invalid::new("hand", hand, "from 1 to 8, and at most the number of lists"))
        }
    }

    pub(super) const fn width(&self) -> usize {
        self.lists as usize
    }

    pub(super) fn key(&self, name: &(impl Hash + ?Sized)) -> Key {
        Key(FixedState::with_seed(self.seed).hash_one(name))
    }

    /// The shortest list of the key's hand; of several, the first dealt.
    pub(super) fn shortest(&self, key: Key, length: impl Fn(usize) -> usize) -> usize {
        let hand = self.deal(key);
        let cards = hand.iter().take(usize::from(self.hand)).map(|card| usize::from(*card));
        cards.min_by_key(|list| length(*list)).unwrap_or(0)
    }

    /// The lists of a key, all different. Each is drawn from those not yet dealt: the draw counts only
    /// the cards left, so it moves on by one for each earlier draw at or below it, the latest first.
    #[expect(clippy::cast_possible_truncation, reason = "a remainder of at most 64")]
    fn deal(&self, key: Key) -> [u8; LARGEST_HAND as usize] {
        let mut draws = [0; LARGEST_HAND as usize];
        let mut hand = [0; LARGEST_HAND as usize];
        let mut rest = key.0;
        for index in 0..usize::from(self.hand) {
            let left = u64::from(self.lists) - index as u64;
            draws[index] = (rest % left) as u8;
            rest /= left;
            hand[index] = draws[..index]
                .iter()
                .rev()
                .fold(draws[index], |card, earlier| card + u8::from(card >= *earlier));
        }
        hand
    }
}

impl fmt::Debug for Fair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fair({} lists, hands of {}, seeded)", self.lists, self.hand) // the seed is a secret
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hand_holds_different_lists_and_all_lists_are_dealt_alike() {
        let fair = Fair::new(0);
        let mut dealt = [0_u32; 64];
        for key in 0..4_000_u64 {
            let hand = fair.deal(Key(key.wrapping_mul(0x9E37_79B9_7F4A_7C15)));
            let distinct = hand.iter().fold(0_u64, |bits, card| bits | 1 << card);
            assert_eq!(distinct.count_ones(), 8);
            hand.iter().for_each(|card| dealt[usize::from(*card)] += 1);
        }
        // 500 expected for each, with a deviation of about 21.
        assert!(dealt.iter().all(|count| (400..600).contains(count)), "{dealt:?}");
    }

    #[test]
    fn hands_are_as_many_as_the_module_says() {
        let hands = (0..8_u64).fold(1_u64, |hands, dealt| hands * (64 - dealt) / (dealt + 1));
        assert_eq!(hands, 4_426_165_368);
    }

    #[test]
    fn what_cannot_be_dealt_is_refused() {
        let fair = Fair::new(0);
        assert_eq!(fair.with_lists(7).unwrap_err().field, "lists");
        assert_eq!(fair.with_lists(65).unwrap_err().field, "lists");
        assert_eq!(fair.with_hand(0).unwrap_err().field, "hand");
        assert_eq!(fair.with_hand(9).unwrap_err().field, "hand");
        let few = fair.with_hand(2).unwrap().with_lists(4).unwrap();
        assert_eq!(few.with_hand(5).unwrap_err().field, "hand");
    }
}
