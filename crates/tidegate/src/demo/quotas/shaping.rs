//! A burst that must not reach what stands behind.

use std::io::Write;

use tidegate_core::rate::{Algorithm, LeakyBucket, TokenBucket};
use tidegate_core::{Charge, Cost, Moment, Quota, Retry, Verdict};

use super::{Problem, heading};

const BURST: usize = 7;

pub(super) fn write(page: &mut dyn Write) -> Result<(), Problem> {
    heading(page, "3  Seven requests in the same moment", "10/s, room for 6")?;
    let quota = Quota::per_second(Cost::of(10))?;
    let bucket = LeakyBucket::new(quota, Cost::of(5))?;
    row(page, "token bucket", &TokenBucket::new(quota.with_burst(Cost::of(6))?))?;
    row(page, "leaky bucket", &bucket)?;
    row(page, "the same, first two free", &bucket.with_delay_free(Cost::of(2))?)?;
    writeln!(
        page,
        "   A token bucket passes the burst on; a leaky bucket tells each request how long to wait."
    )?;
    Ok(())
}

fn row(page: &mut dyn Write, name: &str, rule: &impl Algorithm<Time = Moment>) -> Result<(), Problem> {
    write!(page, "   {name:<25}")?;
    let now = Moment::ORIGIN;
    let mut state = rule.fresh(now);
    for _ in 0..BURST {
        write!(page, "{:>9}", told(&rule.decide(&mut state, now, Cost::ONE)))?;
    }
    writeln!(page)?;
    Ok(())
}

fn told(verdict: &Verdict<Charge>) -> String {
    match verdict {
        Verdict::Admit(charge) if charge.wait().is_zero() => "now".to_owned(),
        Verdict::Admit(charge) => format!("+{:?}", charge.wait()),
        Verdict::Refuse(refusal) => match refusal.retry {
            Retry::After(_) => "refused".to_owned(),
            Retry::Never => "never".to_owned(),
        },
    }
}
