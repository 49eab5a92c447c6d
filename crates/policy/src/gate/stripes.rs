//! What all threads write, spread out: a count that every decision of every thread raises is kept in sixteen
//! [parts](stripe), and who wants the count adds them up.

use std::sync::atomic::{AtomicU64, Ordering};

use tidegate_core::stripe;

/// Parts. Threads of a larger machine share them by twos and threes, which is still far from all.
pub(crate) const STRIPES: usize = 16;

/// This thread's part.
#[inline]
pub(crate) fn own() -> usize {
    stripe::own(STRIPES)
}

/// Something on a cache line of its own.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(crate) struct Apart<T>(pub(crate) T);

/// A count in parts.
#[derive(Debug, Default)]
pub(crate) struct Count([Apart<AtomicU64>; STRIPES]);

impl Count {
    /// Adds one. Relaxed: counts are read for show, and each stands for itself.
    #[inline]
    pub(crate) fn add(&self) {
        self.next_of(own());
    }

    /// Adds one to a part, and returns what it was.
    #[inline]
    pub(crate) fn next_of(&self, stripe: usize) -> u64 {
        self.0[stripe % STRIPES].0.fetch_add(1, Ordering::Relaxed)
    }

    /// All parts together.
    pub(crate) fn sum(&self) -> u64 {
        self.0.iter().map(|part| part.0.load(Ordering::Relaxed)).sum()
    }
}

/// Several counts in parts, those of one part side by side: for counts of which there are many, each written seldom.
#[derive(Debug)]
pub(crate) struct Counts<const N: usize>([Apart<[AtomicU64; N]>; STRIPES]);

impl<const N: usize> Default for Counts<N> {
    fn default() -> Self {
        Self(std::array::from_fn(|_| Apart([const { AtomicU64::new(0) }; N])))
    }
}

impl<const N: usize> Counts<N> {
    /// Adds one to the count with this number.
    pub(crate) fn add(&self, number: usize) {
        self.0[own()].0[number % N].fetch_add(1, Ordering::Relaxed);
    }

    /// All parts of that count together.
    pub(crate) fn sum(&self, number: usize) -> u64 {
        self.0.iter().map(|part| part.0[number % N].load(Ordering::Relaxed)).sum()
    }
}
