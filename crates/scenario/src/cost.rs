//! What the answers of a gateway cost it.
//!
//! Nobody sees what one answer takes, only what a stretch of time takes, and in a flood both kinds are in it: some
//! requests are forwarded, the others refused. With a for the one and b for the other it takes `a·forwarded + b·refused`.
//! So a stretch in which nothing is refused must say what a is; then the flood says what b is.
//!
//! A calm stretch of 1000 answers takes 100 ms, so one takes 100 µs. A flood in which 1000 are forwarded and 9000 refused
//! takes 280 ms; less 100 ms for the answers, a refusal takes 20 µs.
//!
//! Where forwarding is dearer in the calm, since there is more waking up in it, a refusal looks cheaper than it is, and in
//! the extreme negative.

use std::time::Duration;

/// What a gateway used in a stretch of time, and for what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Effort {
    /// Processor time.
    pub used: Duration,
    /// How many answers it forwarded.
    pub forwarded: u64,
    /// How many requests it refused.
    pub refused: u64,
}

impl Effort {
    /// Microseconds for a forwarded answer, of a stretch in which nothing was refused; none where nothing was forwarded
    /// either.
    #[must_use]
    pub fn of_forwarding(&self) -> Option<f64> {
        (self.forwarded > 0).then(|| self.micros() / self.forwarded as f64)
    }

    /// Microseconds for a refusal, if a forwarded answer takes so many; none where nothing was refused.
    #[must_use]
    pub fn of_refusing(&self, forwarding: f64) -> Option<f64> {
        let left = self.micros() - forwarding * self.forwarded as f64;
        (self.refused > 0).then(|| left / self.refused as f64)
    }

    fn micros(&self) -> f64 {
        self.used.as_secs_f64() * 1e6
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn effort(millis: u64, forwarded: u64, refused: u64) -> Effort {
        Effort { used: Duration::from_millis(millis), forwarded, refused }
    }

    #[test]
    fn a_refusal_costs_what_forwarding_leaves() {
        let forwarding = effort(100, 1000, 0).of_forwarding();
        assert_eq!(forwarding, Some(100.0));
        assert_eq!(effort(280, 1000, 9000).of_refusing(100.0), Some(20.0));
    }

    #[test]
    fn what_was_not_done_has_no_cost() {
        assert_eq!(effort(100, 0, 5).of_forwarding(), None);
        assert_eq!(effort(100, 5, 0).of_refusing(1.0), None);
    }
}
