//! A smoothed reading of samples that come when they come.
//!
//! One sample of a busy machine says little: the processor was at 100 % for the last 50 ms, and will be at
//! 20 % for the next. So we average over the past, the recent past counting most. The textbook keeps
//! `0.95 · old + 0.05 · sample`, and hides a unit in the 0.05: it is right for one rate of sampling, and
//! when the sampler is late (and under load it is), the average becomes slower in time just when it should
//! be quick. We weigh each sample by the time it speaks for: the time since the sample before.
//!
//! ```text
//! weight = 1 − e^(−elapsed / constant)        value = (1 − weight) · value + weight · sample
//! ```
//!
//! Constant 10 s:
//!
//! | moment | sample | elapsed | weight | value |
//! |--------|--------|---------|--------|-------|
//! | 0 s    | 0.2    |         |        | 0.2   |
//! | 10 s   | 1      | 10 s    | 0.632  | 0.706 |
//! | 10 s   | 0      | 0 s     | 0      | 0.706 |
//! | 40 s   | 1      | 30 s    | 0.950  | 0.985 |
//!
//! Looking twice as often changes nothing: 1 at 5 s and 1 at 10 s give what 1 at 10 s gives. The first
//! sample is taken whole, for there is nothing to weigh it against. A sample that is no number is left out,
//! so the value is never one either. This is how the load average of Unix is made, with its constants of
//! 1, 5 and 15 minutes, which are too slow for us: by then the queue is full.

use std::time::Duration;

use crate::units::{Invalid, Moment};

/// The recent past of a signal as one number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Smoothed {
    constant: Duration,
    last: Option<(Moment, f64)>,
}

impl Smoothed {
    /// An average that forgets: what is older than `constant` counts for a third.
    ///
    /// # Errors
    /// When the constant is nothing.
    pub fn new(constant: Duration) -> Result<Self, Invalid> {
        if constant.is_zero() {
            return Err(Invalid::new("constant", format_args!("{constant:?}"), "above 0"));
        }
        Ok(Self { constant, last: None })
    }

    /// Takes a sample that speaks for the time since the last, unless it is no finite number.
    pub fn tell(&mut self, now: Moment, sample: f64) {
        if !sample.is_finite() {
            return;
        }
        let value = self.last.map_or(sample, |(at, value)| {
            let weight = -f64::exp_m1(-(now.since(at).as_secs_f64() / self.constant.as_secs_f64()));
            (1.0 - weight) * value + weight * sample
        });
        self.last = Some((now, value));
    }

    /// The smoothed value, once there was a sample.
    #[must_use]
    pub fn value(&self) -> Option<f64> {
        self.last.map(|(_, value)| value)
    }

    /// The smoothed value, if the last sample is not older than `age`.
    #[must_use]
    pub fn value_within(&self, age: Duration, now: Moment) -> Option<f64> {
        self.last.filter(|(at, _)| now.since(*at) <= age).map(|(_, value)| value)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(seconds: u64) -> Moment {
        Moment::ORIGIN.plus(Duration::from_secs(seconds))
    }

    fn ten_seconds() -> Smoothed {
        Smoothed::new(Duration::from_secs(10)).unwrap()
    }

    #[test]
    fn samples_are_weighed_as_in_the_example() {
        let mut smoothed = ten_seconds();
        assert_eq!(smoothed.value(), None);
        for (moment, sample, expected) in
            [(0, 0.2, 0.2), (10, 1.0, 0.706), (10, 0.0, 0.706), (40, 1.0, 0.985)]
        {
            smoothed.tell(at(moment), sample);
            assert!((smoothed.value().unwrap() - expected).abs() < 0.0005, "{smoothed:?}");
        }
    }

    #[test]
    fn what_is_no_number_is_left_out() {
        let mut smoothed = ten_seconds();
        smoothed.tell(at(0), f64::NAN);
        assert_eq!(smoothed.value(), None);
        smoothed.tell(at(1), 0.5);
        smoothed.tell(at(2), f64::INFINITY);
        assert_eq!(smoothed.last, Some((at(1), 0.5)));
        assert_eq!(Smoothed::new(Duration::ZERO).unwrap_err().field, "constant");
    }

    proptest! {
        #[test]
        fn the_value_stays_a_number_between_its_samples(
            samples in prop::collection::vec((0_u64..100_000_000_000, -1e308..1e308), 1..50),
        ) {
            let mut smoothed = ten_seconds();
            let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
            for (nanos, sample) in samples {
                // Moments in any order: clocks are read by several threads.
                smoothed.tell(Moment::from_nanos(nanos), sample);
                (low, high) = (low.min(sample), high.max(sample));
                let value = smoothed.value().unwrap();
                let slack = 1e-9 * low.abs().max(high.abs());
                prop_assert!(value >= low - slack && value <= high + slack);
            }
        }

        #[test]
        fn how_often_one_looks_does_not_matter(steps in prop::collection::vec(1_u64..5_000, 1..40)) {
            let (mut often, mut once) = (ten_seconds(), ten_seconds());
            often.tell(at(0), 0.0);
            once.tell(at(0), 0.0);
            let mut now = at(0);
            for step in steps {
                now = now.plus(Duration::from_millis(step));
                often.tell(now, 1.0);
            }
            once.tell(now, 1.0);
            prop_assert!((often.value().unwrap() - once.value().unwrap()).abs() < 1e-9);
        }
    }
}
