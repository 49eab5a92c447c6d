//! Costs that are known only afterwards.

use std::io::Write;
use std::time::Duration;

use tidegate_core::rate::{Algorithm, TokenBucket};
use tidegate_core::{Charge, Cost, Moment, Quota, Retry, Verdict};

use super::{Problem, at, heading};

/// One caller's account of CPU seconds.
struct Account {
    rule: TokenBucket,
    state: <TokenBucket as Algorithm>::State,
}

impl Account {
    /// Asks for `cost` and writes the answer down.
    fn reserve(&mut self, page: &mut dyn Write, second: u64, cost: Cost) -> Result<Option<Charge>, Problem> {
        let now = at(Duration::from_secs(second));
        let verdict = self.rule.decide(&mut self.state, now, cost);
        let answer = match &verdict {
            Verdict::Admit(_) => "admitted".to_owned(),
            Verdict::Refuse(refusal) => match refusal.retry {
                Retry::After(wait) => format!("refused, retry after {wait:?}"),
                Retry::Never => "refused for ever".to_owned(),
            },
        };
        self.line(page, second, &format!("reserve {cost}"), &answer)?;
        Ok(verdict.admitted())
    }

    /// Corrects `charge` to what it really cost and writes the effect down.
    fn settle(
        &mut self,
        page: &mut dyn Write,
        second: u64,
        mut charge: Charge,
        cost: Cost,
    ) -> Result<(), Problem> {
        let now = at(Duration::from_secs(second));
        let reserved = charge.cost();
        self.rule.settle(&mut self.state, now, &mut charge, cost);
        let effect = if cost > reserved {
            format!("{} more is taken", cost.minus(reserved))
        } else {
            format!("{} comes back", reserved.minus(cost))
        };
        self.line(page, second, &format!("it cost {cost}"), &effect)
    }

    fn line(&self, page: &mut dyn Write, second: u64, event: &str, effect: &str) -> Result<(), Problem> {
        let usage = self.rule.usage(&self.state, at(Duration::from_secs(second)));
        let debt = usage.used.minus(usage.limit);
        let debt = if debt == Cost::ZERO { String::new() } else { format!(", in debt by {debt}") };
        let used = format!("used {} of {}{debt}", usage.used, usage.limit);
        writeln!(page, "   {second:>2} s  {event:<14}{effect:<32}{used}")?;
        Ok(())
    }
}

pub(super) fn write(page: &mut dyn Write) -> Result<(), Problem> {
    heading(page, "5  Reserve an estimate, settle the true cost", "2.5 CPU seconds a second, burst 5")?;
    let rule = TokenBucket::new(Quota::per_second("2.5".parse()?)?.with_burst(Cost::of(5))?);
    let mut account = Account { rule, state: rule.fresh(Moment::ORIGIN) };
    if let Some(charge) = account.reserve(page, 0, "0.5".parse()?)? {
        account.settle(page, 0, charge, "9.25".parse()?)?;
    }
    account.reserve(page, 1, Cost::ONE)?;
    if let Some(charge) = account.reserve(page, 3, Cost::of(3))? {
        account.settle(page, 3, charge, "0.25".parse()?)?;
    }
    writeln!(
        page,
        "   A wrong estimate is never forgiven and never punished twice: the debt is waited out."
    )?;
    Ok(())
}
