//! How much to refuse: a dimmer, not a switch.
//!
//! The simplest controller refuses 5 % more when there is too much and 1 % less when there is not (DAGOR).
//! It needs only a yes or no, and it never comes to rest: five steps up, one down, for ever; and a flood of
//! ten times as much takes it 45 steps. We know more than yes or no. If `demand` is what came in and `supply`
//! what can be served, then passing the share `supply / demand` of what passes now would be right at
//! once. So we keep a *drive*, pass `e^(−drive)` of the traffic, and the step that is right is
//!
//! ```text
//! drive = drive + ln(demand / supply)         refuse 1 − e^(−drive)
//! ```
//!
//! Taken whole, every step follows the chance in every count. Taken by half, it does so half as much and
//! lags a flood. But chance is small and floods are large: so an error counts by its own size. Of 1 (almost
//! three times too much) all is taken, of 0.1 a tenth, which leaves 0.01. And between 95 % and 105 % of what
//! could be served, nothing is wrong: there the drive rests. Nothing else is there to tune.
//!
//! 500 can be served in a tick, nobody can wait, and 1000 come; after tick 8 only 400:
//!
//! | tick | passes | error  | taken  | drive  | then refuse |
//! |------|--------|--------|--------|--------|-------------|
//! | 1    | 1000   | 0.683  | 0.467  | 0.217  | 0.195       |
//! | 2    | 805    | 0.469  | 0.220  | 0.437  | 0.354       |
//! | 3    | 646    | 0.252  | 0.063  | 0.500  | 0.393       |
//! | 8    | 554    | 0.101  | 0.010  | 0.600  | 0.451       |
//! | 9    | 219    | −0.826 | −0.776 | −0.175 | 0           |
//! | 10   | 400    | −0.223 | −0.060 | −0.235 | 0           |
//!
//! The drive rests at −0.25 in good times: a head start, so that one tick with a little too much refuses
//! nobody. It never leaves −0.25 to 5, however long an error lasts. That is what is called anti-wind-up:
//! after an hour of hopeless overload, the way back is as short as after a minute. Going down, errors
//! count twice, since an idle service is a waste that nobody's chance explains.
//!
//! Uber's Cinnamon steers by the sum of errors and the last one (a PI controller) with fixed gains. As far
//! as its published formula goes, it answers a flood as soon and turns round far more often:
//! `tests/shed_loop.rs` runs all three on the same traffic. Over twenty minutes of a slow ramp the edge turns
//! round once here, 27 times by DAGOR's steps and 199 times by Cinnamon's; in fifteen seconds of a flood of
//! ten times as much, 5 000, 106 000 and 4 400 requests wait in vain. The comparison is ours: this law was
//! shaped on that model, and the other two were taken as published.

use crate::units::{Invalid, Ratio};

/// The share of the traffic to refuse, moved by errors that a driver measures.
///
/// ```
/// use tidegate_core::shed::Dimmer;
///
/// let mut dimmer = Dimmer::default();
/// let twice_too_much = 2_f64.ln();
/// assert!(dimmer.step(twice_too_much).value() > 0.2);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dimmer {
    /// How much idleness is fine, as a logarithm.
    idle: f64,
    drive: f64,
}

/// One tick with 1.6 times too much is forgiven.
const HEAD_START: f64 = 0.25;

/// Errors up to this are what a queue is for. Without it, a level that just fits loses a percent more: chance
/// drives the edge into it, and the play holds it there.
const BORNE: f64 = 0.05;

/// Refuses all but 1 in 150. Where more must go, more than the edge is needed.
const TOP: f64 = 5.0;

impl Default for Dimmer {
    /// Rests while between 95 % and 105 % of what could be served is asked for.
    fn default() -> Self {
        Self { idle: 0.05, drive: -HEAD_START }
    }
}

impl Dimmer {
    /// The same, resting while no more than this share of what could be served is idle. More makes it
    /// calmer and wastes more.
    ///
    /// # Errors
    /// When that is more than half.
    pub fn with_idle(self, idle: Ratio) -> Result<Self, Invalid> {
        if idle.value() > 0.5 {
            return Err(Invalid::new("idle", idle.value(), "at most 0.5"));
        }
        Ok(Self { idle: -f64::ln_1p(-idle.value()), ..self })
    }

    /// Takes in the error of a tick, the logarithm of demand over supply, and says how much to refuse.
    pub fn step(&mut self, error: f64) -> Ratio {
        self.drive = (self.drive + self.taken(error)).clamp(-HEAD_START, TOP);
        self.refused()
    }

    /// How much to refuse now.
    #[must_use]
    pub fn refused(&self) -> Ratio {
        Ratio::new(-f64::exp_m1(-self.drive.max(0.0))).unwrap_or(Ratio::ONE)
    }

    /// What is taken of an error; nothing of one that is no number.
    fn taken(&self, error: f64) -> f64 {
        if error > BORNE {
            return error * error.min(1.0);
        }
        // `min` of NaN and 0 is 0.
        let beyond = (error + self.idle).min(0.0);
        beyond * (-2.0 * beyond).min(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shed::Flow;

    fn share(value: f64) -> Ratio {
        Ratio::new(value).unwrap()
    }

    /// Ticks in which 500 can be served and nobody waits: what passes, then the drive and the share refused.
    fn ticks(offered: impl IntoIterator<Item = u32>) -> Vec<String> {
        let mut dimmer = Dimmer::default();
        let tick = |offered: u32| {
            let passes = f64::from(offered) * (1.0 - dimmer.refused().value());
            let entered: u32 = format!("{passes:.0}").parse().unwrap();
            let served = entered.min(500);
            let busy = share(f64::from(served) / 500.0);
            let flow = Flow { entered: entered.into(), served: served.into(), waiting: 0, busy };
            let refused = dimmer.step(flow.error()).value();
            format!("{entered} {:.3} {refused:.3}", dimmer.drive)
        };
        offered.into_iter().map(tick).collect()
    }

    #[test]
    fn twice_too_much_is_met_as_in_the_example() {
        let ticks = ticks([1_000, 1_000, 1_000, 1_000, 1_000, 1_000, 1_000, 1_000, 400, 400]);
        assert_eq!(ticks[..3], ["1000 0.217 0.195", "805 0.437 0.354", "646 0.500 0.393"]);
        assert_eq!(ticks[7..], ["554 0.600 0.451", "219 -0.175 0.000", "400 -0.235 0.000"]);
    }

    #[test]
    fn a_little_idle_is_no_error() {
        let mut dimmer = Dimmer::default();
        let refused = dimmer.step(1.0);
        for busy in [0.96, 0.98, 1.0, 0.955_f64] {
            assert_eq!(dimmer.step(busy.ln()), refused);
        }
        assert!(dimmer.step(0.5_f64.ln()) < refused);
    }

    #[test]
    fn an_hour_of_overload_does_not_lengthen_the_way_back() {
        let steps_back = |ticks: u32| {
            let mut dimmer = Dimmer::default();
            for _ in 0..ticks {
                dimmer.step(2.0);
            }
            (0..).take_while(|_| dimmer.step(-1.0) > Ratio::ZERO).count()
        };
        assert_eq!(steps_back(10), steps_back(7_200));
        assert!(steps_back(7_200) <= 6);
    }

    #[test]
    fn what_is_no_number_moves_nothing_and_infinity_does_no_harm() {
        let mut dimmer = Dimmer::default();
        dimmer.step(0.8);
        let before = dimmer;
        dimmer.step(f64::NAN);
        assert_eq!(dimmer, before);
        assert!(dimmer.step(f64::INFINITY).value() < 1.0);
        assert_eq!(dimmer.step(f64::NEG_INFINITY), Ratio::ZERO);
        assert!(dimmer.step(2.0) > Ratio::ZERO);
        assert_eq!(Dimmer::default().with_idle(share(0.6)).unwrap_err().field, "idle");
    }
}
