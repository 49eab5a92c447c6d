//! Callers of HTTP/2 that reset what they ask for.
//!
//! To open a stream and to reset it costs a caller twenty bytes, and the gateway a decision, the service perhaps work.
//! Browsers reset too: whoever leaves a page or moves a map resets all that was on its way, a hundred streams at once,
//! and takes most of what it asks for. So a connection may reset 200 streams at once, and gets room for more as time
//! passes and as it takes answers to their end:
//!
//! | what a connection does                              | it may go on |
//! |------------------------------------------------------|--------------|
//! | resets 200 streams at once                           | yes |
//! | resets 20 a second                                   | for ever |
//! | resets as many streams as it takes answers to their end | for ever |
//! | resets 1000 a second and takes nothing               | for a fifth of a second |
//!
//! Beyond that it gets GOAWAY with `ENHANCE_YOUR_CALM` (RFC 9113 section 7) and is closed. Trusted proxies may reset as
//! they like: their connections carry many callers.

use super::frames::Frames;

/// How many streams may be reset at once.
const BURST: u64 = 200;

/// How many milliseconds make room for one more.
const PAID_BY: u64 = 50;

/// How many streams of a connection were reset lately.
#[derive(Debug)]
pub(crate) struct Resets {
    /// When all resets so far are paid for; none where they are not counted.
    paid_at: Option<u64>,
}

impl Resets {
    /// Of a caller who speaks for itself.
    pub(crate) const fn counted() -> Self {
        Self { paid_at: Some(0) }
    }

    /// Of a trusted proxy.
    pub(crate) const fn uncounted() -> Self {
        Self { paid_at: None }
    }

    /// So many streams were reset by now.
    pub(super) fn came(&mut self, now: u64, count: u64) {
        if let Some(paid_at) = &mut self.paid_at {
            *paid_at = (*paid_at).max(now).saturating_add(count.saturating_mul(PAID_BY));
        }
    }

    /// So many answers were taken to their end.
    pub(super) fn paid(&mut self, count: u64) {
        if let Some(paid_at) = &mut self.paid_at {
            *paid_at = paid_at.saturating_sub(count.saturating_mul(PAID_BY));
        }
    }

    /// Whether there were too many.
    pub(super) fn are_too_many(&self, now: u64) -> bool {
        self.paid_at.is_some_and(|paid_at| paid_at.saturating_sub(now) > BURST * PAID_BY)
    }
}

/// What a connection is told that resets too much: the last stream that was looked at, and `ENHANCE_YOUR_CALM`.
pub(super) fn go_away(came: &Frames) -> [u8; 17] {
    let [a, b, c, d] = came.last_stream().to_be_bytes();
    [0, 0, 8, 7, 0, 0, 0, 0, 0, a, b, c, d, 0, 0, 0, 0xb]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_that_is_left_is_no_attack() {
        let mut resets = Resets::counted();
        resets.came(5, BURST);
        assert!(!resets.are_too_many(5));
        resets.came(5, 1);
        assert!(resets.are_too_many(5));
        assert!(!resets.are_too_many(5 + PAID_BY), "time pays");
        resets.paid(1);
        assert!(!resets.are_too_many(5), "answers pay too");
    }

    #[test]
    fn twenty_a_second_may_be_reset_for_ever() {
        let mut resets = Resets::counted();
        let all = (0..100_000).all(|number| {
            resets.came(number * PAID_BY, 1);
            !resets.are_too_many(number * PAID_BY)
        });
        assert!(all);
    }

    #[test]
    fn what_was_taken_before_buys_no_more_than_a_burst() {
        let mut resets = Resets::counted();
        resets.paid(1_000_000);
        resets.came(1, BURST + 1);
        assert!(resets.are_too_many(1));
    }

    #[test]
    fn trusted_proxies_are_not_counted() {
        let mut resets = Resets::uncounted();
        resets.came(0, 1_000_000);
        assert!(!resets.are_too_many(0));
    }
}
