//! The most a caller who knows the limiter gets past it.

use std::io::Write;
use std::time::Duration;

use tidegate_core::rate::{Algorithm, FixedWindow, LeakyBucket, SlidingLog, SlidingWindow, TokenBucket};
use tidegate_core::{Cost, Moment, Quota};

use super::{Problem, at, heading};

const MILLISECOND: Duration = Duration::from_millis(1);
/// Stretches of time in milliseconds.
const HALF_MINUTE: usize = 30_000;
const MINUTE: usize = 60_000;

/// The flood begins 10 ms before a minute ends, which is where windows are weakest, and asks for as much
/// as it can get in every millisecond of two minutes.
const BEGIN: u32 = 59_990;
const LENGTH: u32 = 120_000;

pub(super) fn write(page: &mut dyn Write) -> Result<(), Problem> {
    heading(page, "2  A flood meets each limiter", "100/min")?;
    let quota = Quota::per_minute(Cost::of(100))?;
    let titles = ["in some 20 ms", "in some 30 s", "in some 60 s"];
    line(page, "admitted at most", titles.map(str::to_owned))?;
    row(page, "token bucket, burst 100", &TokenBucket::new(quota))?;
    row(page, "token bucket, burst 10", &TokenBucket::new(quota.with_burst(Cost::of(10))?))?;
    row(page, "leaky bucket, 10 may wait", &LeakyBucket::new(quota, Cost::of(10))?)?;
    row(page, "fixed window", &FixedWindow::new(quota)?)?;
    row(page, "sliding window, two counters", &SlidingWindow::new(quota)?)?;
    row(page, "sliding window, six sub-buckets", &SlidingWindow::new(quota)?.with_sub_buckets(6)?)?;
    row(page, "sliding log", &SlidingLog::new(quota)?)?;
    writeln!(
        page,
        "   It begins 10 ms before a full minute, where windows are weakest, and takes all it can get."
    )?;
    Ok(())
}

fn row(page: &mut dyn Write, name: &str, rule: &impl Algorithm<Time = Moment>) -> Result<(), Problem> {
    let admitted = flood(rule);
    line(page, name, [20, HALF_MINUTE, MINUTE].map(|stretch| most(&admitted, stretch).to_string()))
}

fn line(page: &mut dyn Write, name: &str, cells: [String; 3]) -> Result<(), Problem> {
    let [first, second, third] = cells;
    writeln!(page, "   {name:<36}{first:>16}{second:>16}{third:>16}")?;
    Ok(())
}

/// How many were admitted in each millisecond of the flood.
fn flood(rule: &impl Algorithm<Time = Moment>) -> Vec<u32> {
    let moment = |millisecond: u32| at(MILLISECOND * (BEGIN + millisecond));
    let mut state = rule.fresh(moment(0));
    let mut admitted = Vec::new();
    for now in (0..LENGTH).map(moment) {
        let mut count = 0;
        while rule.decide(&mut state, now, Cost::ONE).is_admit() {
            count += 1;
        }
        admitted.push(count);
    }
    admitted
}

/// The largest sum over as many neighbours.
fn most(counts: &[u32], neighbours: usize) -> u32 {
    let mut sum: u32 = counts.iter().take(neighbours).sum();
    let mut most = sum;
    for (leaving, entering) in counts.iter().zip(counts.iter().skip(neighbours)) {
        sum = sum + entering - leaving;
        most = most.max(sum);
    }
    most
}
