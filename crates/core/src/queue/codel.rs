//! Controlled delay: drop a few, ever more often, until the queue is short again.
//!
//! A long queue is not by itself a bad one: a burst fills it and the next quiet moment empties it. What
//! is bad is a queue that never gets short. So the law looks at how long each entry waited when its turn
//! comes, and waits for the *shortest* of them: only when everything served in a whole `interval` has
//! waited at least `target` is the queue standing, and one entry is dropped. That may be enough: senders
//! who slow down when they lose something need to lose only one. If it is not, the next drop follows
//! after `interval / √2`, then `interval / √3`, and so on, which raises the rate of drops in a straight
//! line until the wait falls below `target`.
//!
//! Target 5 ms, interval 100 ms; everything waits 20 ms from moment 0 on:
//!
//! | moment   | count | next drop after    | what happens                         |
//! |----------|-------|--------------------|--------------------------------------|
//! | 0 ms     |       |                    | above target for the first time      |
//! | 99 ms    |       |                    | served: the interval is not over     |
//! | 100 ms   | 1     | 100 / √1 = 100 ms  | dropped; drops from now on           |
//! | 200 ms   | 2     | 100 / √2 = 70.7 ms | dropped                              |
//! | 270.7 ms | 3     | 100 / √3 = 57.7 ms | dropped                              |
//! | 300 ms   |       |                    | one waited 4 ms: served, drops end   |
//!
//! When drops begin again soon after they ended, the count goes on from where it was of use.
//!
//! Limits: it was made for packets, whose senders notice a loss and slow down. Callers over HTTP do not
//! slow down for one refusal, and the straight line takes seconds to reach a flood; there use
//! [`RequestCodel`](super::RequestCodel). The law knows no criticality, so the queue keeps one for each
//! level. The last entry of a level is never dropped: nobody waits behind it.
//!
//! Source: RFC 8289, whose numbers are the default.

use std::time::Duration;

use crate::units::{Invalid, Moment, nanos_of};

/// The law of RFC 8289, and where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Codel {
    target: Duration,
    interval: Duration,
    /// When a whole interval above the target will be over, if the last entry was above it.
    above_until: Option<Moment>,
    /// Drops in this stretch of dropping.
    count: u32,
    /// The count with which this stretch began.
    first_count: u32,
    drop_next: Moment,
    is_dropping: bool,
    /// The last one was dropped and the next drop has not been set: RFC 8289 sets it only if the entry
    /// behind is above target too.
    is_due_unset: bool,
}

/// A stretch of dropping that begins within so many intervals of the last goes on from its count.
const MEMORY: u32 = 16;

impl Codel {
    /// Drops when everything has waited at least `target` for a whole `interval`.
    ///
    /// # Errors
    /// When the target is nothing, or as long as the interval.
    pub fn new(target: Duration, interval: Duration) -> Result<Self, Invalid> {
        check(target, interval)?;
        Ok(Self {
            target,
            interval,
            above_until: None,
            count: 0,
            first_count: 0,
            drop_next: Moment::ORIGIN,
            is_dropping: false,
            is_due_unset: false,
        })
    }

    /// The wait that is fine.
    #[must_use]
    pub const fn target(&self) -> Duration {
        self.target
    }

    /// Whether the entry whose turn it is, and which waited so long, is dropped.
    pub fn drops(&mut self, now: Moment, waited: Duration, is_last: bool) -> bool {
        let has_stood = self.has_stood(now, waited, is_last);
        if !has_stood {
            (self.is_dropping, self.is_due_unset) = (false, false);
            return false;
        }
        if !self.is_dropping {
            self.begin(now);
            return true;
        }
        if self.is_due_unset {
            self.drop_next = self.after_count(self.drop_next);
            self.is_due_unset = false;
        }
        if now < self.drop_next {
            return false;
        }
        self.count = self.count.saturating_add(1);
        self.is_due_unset = true;
        true
    }

    fn has_stood(&mut self, now: Moment, waited: Duration, is_last: bool) -> bool {
        if waited < self.target || is_last {
            self.above_until = None;
            return false;
        }
        let until = *self.above_until.get_or_insert(now.plus(self.interval));
        now >= until
    }

    fn begin(&mut self, now: Moment) {
        let dropped = self.count.saturating_sub(self.first_count);
        let is_recent = now.since(self.drop_next) < self.interval.saturating_mul(MEMORY);
        self.count = if dropped > 1 && is_recent { dropped } else { 1 };
        self.first_count = self.count;
        self.drop_next = self.after_count(now);
        self.is_dropping = true;
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "an interval divided by at least 1; whole nanoseconds are fine enough"
    )]
    fn after_count(&self, from: Moment) -> Moment {
        let nanos = nanos_of(self.interval) as f64 / f64::from(self.count.max(1)).sqrt();
        from.plus(Duration::from_nanos(nanos as u64))
    }
}

/// Refuses a target that is nothing or not below the interval.
pub(super) fn check(target: Duration, interval: Duration) -> Result<(), Invalid> {
    if target.is_zero() || target >= interval {
        return Err(Invalid::new("target", format_args!("{target:?}"), "above 0 and below the interval"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn millis(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn law() -> Codel {
        Codel::new(millis(5), millis(100)).unwrap()
    }

    fn at(micros: u64) -> Moment {
        Moment::from_nanos(micros * 1_000)
    }

    #[test]
    fn a_standing_queue_is_cut_as_in_the_example() {
        let mut law = law();
        let mut dropped = Vec::new();
        for tenth in 0..3_000 {
            if law.drops(at(tenth * 100), millis(20), false) {
                dropped.push(tenth * 100);
            }
        }
        assert_eq!(dropped, [100_000, 200_000, 270_800]);
        assert!(!law.drops(at(300_000), millis(4), false));
        assert!(!law.is_dropping);
    }

    #[test]
    fn one_short_wait_within_the_interval_excuses_all() {
        let mut law = law();
        for milli in 0..1_000 {
            let waited = if milli % 90 == 0 { 4 } else { 50 };
            assert!(!law.drops(at(milli * 1_000), millis(waited), false));
        }
    }

    #[test]
    fn the_first_entry_after_a_long_silence_is_served_however_long_it_waited() {
        let mut law = law();
        for second in 0..50 {
            // Two a second, both slow: the first is always the first of its interval.
            assert!(!law.drops(at(second * 1_000_000), millis(80), true));
            assert!(!law.drops(at(second * 1_000_000 + 50_000), millis(80), false));
        }
    }

    #[test]
    fn the_last_entry_is_never_dropped() {
        let mut law = law();
        assert!((0..1_000).all(|milli| !law.drops(at(milli * 1_000), millis(50), true)));
    }

    #[test]
    fn dropping_again_soon_goes_on_from_where_it_was() {
        let mut law = law();
        let mut run = |from: u64, to: u64, waited| {
            (from..to).filter(|milli| law.drops(at(milli * 1_000), millis(waited), false)).count()
        };
        let first = run(0, 1_000, 20);
        assert_eq!(run(1_000, 1_010, 1), 0);
        let again = run(1_010, 2_010, 20);
        assert!(again > first + 10, "{first} then {again}");
        assert_eq!(run(2_010, 5_000, 1), 0);
        // More than 16 intervals later it starts over.
        assert_eq!(run(5_000, 6_000, 20), first);
    }

    #[test]
    fn a_target_that_is_no_target_is_refused() {
        assert_eq!(Codel::new(Duration::ZERO, millis(100)).unwrap_err().field, "target");
        assert_eq!(Codel::new(millis(100), millis(100)).unwrap_err().field, "target");
    }
}
