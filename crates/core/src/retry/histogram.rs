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
//! So we count attempts over a window of the last 1000 *first* attempts, in blocks of 100, and advise
//! against retries when p̂ is above θ. That works too well: told not to retry, nobody does, the histogram
//! empties and says that all is well. So the advice holds for as many first attempts as the window has,
//! and then a fresh look is taken. With half of the servers refusing, a look takes one block and its
//! advice holds for ten: ten refusals in eleven say "don't".
//!
//! θ is .2 by default: callers with a budget of 10 % show at most that many second attempts however bad
//! things are, because their budget stops them; twice as many mean that somebody retries without one, and
//! a block of 100 shows it by chance once in a thousand. Source: *Site Reliability Engineering*, chapter
//! 21, which gives no θ.

use super::attempts::Advice;
use super::share::{is_at_least, millionths};
use crate::sync::{AtomicU64, Mutex, Ordering, lock};
use crate::units::{Invalid, Ratio};

/// First attempts, second ones, and all later ones.
const NUMBERS: usize = 3;
const BLOCKS: usize = 10;

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
    /// When the window is not from 100 to a million first attempts.
    pub fn new(terms: HistogramTerms) -> Result<Self, Invalid> {
        if !(100..=1_000_000).contains(&terms.window) {
            return Err(Invalid::new("window", terms.window, "from 100 to 1000000 first attempts"));
        }
        Ok(Self { block: u64::from(terms.window) / 10, threshold: millionths(terms.threshold) })
    }

    /// Whether so many second attempts mean that most of our kind are overloaded.
    #[must_use]
    pub fn forbids(&self, seen: Seen) -> bool {
        is_at_least(seen.second, seen.first, self.threshold + 1)
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
/// assert_eq!(histogram.advice(), Advice::Never);
/// ```
#[derive(Debug)]
pub struct AttemptHistogram {
    rule: HistogramRule,
    block: [AtomicU64; NUMBERS],
    past: [AtomicU64; NUMBERS],
    /// For how many more blocks the advice against retries holds.
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

    /// What to tell a caller that must be refused: nothing in particular, or not to retry.
    #[inline]
    pub fn advice(&self) -> Advice {
        if self.holding.load(Ordering::Relaxed) > 0 { Advice::Never } else { Advice::None }
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
        let holding = self.holding.load(Ordering::Relaxed);
        if holding > 0 {
            // Nobody retries now, so what is counted says nothing.
            *ring = Ring::default();
            self.holding.store(holding - 1, Ordering::Relaxed);
        } else if self.rule.forbids(ring.sum()) {
            self.holding.store(BLOCKS as u64, Ordering::Relaxed);
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
