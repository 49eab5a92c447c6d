//! Finding the heaviest callers without counting everybody.

use std::io::Write;

use tidegate_core::Cost;
use tidegate_core::heavy::{Event, Ranking, TopCallers};
use tidegate_core::keyed::{DueTable, MaxKeys};

use super::{Problem, SEED, heading, scatter};

const CALLERS: u32 = 10_000;
/// The heaviest sends so many, the second a half of it, the third a third.
const MOST: u32 = 20_000;
const PLACES: usize = 8;
const SHOWN: usize = 5;

pub(super) fn write(page: &mut dyn Write) -> Result<(), Problem> {
    heading(page, "8  Who is it? 10000 callers, the n-th sends 20000/n", "top callers, lists of 8")?;
    let table = DueTable::new(MaxKeys::new(10_000)?, SEED);
    let top = TopCallers::new(PLACES)?;
    for caller in arrivals() {
        let name = format!("caller-{caller}");
        top.record(table.key(&name), &name, Event::Admitted(Cost::ONE));
    }
    writeln!(page, "   {:<16}{:>16}{:>26}{:>16}", "caller", "counted", "too high by at most", "in truth")?;
    for heavy in top.ranked(Ranking::Cost).into_iter().take(SHOWN) {
        let [counted, error] =
            [heavy.weight, heavy.error].map(|micros| Cost::from_micros(micros).to_string());
        let number: u32 = heavy.name.as_str().trim_start_matches("caller-").parse()?;
        writeln!(page, "   {:<16}{counted:>16}{error:>26}{:>16}", heavy.name.as_str(), MOST / number)?;
    }
    Ok(())
}

/// The caller of each request, in an order that looks random.
fn arrivals() -> impl Iterator<Item = u32> {
    let of = |caller: u32| (0..MOST / caller).map(move |request| (caller, request));
    let mut arrivals: Vec<_> = (1..=CALLERS).flat_map(of).collect();
    arrivals.sort_by_cached_key(|(caller, request)| scatter(u64::from(*caller) << 32 | u64::from(*request)));
    arrivals.into_iter().map(|(caller, _)| caller)
}
