//! How often others retry, seen from one server: a histogram of attempt numbers (S8).
//!
//! A server that must refuse can say "try elsewhere" or "overloaded; don't retry". The first is right if
//! few of its kind are overloaded, the second if most are, and one server does not see the others. But
//! requests carry their attempt number, and those who are refused elsewhere come here with a 1. If a
//! share p of the servers refuses, of 1000 first attempts 1000·p come back as second ones, and 1000·p² as
//! third ones:
//!
//! | p   | first | second | third | p̂ = second / first | with θ = .1  |
//! |-----|-------|--------|-------|--------------------|--------------|
//! | .10 | 1000  | 100    | 10    | .1                 | try again    |
//! | .25 | 1000  | 250    | 62    | .25                | don't retry  |
//! | .50 | 1000  | 500    | 250   | .5                 | don't retry  |
//!
//! So we count attempts over a window of the last 1000 *first* attempts, in blocks of 50, and advise
//! against retries when p̂ is above θ. That works too well: told not to retry, nobody does, the histogram
//! empties and says that all is well. So even then one refusal in 16 says nothing of the kind, and what
//! comes back is multiplied by 16: with half of the servers refusing, 31 second attempts in a thousand
//! still mean a half. We allow retries again when a whole window shows less than half of θ. Going by the
//! same θ, a server that was wrong once, by chance, would see only the few retries that the others allow,
//! and never find out.
//!
//! θ is .2 by default: callers with a budget of 10 % show at most that many second attempts however bad
//! things are, because their budget stops them. Twice as many mean that somebody retries without one, and
//! a first block of 50 shows them by chance once in a hundred. Source: *Site Reliability Engineering*,
//! chapter 21, which gives no θ.

use super::attempts::Advice;
use crate::sync::{AtomicU64, Mutex, Ordering, lock};
use crate::units::share::{is_at_least, millionths};
use crate::units::{Invalid, Ratio};

/// First attempts, second ones, and all later ones.
const NUMBERS: usize = 3;
const BLOCKS: usize = 20;

/// One refusal in so many allows a retry even when retries are advised against: enough to see, with 1000
/// first attempts, a fifth from nothing; few enough to leave nine refusals in ten that say "don't".
const GLIMPSE: u64 = 16;

/// Everything that can be chosen for a histogram.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HistogramTerms {
    /// How many first attempts the window has.
    pub window: u32,
    /// Above this share of second attempts, retries are advised against: θ.
    pub threshold: Ratio,
}

impl Default for HistogramTerms {
    fn default() -> Self {
        Self { window: 1_000, threshold: Ratio::new(0.2).unwrap_or(Ratio::ONE) }
    }
}

/// A histogram's terms, checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HistogramRule {
    block: u64,
    /// In millionths.
    threshold: u64,
}

/// How many attempts of each number there were within the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// First attempts.
    pub first: u64,
    /// Second attempts.
    pub second: u64,
    /// Third and later attempts.
    pub later: u64,
}

impl HistogramRule {
    /// The rule with these terms.
    ///
    /// # Errors
    /// When the window is not from 200 to a million first attempts.
    pub fn new(terms: HistogramTerms) -> Result<Self, Invalid> {
        if !(200..=1_000_000).contains(&terms.window) {
            return Err(Invalid::new("window", terms.window, "from 200 to 1000000 first attempts"));
        }
        Ok(Self { block: u64::from(terms.window) / BLOCKS as u64, threshold: millionths(terms.threshold) })
    }

    /// Whether so many second attempts mean that most of our kind are overloaded.
    #[must_use]
    pub fn forbids(&self, seen: Seen) -> bool {
        is_at_least(seen.second, seen.first, self.threshold + 1)
    }

    /// Whether so few come back, although one in 16 may, that all is well again.
    fn allows_again(&self, seen: Seen) -> bool {
        seen.first >= self.block * BLOCKS as u64
            && !is_at_least(seen.second.saturating_mul(GLIMPSE), seen.first, self.threshold / 2)
    }
}

impl Default for HistogramRule {
    fn default() -> Self {
        Self::new(HistogramTerms::default()).expect("the defaults are in their ranges; a test makes them")
    }
}

/// The histogram of one server, shared by threads. Counting is one addition; a block ends behind a mutex.
///
/// Orderings: all relaxed. A count made while a block ends lands in the old block or in the new one,
/// never in neither, since the block's end swaps each count out.
///
/// ```
/// use tidegate_core::retry::{Advice, AttemptHistogram, HistogramRule};
///
/// let histogram = AttemptHistogram::new(HistogramRule::default());
/// for _ in 0..100 {
///     histogram.record(1); // every request that arrives has been refused elsewhere before
///     histogram.record(0);
/// }
/// assert_eq!(histogram.refuse(), Advice::Never);
/// ```
#[derive(Debug)]
pub struct AttemptHistogram {
    rule: HistogramRule,
    block: [AtomicU64; NUMBERS],
    past: [AtomicU64; NUMBERS],
    /// Refusals since retries were last allowed to all, plus one; 0 while they are.
    holding: AtomicU64,
    ring: Mutex<Ring>,
}

#[derive(Debug, Default)]
struct Ring {
    blocks: [[u64; NUMBERS]; BLOCKS],
    next: usize,
}

impl AttemptHistogram {
    /// A histogram that has seen nothing.
    #[must_use]
    pub fn new(rule: HistogramRule) -> Self {
        let zeros = || [(); NUMBERS].map(|()| AtomicU64::new(0));
        let (block, past, holding) = (zeros(), zeros(), AtomicU64::new(0));
        Self { rule, block, past, holding, ring: Mutex::new(Ring::default()) }
    }

    /// Counts an attempt that arrived, by the number it carries: 0 for a first one.
    #[inline]
    pub fn record(&self, number: u32) {
        let index = usize::try_from(number).unwrap_or(NUMBERS).min(NUMBERS - 1);
        let before = self.block[index].fetch_add(1, Ordering::Relaxed);
        if index == 0 && before + 1 >= self.rule.block {
            self.end_block();
        }
    }

    /// Says what to tell a caller that is refused: nothing in particular, or not to retry. Ask once a refusal.
    #[inline]
    pub fn refuse(&self) -> Advice {
        // Counted only while the advice holds, so that a refusal at its very end does not revive it.
        let count = |refusals| (refusals > 0).then_some(refusals + 1);
        match self.holding.fetch_update(Ordering::Relaxed, Ordering::Relaxed, count) {
            Ok(refusals) if !refusals.is_multiple_of(GLIMPSE) => Advice::Never,
            Ok(_) | Err(_) => Advice::None,
        }
    }

    /// Whether callers are being told not to retry.
    #[inline]
    pub fn is_holding(&self) -> bool {
        self.holding.load(Ordering::Relaxed) > 0
    }

    /// What is counted: the last complete blocks and the one under way.
    pub fn seen(&self) -> Seen {
        let count = |index: usize| {
            self.past[index].load(Ordering::Relaxed) + self.block[index].load(Ordering::Relaxed)
        };
        Seen { first: count(0), second: count(1), later: count(2) }
    }

    #[cold]
    fn end_block(&self) {
        let mut ring = lock(&self.ring);
        // Another thread was faster: the block that this one wanted to end has ended.
        if self.block[0].load(Ordering::Relaxed) < self.rule.block {
            return;
        }
        let next = ring.next;
        for (index, count) in self.block.iter().enumerate() {
            ring.blocks[next][index] = count.swap(0, Ordering::Relaxed);
        }
        ring.next = (next + 1) % BLOCKS;
        let seen = ring.sum();
        let is_holding = self.is_holding();
        let turns = if is_holding { self.rule.allows_again(seen) } else { self.rule.forbids(seen) };
        if turns {
            // What was seen before says nothing about what will be seen now.
            *ring = Ring::default();
            self.holding.store(u64::from(!is_holding), Ordering::Relaxed);
        }
        let Seen { first, second, later } = ring.sum();
        for (past, sum) in self.past.iter().zip([first, second, later]) {
            past.store(sum, Ordering::Relaxed);
        }
    }
}

impl Ring {
    fn sum(&self) -> Seen {
        let sum = |index: usize| self.blocks.iter().map(|block| block[index]).sum();
        Seen { first: sum(0), second: sum(1), later: sum(2) }
    }
}
