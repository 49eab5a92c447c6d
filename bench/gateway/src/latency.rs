//! Latency at a moderate rate, from callers who do not wait for each other.
//!
//! A closed loop asks again when it was answered, so a gateway that stalls is asked less while it stalls,
//! and the stall is measured once. Here requests are *due* at moments drawn before the run, and each is timed
//! from its due moment, whether or not the connection was free to send it then.
//!
//! Arrivals are a Poisson stream dealt out to 16 connections, each a thread with a blocking socket on the
//! load's core. A thread wakes some microseconds after the due moment; that, the upstream and the kernel are in
//! every figure, so the upstream is also asked directly, and the difference is what a gateway adds.

use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::prctl;
use tidegate_bench_lab::cores::Core;
use tidegate_bench_lab::figures::Figure;
use tidegate_bench_lab::http::Connection;
use tidegate_bench_lab::patience::Patience;

use crate::case::{Case, KEYS};
use crate::rounds::Runner;

/// Requests a second: a tenth of what the gateways can do, and a quarter for the slowest.
pub(crate) const RATE: f64 = 5_000.0;

/// At 5 000 a second and 200 µs each, one is in use on average.
const CONNECTIONS: usize = 16;

/// The upstream asked without any gateway.
pub(crate) const DIRECT: &str = "upstream directly";

/// The cases in which requests are answered by the upstream.
pub(crate) const CASES: [Case; 2] = [Case::Plain, Case::PerKey];

/// Microseconds from due to answered, in one turn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turn {
    pub(crate) p50: f64,
    pub(crate) p99: f64,
}

/// Every contender's turns, in the order of the rounds.
pub(crate) struct Latencies {
    turns: Vec<(Case, &'static str, Turn)>,
}

impl Latencies {
    /// Lets the upstream and all runners take turns of this length, after one round that does not count.
    pub(crate) fn run(
        runners: &[Runner],
        upstream: SocketAddr,
        load: Core,
        (rounds, length): (usize, Duration),
        patience: &mut Patience,
    ) -> Result<Self, Box<dyn Error>> {
        let mut turns = Vec::new();
        for round in 0..=rounds {
            for case in CASES {
                let runners = runners.iter().filter(|runner| runner.case == case);
                let mut field: Vec<_> = runners.map(|runner| (runner.name, runner.address)).collect();
                field.push((DIRECT, upstream));
                for turn in 0..field.len() {
                    let (name, address) = field[(turn + round) % field.len()];
                    let turn = patience.undisturbed(|| measure(address, case.keys(), load, length))?;
                    if round > 0 {
                        turns.push((case, name, turn));
                    }
                }
            }
        }
        Ok(Self { turns })
    }

    pub(crate) fn p50(&self, case: Case, name: &str) -> Figure {
        Figure::of(self.of(case, name).map(|turn| turn.p50))
    }

    pub(crate) fn p99(&self, case: Case, name: &str) -> Figure {
        Figure::of(self.of(case, name).map(|turn| turn.p99))
    }

    /// By how much the p99 of `name` is above that of `base`, round by round.
    pub(crate) fn added(&self, case: Case, name: &str, base: &str) -> Figure {
        let pairs = self.of(case, name).zip(self.of(case, base));
        Figure::of(pairs.map(|(turn, base)| turn.p99 - base.p99))
    }

    fn of(&self, case: Case, name: &str) -> impl Iterator<Item = Turn> {
        let turns = self.turns.iter().filter(move |(at, of, _)| *at == case && *of == name);
        turns.map(|(_, _, turn)| *turn)
    }
}

/// One turn: all connections over the same schedule.
fn measure(address: SocketAddr, keys: usize, load: Core, length: Duration) -> Result<Turn, Box<dyn Error>> {
    let schedule = schedule(RATE, length);
    // Time for all threads to connect.
    let start = Instant::now() + Duration::from_millis(20);
    let latencies: Vec<Vec<Duration>> = thread::scope(|scope| {
        let running: Vec<_> = (0..CONNECTIONS)
            .map(|number| {
                let due: Vec<_> = schedule.iter().skip(number).step_by(CONNECTIONS).copied().collect();
                scope.spawn(move || -> io::Result<Vec<Duration>> {
                    load.pin()?;
                    // The kernel may wake a sleeper 50 µs late unless told otherwise.
                    prctl::set_timerslack(1)?;
                    let mut connection = Connection::open(address)?;
                    due.into_iter().map(|(at, key)| once(&mut connection, start + at, key % keys)).collect()
                })
            })
            .collect();
        let each = running.into_iter().map(|thread| Ok(thread.join().map_err(|_| "a thread panicked")??));
        each.collect::<Result<_, Box<dyn Error>>>()
    })?;
    let mut micros: Vec<f64> =
        latencies.iter().flatten().map(|latency| latency.as_secs_f64() * 1e6).collect();
    micros.sort_by(f64::total_cmp);
    let at = |percent: usize| micros.get(micros.len() * percent / 100).copied().unwrap_or(f64::NAN);
    Ok(Turn { p50: at(50), p99: at(99) })
}

/// Sends one request when it is due, or at once if it is late, and times it from when it was due.
fn once(connection: &mut Connection, due: Instant, key: usize) -> io::Result<Duration> {
    thread::sleep(due.saturating_duration_since(Instant::now()));
    let answer = connection.get(&format!("{key:016x}"))?;
    if answer.status == 200 {
        Ok(due.elapsed())
    } else {
        Err(io::Error::other(format!("answered {} at a moderate rate", answer.status)))
    }
}

/// When requests are due after the start, and with which key: the same in every turn.
fn schedule(rate: f64, length: Duration) -> Vec<(Duration, usize)> {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut draw = || {
        // Marsaglia's xorshift64.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let (mut at, mut schedule) = (Duration::ZERO, Vec::new());
    while at < length {
        let unit = (draw() >> 11) as f64 / (1_u64 << 53) as f64;
        at += Duration::from_secs_f64(-(1.0 - unit).ln() / rate);
        schedule.push((at, (draw() >> 33) as usize % KEYS));
    }
    schedule
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrivals_come_at_the_rate_and_unevenly() {
        let schedule = schedule(5_000.0, Duration::from_secs(4));
        assert!((19_500..20_500).contains(&schedule.len()), "{}", schedule.len());
        let gaps = schedule.windows(2).map(|pair| pair[1].0 - pair[0].0);
        // Of exponential gaps 1 − 1/e, or 63 %, are shorter than their mean.
        let short = gaps.filter(|gap| *gap < Duration::from_micros(200)).count();
        assert!((12_200..13_100).contains(&short), "{short} of 20 000");
    }
}
