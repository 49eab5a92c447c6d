//! A quota meets more than it allows, steadily.

use std::io::Write;
use std::time::Duration;

use tidegate_core::rate::{Algorithm, TokenBucket};
use tidegate_core::{Cost, Moment, Quota, Retry};

use super::{Problem, at, heading};

const SECONDS: usize = 10;
const ARRIVALS_PER_SECOND: u32 = 12;

pub(super) fn write(page: &mut dyn Write) -> Result<(), Problem> {
    heading(page, "1  10 a second meets 12 a second", "token bucket, 10/s, burst 10")?;
    let rule = TokenBucket::new(Quota::per_second(Cost::of(10))?);
    let mut state = rule.fresh(Moment::ORIGIN);
    let mut admitted = [0; SECONDS];
    let mut refused = [0; SECONDS];
    let mut first_refusal = None;
    for second in 0..SECONDS {
        for arrival in 0..ARRIVALS_PER_SECOND {
            let elapsed =
                Duration::from_secs(second as u64) + Duration::from_secs(1) * arrival / ARRIVALS_PER_SECOND;
            let now = at(elapsed);
            match rule.decide(&mut state, now, Cost::ONE).refusal() {
                None => admitted[second] += 1,
                Some(refusal) => {
                    refused[second] += 1;
                    first_refusal = first_refusal.or(Some((elapsed, state, refusal)));
                }
            }
        }
    }
    row(page, "second", &std::array::from_fn(|second| second + 1), "all")?;
    row(page, "arrived", &[ARRIVALS_PER_SECOND as usize; SECONDS], "")?;
    row(page, "admitted", &admitted, "")?;
    row(page, "refused", &refused, "")?;
    writeln!(page, "   The burst carries the first seconds; once it is spent, 2 a second are refused.")?;

    let Some((elapsed, state, refusal)) = first_refusal else { return Ok(()) };
    let Retry::After(retry) = refusal.retry else { return Ok(()) };
    let answer = |wait: Duration| match rule.peek(&state, at(elapsed + wait), Cost::ONE).is_admit() {
        true => "admitted",
        false => "refused",
    };
    writeln!(
        page,
        "   First refusal at {elapsed:.3?}: {}, retry after {retry:?}. Exactly then it is {};\n   \
         one nanosecond sooner it is {}.",
        refusal.reason.as_str(),
        answer(retry),
        answer(retry.saturating_sub(Duration::from_nanos(1))),
    )?;
    Ok(())
}

fn row(page: &mut dyn Write, name: &str, counts: &[usize; SECONDS], all: &str) -> Result<(), Problem> {
    write!(page, "   {name:<10}")?;
    for count in counts {
        write!(page, "{count:>6}")?;
    }
    match all {
        "" => writeln!(page, "{:>9}", counts.iter().sum::<usize>())?,
        word => writeln!(page, "{word:>9}")?,
    }
    Ok(())
}
