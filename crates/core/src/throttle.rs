//! Refusing on the caller's side what the other side would refuse anyway (S3).
//!
//! A refusal is cheap but not free: a service offered ten times what it can serve spends its strength on
//! saying no. Its callers know, from its answers, that most of what they send is refused. So they refuse
//! some of it themselves, before it leaves. How much? The simplest way, to stop sending while refusals
//! come in, is a breaker: all or nothing, while a service that is merely overloaded still serves its
//! capacity. So a caller refuses *at random*, with a probability from what it saw in the last two
//! minutes:
//!
//! ```text
//! p = max(0, (requests − K · accepts) / (requests + 1))
//! ```
//!
//! `requests` counts what the application asked for, refused here or not, before it is sent; `accepts`
//! what the other side accepted. While it accepts at least 1/K of the requests, nothing is refused here.
//! Below, p settles where about K times as much is sent as is accepted. K = 2 sends one in vain for each
//! that is accepted, and so sees at once when more is accepted; K = 1.1 sends a tenth in vain, for
//! services to which a refusal costs as much as an answer.
//!
//! With K = 2, by the formula:
//!
//! | requests | accepts | p        |
//! |----------|---------|----------|
//! | 100      | 50      | 0        |
//! | 100      | 40      | 0.198020 |
//! | 100      | 0       | 0.990099 |
//!
//! Three things are added, each because somebody was hurt without it:
//!
//! - *Recovery must be seen.* With nothing accepted, p approaches 1, and a service that is back is never
//!   found. So p has a ceiling, and whatever p says, one request in `probe_every` passes. A caller that
//!   sends less than that is never refused here: two minutes of its history would say nothing, and it
//!   overloads nobody.
//! - *No refusal, no throttle.* Requests count when they are sent and accepts when they are answered, so
//!   a caller that starts with a hundred at once looks like one that is refused a hundred times. Unless
//!   the other side refused somebody within the window, p is 0.
//! - *Errors are not refusals.* Whoever answers "bad request" has accepted the work of looking at it.
//!
//! Each criticality has its own counts: when the other side sheds `sheddable`, `critical` goes on
//! undisturbed.
//!
//! Limits: a process that restarts has forgotten; an answer counts when it comes, so the window must be
//! longer than the longest time-out. Source: *Site Reliability Engineering*, chapter 21.

use std::time::Duration;

use crate::units::{Invalid, Ratio, Roll};

mod shared;
#[cfg(test)]
mod tests;

pub use shared::{Answer, Throttle};

/// Everything that can be chosen for a throttle.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ThrottleTerms {
    /// How many times as much is sent as is accepted: K.
    pub multiplier: f64,
    /// How far back requests and accepts count.
    pub window: Duration,
    /// The most that is refused here.
    pub ceiling: Ratio,
    /// One request in this long passes in any case.
    pub probe_every: Duration,
}

impl Default for ThrottleTerms {
    fn default() -> Self {
        Self {
            multiplier: 2.0,
            window: Duration::from_secs(120),
            // Matters only to a service that is offered forty times what it accepts. Others stop at .75
            // to .9, which sends on four times too much of a flood of ten times the capacity.
            ceiling: Ratio::new(0.95).unwrap_or(Ratio::ONE),
            probe_every: Duration::from_secs(1),
        }
    }
}

/// What one criticality has seen within the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// What the application asked for.
    pub requests: u64,
    /// What the other side accepted of it.
    pub accepts: u64,
}

/// A throttle's terms, checked.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ThrottleRule {
    terms: ThrottleTerms,
}

impl ThrottleRule {
    /// The rule with these terms.
    ///
    /// # Errors
    /// When the multiplier is not from 1 to 100, the window not from 1 s to 10 min, or the probes' interval
    /// not from 1 ms up to the window.
    pub fn new(terms: ThrottleTerms) -> Result<Self, Invalid> {
        if !(1.0..=100.0).contains(&terms.multiplier) {
            return Err(Invalid::new("multiplier", terms.multiplier, "from 1 to 100"));
        }
        if terms.window < Duration::from_secs(1) || terms.window > Duration::from_secs(600) {
            return Err(Invalid::new("window", format!("{:?}", terms.window), "from 1 second to 10 minutes"));
        }
        if terms.probe_every < Duration::from_millis(1) || terms.probe_every > terms.window {
            let value = format!("{:?}", terms.probe_every);
            return Err(Invalid::new("probe_every", value, "from 1 millisecond up to the window"));
        }
        Ok(Self { terms })
    }

    /// What it was made of.
    #[must_use]
    pub const fn terms(&self) -> &ThrottleTerms {
        &self.terms
    }

    /// The probability by the formula alone, without ceiling and probes.
    ///
    /// ```
    /// use tidegate_core::throttle::{Seen, ThrottleRule};
    ///
    /// let p = ThrottleRule::default().probability(Seen { requests: 100, accepts: 40 });
    /// assert_eq!(format!("{:.6}", p.value()), "0.198020");
    /// ```
    #[must_use]
    #[inline]
    pub fn probability(&self, seen: Seen) -> Ratio {
        Ratio::new((self.excess(seen) / (seen.requests as f64 + 1.0)).max(0.0)).unwrap_or(Ratio::ZERO)
    }

    /// Whether a roll refuses a request, by the formula and the ceiling. A division takes as long as all the rest, so the
    /// formula is multiplied out: `roll < excess / (requests + 1)`.
    #[inline]
    fn refuses(&self, seen: Seen, roll: Roll) -> bool {
        let is_hit = roll.value() * (seen.requests as f64 + 1.0) < self.excess(seen);
        is_hit && roll.hits(self.terms.ceiling)
    }

    /// How many requests there were beyond what the accepts stand for.
    #[inline]
    fn excess(&self, seen: Seen) -> f64 {
        seen.requests as f64 - self.terms.multiplier * seen.accepts as f64
    }
}
