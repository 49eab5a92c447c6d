//! A request that meets two quotas.

use std::io::Write;

use tidegate_core::rate::TokenBucket;
use tidegate_core::shell::AtomicDue;
use tidegate_core::together::{Ask, Joint, decide};
use tidegate_core::{Cost, Moment, Quota, Retry};

use super::{Problem, heading};

const NAMES: [&str; 2] = ["caller", "service"];

pub(super) fn write(page: &mut dyn Write) -> Result<(), Problem> {
    heading(page, "6  Charged by all or by none", "caller 100/min, and service 10/s")?;
    let now = Moment::ORIGIN;
    let limiters = [AtomicDue::new(), AtomicDue::new()];
    let rules = [
        limiters[0].enrol(&TokenBucket::new(Quota::per_minute(Cost::of(100))?))?,
        limiters[1].enrol(&TokenBucket::new(Quota::per_second(Cost::of(10))?))?,
    ];
    for cost in [Cost::of(8), Cost::of(4), Cost::of(2)] {
        let [caller, service] = [limiters[0].at(&rules[0], now), limiters[1].at(&rules[1], now)];
        let mut asks = [Ask::new(&caller, cost), Ask::new(&service, cost)];
        let answer = match decide(&mut asks) {
            Joint::Admit { .. } => "admitted by both".to_owned(),
            Joint::Refuse { by, refusal } => match refusal.retry {
                Retry::After(wait) => format!("refused by the {}, retry after {wait:?}", NAMES[by]),
                Retry::Never => format!("refused by the {} for ever", NAMES[by]),
            },
        };
        let [of_caller, of_service] = [0, 1].map(|index| limiters[index].usage(&rules[index], now));
        writeln!(
            page,
            "   cost {cost}: {answer:<44}used: {} of {}, {} of {}",
            of_caller.used, of_caller.limit, of_service.used, of_service.limit
        )?;
    }
    Ok(())
}
