//! A limit that compares latency with earlier latency only: what the scenarios of ratchet and of a slow
//! dependency warn of. It is here to fail.
//!
//! The published Gradient2 with its defaults, once a second: a long average of the latency, the ratio of
//! 1.5 times that to the latency now, and room for four more.
//!
//! ```text
//! g = clamp(1.5 · long ÷ now, 0.5, 1)     L = clamp(0.8 · L + 0.2 · (L · g + 4), 20, 200)
//! ```
//!
//! Every response at the timeout of 5 s: long and now are equal, g is 1, and L grows by 0.8 a second until
//! it is 200. A dependency that slows down from 10 ms to 300 ms: g is 0.5, and L falls to 20 although the
//! service itself has nothing to do.

use std::collections::VecDeque;
use std::time::Duration;

use tidegate_core::permit::Outcome;
use tidegate_core::{Moment, Roll};

use crate::gate::{Arrived, Asked, Gate, Passed};

/// The limiter and the requests it has let in.
#[derive(Debug)]
pub struct Gradient2 {
    limit: f64,
    long: Option<f64>,
    /// When those inside came in. First in, first out: near enough for an average.
    inside: VecDeque<Moment>,
    window: Window,
}

#[derive(Debug, Default)]
struct Window {
    begins: Moment,
    latency: f64,
    count: u32,
    most_inside: usize,
}

const MIN: f64 = 20.0;
const MAX: f64 = 200.0;

impl Gradient2 {
    /// A limit that starts here, or at the nearest allowed.
    #[must_use]
    pub fn starting_at(limit: u32) -> Self {
        let limit = f64::from(limit).clamp(MIN, MAX);
        Self { limit, long: None, inside: VecDeque::new(), window: Window::default() }
    }

    fn close(&mut self, now: Moment) {
        let window = std::mem::replace(&mut self.window, Window { begins: now, ..Window::default() });
        let latency = window.latency / f64::from(window.count);
        let long = self.long.map_or(latency, |long| long + 2.0 / 601.0 * (latency - long));
        let long = if long / latency > 2.0 { long * 0.95 } else { long };
        self.long = Some(long);
        if (window.most_inside as f64) < self.limit / 2.0 {
            return;
        }
        let gradient = (1.5 * long / latency).clamp(0.5, 1.0);
        self.limit = (0.8 * self.limit + 0.2 * (self.limit * gradient + 4.0)).clamp(MIN, MAX);
    }
}

impl Gate for Gradient2 {
    fn arrive(&mut self, now: Moment, asked: Asked, _: Roll, _: &mut Vec<Asked>) -> Arrived {
        if self.inside.len() as f64 >= self.limit.floor() {
            return Arrived::Refuse;
        }
        self.inside.push_back(now);
        self.window.most_inside = self.window.most_inside.max(self.inside.len());
        Arrived::Pass(Passed::new(&asked, None))
    }

    fn ended(&mut self, now: Moment, _: Outcome) {
        const LENGTH: Duration = Duration::from_secs(1);
        let Some(came) = self.inside.pop_front() else { return };
        self.window.latency += now.since(came).as_secs_f64();
        self.window.count += 1;
        if now.since(self.window.begins) >= LENGTH && self.window.count >= 10 {
            self.close(now);
        }
    }

    fn limit(&self) -> Option<f64> {
        Some(self.limit)
    }
}
