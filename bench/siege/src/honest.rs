//! The honest caller: twenty requests a second, due whether or not those before were answered.
//!
//! Every other request goes over a connection of its own, as most callers' do who come by; the rest over connections that
//! stay. A request counts as answered if it got the service's own answer within five seconds, and its time counts from
//! when it was due.

use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use tidegate_bench_lab::http::Connection;

/// Requests a second.
pub(crate) const RATE: u32 = 20;

/// Longer than anybody waits.
const TOO_LONG: Duration = Duration::from_secs(5);

/// What came of the requests.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outcome {
    /// Milliseconds, without end where there was no answer; sorted.
    millis: Vec<f64>,
}

impl Outcome {
    fn of(mut millis: Vec<f64>) -> Self {
        millis.sort_by(f64::total_cmp);
        Self { millis }
    }

    /// The share of requests that were answered.
    pub(crate) fn share(&self) -> f64 {
        self.millis.iter().filter(|millis| millis.is_finite()).count() as f64 / self.millis.len() as f64
    }

    /// The time within which so many of a hundred are answered.
    pub(crate) fn percentile(&self, percent: usize) -> f64 {
        self.millis.get(self.millis.len() * percent / 100).copied().unwrap_or(f64::NAN)
    }
}

/// Asks for so long.
pub(crate) fn ask(gateway: SocketAddr, length: Duration) -> Outcome {
    let due = (0_u32..).map(|number| Duration::from_secs(1) / RATE * number).take_while(|due| *due < length);
    let kept = Mutex::new(Vec::new());
    let start = Instant::now();
    let millis = thread::scope(|scope| {
        let mut asked = Vec::new();
        for (number, due) in due.map(|due| start + due).enumerate() {
            thread::sleep(due.saturating_duration_since(Instant::now()));
            let kept = number.is_multiple_of(2).then_some(&kept);
            asked.push(scope.spawn(move || once(gateway, kept, due)));
        }
        asked.into_iter().map(|one| one.join().unwrap_or(f64::INFINITY)).collect()
    });
    Outcome::of(millis)
}

/// Milliseconds from due to answered.
fn once(gateway: SocketAddr, kept: Option<&Mutex<Vec<Connection>>>, due: Instant) -> f64 {
    let old = kept.and_then(|kept| kept.lock().unwrap_or_else(PoisonError::into_inner).pop());
    let connection = old.map_or_else(|| Connection::open(gateway), Ok);
    let answered = connection.and_then(|mut connection| Ok((connection.get("honest")?, connection)));
    let Ok((answer, connection)) = answered else { return f64::INFINITY };
    let elapsed = due.elapsed();
    if let Some(kept) = kept {
        kept.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
    }
    if answer.status == 200 && answer.body == b"hello" && elapsed < TOO_LONG {
        elapsed.as_secs_f64() * 1_000.0
    } else {
        f64::INFINITY
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_answered_is_slower_than_everything() {
        let outcome =
            Outcome::of((0..100).map(|number| if number < 2 { f64::INFINITY } else { 20.0 }).collect());
        assert!((outcome.share() - 0.98).abs() < 1e-9 && outcome.percentile(99).is_infinite());
        assert!((outcome.percentile(50) - 20.0).abs() < 1e-9);
    }
}
