use std::hash::{Hash, Hasher};

use foldhash::SharedSeed;
use foldhash::quality::FoldHasher;

use crate::units::Invalid;

/// A key as tables know it: a seeded hash of whatever the caller is known by.
///
/// Tables never see the original. Two keys of one table are one counter only if their hashes agree in
/// home and tag; that befalls about one key in four million, and it makes those two share a quota, so
/// the mistake is on the strict side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(pub(crate) u64);

/// The bits of a tag, of which the first is always set.
const TAG_BITS: u32 = 25;
const TAG_CHOICES: u64 = 1 << (TAG_BITS - 1);

impl Key {
    /// The hash itself: a name for the key that does not tell what it was made of.
    #[must_use]
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// The key with this hash, as [`bits`](Self::bits) told it.
    #[must_use]
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// What a slot keeps of its key: the top 25 bits of the lower half, the first of them always set, so that
    /// no slot in use looks vacant.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the lower half is meant")]
    pub(crate) const fn tag(self) -> u32 {
        (self.0 as u32) >> (32 - TAG_BITS) | 1 << (TAG_BITS - 1)
    }

    /// One of `count` places, by the upper bits, each as likely.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the product's upper half is below `count`")]
    pub(crate) fn place(self, count: usize) -> usize {
        ((u128::from(self.0) * count as u128) >> 64) as usize
    }

    /// How many of `groups` the key's places lie apart, at least one and fewer than there are: its own stride,
    /// so that neighbours at home part ways.
    pub(crate) const fn stride(tag: u32, groups: usize) -> usize {
        let others = groups.saturating_sub(1) as u64;
        let chosen = tag as u64 & (TAG_CHOICES - 1);
        1 + (chosen * others / TAG_CHOICES) as usize
    }
}

/// Makes keys, with a seed that strangers do not know. Its keys fit every table made with the same seed, so that a
/// request which meets several tables is hashed once.
pub struct Hashing {
    seed: u64,
    shared: SharedSeed,
}

impl Hashing {
    /// Keys under this seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self { seed, shared: SharedSeed::from_u64(seed) }
    }

    /// The key of anything that can be hashed.
    #[inline]
    pub fn key(&self, name: &(impl Hash + ?Sized)) -> Key {
        let mut hasher = FoldHasher::with_seed(self.seed, &self.shared);
        name.hash(&mut hasher);
        Key(hasher.finish())
    }
}

impl std::fmt::Debug for Hashing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Hashing(seeded)") // the seed is a secret
    }
}

/// How many keys a table must be able to tell apart.
///
/// ```
/// use tidegate_core::keyed::MaxKeys;
///
/// assert_eq!(MaxKeys::new(0).unwrap_err().to_string(), "max_keys is 0, but must be from 1 to 1000000000");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MaxKeys(usize);

impl MaxKeys {
    /// This many keys.
    ///
    /// # Errors
    /// When there are none, or more than a thousand million.
    pub fn new(keys: usize) -> Result<Self, Invalid> {
        if (1..=1_000_000_000).contains(&keys) {
            Ok(Self(keys))
        } else {
            Err(Invalid::new("max_keys", keys, "from 1 to 1000000000"))
        }
    }

    /// How many.
    #[must_use]
    pub const fn get(self) -> usize {
        self.0
    }

    /// Groups to allocate: slots for half as many keys again, since the last free slots are hard to find;
    /// and a prime number of groups, so that any stride leads through all of them.
    pub(crate) fn groups(self, slots_each: usize) -> usize {
        let slots = self.0 + self.0.div_ceil(2);
        (slots.div_ceil(slots_each)..).find(|&count| is_prime(count)).unwrap_or(slots)
    }
}

/// One counts as prime here: a single group is all of them.
fn is_prime(number: usize) -> bool {
    (2..).take_while(|factor| factor * factor <= number).all(|factor| !number.is_multiple_of(factor))
}
