//! One caller who takes what he can get.

use std::io::Write;
use std::time::Duration;

use tidegate_core::keyed::{DueTable, MaxKeys};
use tidegate_core::rate::TokenBucket;
use tidegate_core::{Cost, Moment, Quota};

use super::{Problem, SEED, at, heading, scatter};

/// Callers and what they send in a second.
const CALLERS: [(&str, u32); 4] = [("alice", 2), ("bob", 5), ("carol", 9), ("mallory", 400)];
const SECONDS: u32 = 10;

pub(super) fn write(page: &mut dyn Write) -> Result<(), Problem> {
    heading(page, "4  A greedy caller", "40/s shared, against 10/s for each key")?;
    let shared = admitted(Quota::per_second(Cost::of(40))?, |_| "everybody")?;
    let each = admitted(Quota::per_second(Cost::of(10))?, |caller| caller)?;
    writeln!(page, "   {:<14}{:>10}{:>26}{:>26}", "caller", "sent", "admitted, shared", "admitted, by key")?;
    for (index, (caller, sends)) in CALLERS.into_iter().enumerate() {
        let sent = sends * SECONDS;
        let share = |count: u32| format!("{count:>6}  {:>4} %", count * 100 / sent);
        writeln!(page, "   {caller:<14}{sent:>10}{:>26}{:>26}", share(shared[index]), share(each[index]))?;
    }
    Ok(())
}

/// How many requests of each caller pass when `key` picks the counter.
fn admitted(quota: Quota, key: fn(&'static str) -> &'static str) -> Result<[u32; CALLERS.len()], Problem> {
    let table = DueTable::new(MaxKeys::new(1_000)?, SEED);
    let rule = table.enrol(&TokenBucket::new(quota))?;
    let mut admitted = [0; CALLERS.len()];
    for (now, caller) in arrivals() {
        let verdict = table.decide(&rule, table.key(key(CALLERS[caller].0)), now, Cost::ONE);
        admitted[caller] += u32::from(verdict.is_admit());
    }
    Ok(admitted)
}

/// Every caller's requests in the order of time: one somewhere in each of his equal shares of a second.
fn arrivals() -> Vec<(Moment, usize)> {
    let second = Duration::from_secs(1);
    let of = |(caller, (_, sends)): (usize, (&str, u32))| {
        let share = second / sends;
        (0..sends * SECONDS).map(move |request| {
            let somewhere = scatter(caller as u64 * 1_000_000 + u64::from(request)) % 1_000;
            (at(share * request + share * somewhere / 1_000), caller)
        })
    };
    let mut arrivals: Vec<_> = CALLERS.into_iter().enumerate().flat_map(of).collect();
    arrivals.sort_unstable();
    arrivals
}
