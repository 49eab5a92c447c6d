//! Callers that contend for one record, in virtual time.

#[path = "../../tests/support/random.rs"]
mod random;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use random::Dice;
use tidegate_core::retry::{Backoff, Delays, Jitter};
use tidegate_core::{Moment, Roll};

/// How a caller waits after it has lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waiting {
    /// Not at all.
    Nothing,
    /// Exponentially longer, with this jitter.
    Exponential(Jitter),
}

impl Waiting {
    /// All ways that are compared.
    pub(crate) const ALL: [Self; 5] = [
        Self::Nothing,
        Self::Exponential(Jitter::None),
        Self::Exponential(Jitter::Equal),
        Self::Exponential(Jitter::Full),
        Self::Exponential(Jitter::Decorrelated),
    ];

    /// Its name in the table.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Nothing => "no wait",
            Self::Exponential(Jitter::None) => "exponential",
            Self::Exponential(Jitter::Equal) => "equal jitter",
            Self::Exponential(Jitter::Full) => "full jitter",
            Self::Exponential(Jitter::Decorrelated) => "decorrelated jitter",
        }
    }

    fn wait(self, delays: &mut Delays, roll: Roll) -> Duration {
        match self {
            Self::Nothing => Duration::ZERO,
            Self::Exponential(jitter) => {
                let backoff = Backoff::new(Duration::from_millis(5)).expect("a base");
                let backoff = backoff.with_cap(Duration::from_secs(2)).expect("a cap");
                delays.next(&backoff.with_jitter(jitter), roll)
            }
        }
    }
}

/// What it took.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Contest {
    /// How many writes were tried.
    pub(crate) attempts: u32,
    /// When the last caller had written.
    pub(crate) took: Duration,
}

/// What reaches the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Message {
    Read,
    /// With the version that was read.
    Write(u32),
}

/// Lets so many callers compete, until each has written once.
pub(crate) fn compete(callers: u32, way: Waiting) -> Contest {
    let mut dice = Dice(0x5EED);
    let mut delays = vec![Delays::new(); usize::try_from(callers).unwrap_or(0)];
    let first = |caller| Reverse((Moment::ORIGIN.plus(network(&mut dice)), caller, Message::Read));
    let mut arrivals: BinaryHeap<_> = (0..delays.len()).map(first).collect();
    let (mut version, mut attempts, mut last) = (0, 0, Moment::ORIGIN);
    while let Some(Reverse((now, caller, message))) = arrivals.pop() {
        // Back to the caller, and from there to the server again.
        let there_and_back = network(&mut dice) + network(&mut dice);
        match message {
            Message::Read => {
                arrivals.push(Reverse((now.plus(there_and_back), caller, Message::Write(version))));
            }
            Message::Write(read) => {
                attempts += 1;
                if read == version {
                    version += 1;
                    last = now;
                } else {
                    let wait = way.wait(&mut delays[caller], roll(&mut dice));
                    arrivals.push(Reverse((now.plus(there_and_back + wait), caller, Message::Read)));
                }
            }
        }
    }
    Contest { attempts, took: last.since(Moment::ORIGIN) }
}

/// One way through the network: 10 ms, give or take; the sum of three draws looks like a bell.
fn network(dice: &mut Dice) -> Duration {
    let spread = dice.number() + dice.number() + dice.number() - 1.5;
    Duration::from_micros(10_000).mul_f64(1.0 + 0.4 * spread)
}

fn roll(dice: &mut Dice) -> Roll {
    Roll::new(dice.number()).expect("below 1")
}
