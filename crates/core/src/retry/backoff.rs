//! How long to wait before the next attempt: capped exponential back-off with jitter.
//!
//! Trying again at once meets the same trouble. Waiting longer each time, `min(cap, base · 2ⁿ)`, gives the
//! other side room; the cap keeps the wait within what a caller bears. But callers that failed together wait
//! alike and come back together, in ever rarer and equally high waves. So chance spreads them out:
//!
//! | jitter       | the n-th wait, n from 0            | for roll 0 | for roll → 1 |
//! |--------------|------------------------------------|------------|--------------|
//! | none         | e = min(cap, base · 2ⁿ)            | e          | e            |
//! | equal        | from e/2 up to e                   | e/2        | e            |
//! | full         | from 0 up to e                     | 0          | e            |
//! | decorrelated | from base up to 3 · the last wait  | base       | min(cap, 3 · the last) |
//!
//! Base 2 s and cap 8 s: without jitter 2, 4, 8, 8, … seconds; with full jitter and rolls of one half 1,
//! 2, 4, 4, …; decorrelated with rolls of one half 4, 7, 8, 8, … seconds, the last wait being the base at
//! first.
//!
//! Full jitter makes the fewest attempts, since it uses the whole stretch; equal jitter never comes back
//! at once, which some want; decorrelated grows by chance and needs no count. `cargo run --release
//! --example backoff` compares them. Source: Brooker, "Exponential Backoff And Jitter".

use std::time::Duration;

use crate::units::share::between;
use crate::units::{Invalid, LONGEST, Roll};

/// How chance enters a wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Jitter {
    /// Not at all. For tests, and for whoever is alone.
    None,
    /// Half of the wait is fixed, half is drawn.
    Equal,
    /// All of the wait is drawn.
    #[default]
    Full,
    /// Drawn from the base up to three times the last wait.
    Decorrelated,
}

/// Waits that grow from a base to a cap.
///
/// ```
/// use std::time::Duration;
/// use tidegate_core::Roll;
/// use tidegate_core::retry::{Backoff, Delays, Jitter};
///
/// let backoff = Backoff::new(Duration::from_secs(2))?.with_cap(Duration::from_secs(8))?.with_jitter(Jitter::None);
/// let (mut delays, roll) = (Delays::new(), Roll::new(0.5)?);
/// let waits = [(); 4].map(|()| delays.next(&backoff, roll).as_secs());
/// assert_eq!(waits, [2, 4, 8, 8]);
/// # Ok::<(), tidegate_core::Invalid>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    base: Duration,
    cap: Duration,
    jitter: Jitter,
}

impl Backoff {
    /// Waits that begin at `base`, with full jitter and a cap of ten times the base.
    ///
    /// # Errors
    /// When the base is not from 1 µs to 400 days.
    pub fn new(base: Duration) -> Result<Self, Invalid> {
        if base < Duration::from_micros(1) || base > LONGEST {
            return Err(Invalid::new("base", format!("{base:?}"), "from 1 microsecond to 400 days"));
        }
        Ok(Self { base, cap: base.saturating_mul(10).min(LONGEST), jitter: Jitter::Full })
    }

    /// The same, never waiting longer than `cap`.
    ///
    /// # Errors
    /// When the cap is below the base or above 400 days.
    pub fn with_cap(self, cap: Duration) -> Result<Self, Invalid> {
        if cap < self.base || cap > LONGEST {
            return Err(Invalid::new("cap", format!("{cap:?}"), "from the base to 400 days"));
        }
        Ok(Self { cap, ..self })
    }

    /// The same with this jitter.
    #[must_use]
    pub const fn with_jitter(self, jitter: Jitter) -> Self {
        Self { jitter, ..self }
    }

    /// The n-th wait before chance, n from 0.
    fn exponential(&self, n: u32) -> Duration {
        let times = 1_u32.checked_shl(n).unwrap_or(u32::MAX);
        self.base.saturating_mul(times).min(self.cap)
    }

    fn delay(&self, n: u32, last: Duration, roll: Roll) -> Duration {
        let whole = self.exponential(n);
        match self.jitter {
            Jitter::None => whole,
            Jitter::Equal => between(whole / 2, whole, roll),
            Jitter::Full => between(Duration::ZERO, whole, roll),
            Jitter::Decorrelated => between(self.base, last.saturating_mul(3), roll).min(self.cap),
        }
    }
}

/// The waits of one request so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Delays {
    made: u32,
    last: Duration,
}

impl Delays {
    /// No wait so far.
    #[must_use]
    pub const fn new() -> Self {
        Self { made: 0, last: Duration::ZERO }
    }

    /// The next wait.
    pub fn next(&mut self, backoff: &Backoff, roll: Roll) -> Duration {
        let delay = backoff.delay(self.made, self.last.max(backoff.base), roll);
        self.made = self.made.saturating_add(1);
        self.last = delay;
        delay
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waits(jitter: Jitter, roll: f64) -> [u64; 4] {
        let (base, cap) = (Duration::from_secs(2), Duration::from_secs(8));
        let backoff = Backoff::new(base).unwrap().with_cap(cap).unwrap().with_jitter(jitter);
        let (mut delays, roll) = (Delays::new(), Roll::new(roll).unwrap());
        // Rounded up, since a roll near 1 comes close to a bound without reaching it.
        [(); 4].map(|()| u64::try_from(delays.next(&backoff, roll).as_nanos().div_ceil(1_000_000)).unwrap())
    }

    #[test]
    fn two_seconds_capped_at_eight_wait_as_in_the_example() {
        assert_eq!(waits(Jitter::None, 0.5), [2_000, 4_000, 8_000, 8_000]);
        assert_eq!(waits(Jitter::Full, 0.5), [1_000, 2_000, 4_000, 4_000]);
        assert_eq!(waits(Jitter::Decorrelated, 0.5), [4_000, 7_000, 8_000, 8_000]);
    }

    #[test]
    fn the_bounds_of_each_jitter_are_exact() {
        let almost_one = 1.0 - f64::EPSILON;
        assert_eq!(waits(Jitter::Equal, 0.0), [1_000, 2_000, 4_000, 4_000]);
        assert_eq!(waits(Jitter::Equal, almost_one), [2_000, 4_000, 8_000, 8_000]);
        assert_eq!(waits(Jitter::Full, 0.0), [0; 4]);
        assert_eq!(waits(Jitter::Full, almost_one), [2_000, 4_000, 8_000, 8_000]);
        assert_eq!(waits(Jitter::Decorrelated, 0.0), [2_000; 4]);
        assert_eq!(waits(Jitter::Decorrelated, almost_one), [6_000, 8_000, 8_000, 8_000]);
    }

    #[test]
    fn the_thousandth_wait_is_the_cap_and_not_an_overflow() {
        let backoff = Backoff::new(LONGEST).unwrap().with_jitter(Jitter::None);
        let mut delays = Delays { made: u32::MAX, last: LONGEST };
        assert_eq!(delays.next(&backoff, Roll::new(0.0).unwrap()), LONGEST);
        let small = Backoff::new(Duration::from_millis(1)).unwrap().with_jitter(Jitter::None);
        assert_eq!(Delays { made: 1_000, last: LONGEST }.next(&small, Roll::new(0.0).unwrap()), small.cap);
    }

    #[test]
    fn a_base_of_nothing_and_a_cap_below_the_base_are_refused() {
        assert_eq!(Backoff::new(Duration::ZERO).unwrap_err().field, "base");
        let backoff = Backoff::new(Duration::from_secs(1)).unwrap();
        assert_eq!(backoff.with_cap(Duration::from_millis(999)).unwrap_err().field, "cap");
    }
}
