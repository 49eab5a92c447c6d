//! An explanation in plain sentences.

use std::fmt::{self, Display, Formatter};
use std::time::Duration;

use tidegate_core::{Cost, Reason, Refusal, Retry};

use super::{
    Answer, Because, BlockSeen, CallerSeen, Explanation, KeyPart, RuleExplanation, RuleKind, UpstreamSeen,
};
use crate::escape::Escaped;
use crate::policy::{KeySource, Mode, Variation};

impl Display for Explanation {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (method, path) = (Escaped(&self.method), Escaped(&self.path));
        let ahead = self.upstream.as_ref().and_then(UpstreamSeen::verdict);
        if let Some(blocked) = &self.blocked {
            writeln!(f, "{method} {path} would be refused: {blocked}")?;
        }
        match (self.refused_by(), ahead) {
            _ if self.blocked.is_some() => {}
            (None, _) if self.route.is_none() => {
                writeln!(f, "{method} {path} is taken by no route: the gateway answers 404.")?;
            }
            (None, Some(verdict)) => writeln!(f, "{method} {path} {verdict}")?,
            (None, None) if self.wait().is_zero() => writeln!(f, "{method} {path} would pass.")?,
            (None, None) => writeln!(f, "{method} {path} would pass after a wait of {}.", Time(self.wait()))?,
            (Some(rule), _) => {
                writeln!(f, "{method} {path} would be refused by rule `{}`: {}", rule.rule, why(rule))?;
            }
        }
        writeln!(f)?;
        match &self.route {
            None => writeln!(f, "Route: none matches, so no rule applies and it is sent nowhere.")?,
            Some(route) => {
                let exempt = if route.is_exempt { "; it is exempt, so no rule applies" } else { "" };
                match route.line.written() {
                    Some(line) => {
                        writeln!(
                            f,
                            "Route: `{}` (line {line}), the first that matches{exempt}.",
                            route.name
                        )?;
                    }
                    None => writeln!(f, "Route: the policy has none, so every rule applies.")?,
                }
            }
        }
        writeln!(f, "Criticality: {}, {}.", self.criticality, self.because)?;
        if let Some(caller) = &self.caller {
            writeln!(f, "Caller: {caller}.")?;
        }
        writeln!(f, "Cost: {}.", self.cost)?;
        if let Some(upstream) = &self.upstream {
            writeln!(f, "Upstream: {upstream}.")?;
        }
        if !self.rules.is_empty() {
            writeln!(f)?;
        }
        for (number, rule) in (1..).zip(&self.rules) {
            write!(f, "{number}. {rule}")?;
        }
        Ok(())
    }
}

impl Display for Because {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Assigned(number) => write!(f, "by the policy's assignment {number}"),
            Self::Said => f.write_str("as a trusted peer said"),
            Self::Default => f.write_str("the policy's default"),
        }
    }
}

impl Display for BlockSeen {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("an operator keeps its caller out")?;
        if let Some(rule) = &self.rule {
            write!(f, " by rule `{rule}`")?;
        }
        match self.left {
            Some(left) => write!(f, ", for another {}.", Time(left)),
            None => f.write_str(", until that is ended."),
        }
    }
}

impl Display for CallerSeen {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match (&self.shown, &self.repeated) {
            (Some(shown), _) => write!(f, "{}", Escaped(shown))?,
            (None, Some(header)) => write!(f, "unknown, since header `{header}` is there more than once")?,
            (None, None) if self.passed_over.is_some() => f.write_str("unknown")?,
            (None, None) => f.write_str("unknown, since none of the caller sources is present")?,
        }
        if let Some(header) = &self.passed_over {
            write!(f, ", since what `{header}` says is not in the table of callers")?;
        }
        match &self.plan {
            Some(plan) => write!(f, ", on plan `{plan}`"),
            None => Ok(()),
        }
    }
}

impl Display for RuleExplanation {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let value = if self.is_shadow_value { "the shadow value of " } else { "" };
        write!(f, "{value}`{}` (line {})", self.rule, self.line.0)?;
        let in_shadow = match (self.mode, self.is_shadow_value) {
            (Mode::Disabled, _) => {
                return writeln!(f, " does nothing: it is disabled{}.", self.switched());
            }
            (Mode::Shadow, _) => format!(", in shadow{},", self.switched()),
            (Mode::Enforce, false) if self.is_switched => format!(", enforced{},", self.switched()),
            (Mode::Enforce, _) => String::new(),
        };
        let would = if self.is_enforced() { "" } else { "would " };
        match &self.answer {
            Answer::Nothing => return writeln!(f, "{in_shadow} does nothing."),
            Answer::BadKey { header } => {
                return writeln!(
                    f,
                    "{in_shadow} {would}refuse{} it: header `{header}` is part of its key and is there more than \
                     once. Send it once.",
                    if would.is_empty() { "s" } else { "" }
                );
            }
            Answer::Pass { wait } if wait.is_zero() => write!(f, "{in_shadow} lets it pass: ")?,
            Answer::Pass { wait } => write!(f, "{in_shadow} lets it pass after a wait of {}: ", Time(*wait))?,
            Answer::Refuse(_) if would.is_empty() => write!(f, "{in_shadow} refuses it: ")?,
            Answer::Refuse(_) => write!(f, "{in_shadow} would refuse it, which changes nothing: ")?,
        }
        self.write_state(f)?;
        match &self.answer {
            Answer::Refuse(refusal) => writeln!(f, " {}", advice(self, *refusal)),
            Answer::Pass { .. } | Answer::BadKey { .. } | Answer::Nothing => writeln!(f),
        }
    }
}

impl RuleExplanation {
    /// `18 of 20 used by acct_1 (plan `gold`: 10/s), and the request costs 5.`
    fn write_state(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let is_concurrency = match &self.kind {
            RuleKind::Rate => false,
            RuleKind::Concurrency => true,
            RuleKind::Reserve { .. } | RuleKind::Shed { .. } => return self.kind.write(f, &self.usage),
        };
        let used = if is_concurrency { "in flight" } else { "used" };
        write!(f, "{} of {} {used}", Rounded(self.usage.used), self.usage.limit)?;
        write!(f, " by {}", Keyed(&self.key))?;
        match &self.variation {
            Variation::Default if is_concurrency => {}
            Variation::Default => write!(f, " ({})", self.written)?,
            Variation::Plan(plan) => write!(f, " (plan `{plan}`: {})", self.written)?,
            Variation::Criticality(level) => write!(f, " ({level} requests: {})", self.written)?,
            Variation::Override(_) => write!(f, " (the caller's own: {})", self.written)?,
        }
        if is_concurrency {
            return f.write_str(".");
        }
        write!(f, ", and the request costs {}.", self.cost)
    }

    fn switched(&self) -> &'static str {
        match (self.is_switched, self.until) {
            (false, _) => "",
            (true, None) => " by an operator",
            (true, Some(_)) => " by an operator for a time",
        }
    }
}

/// One sentence for the top of the answer.
fn why(rule: &RuleExplanation) -> String {
    match &rule.answer {
        Answer::BadKey { header } => format!("header `{header}` is there more than once."),
        Answer::Refuse(refusal) => {
            let reason = match refusal.reason {
                Reason::QuotaSpent => "its quota is spent for now",
                Reason::CostAboveBurst => "it costs more than the rule can ever allow at once",
                Reason::WaitTooLong => "it would have to wait too long",
                Reason::LimitReached => "too many are in flight",
                Reason::Blocked => "an operator blocked its key",
                Reason::OverflowSpent => "the table of keys is full, and what newcomers share is used up",
                Reason::Reserved => "what is left is kept for requests that matter more",
                // When it passes is for the signals to say, not for the time its caller is told to wait.
                Reason::Shed => return "requests that matter as little are being shed.".to_owned(),
                other => other.as_str(),
            };
            match refusal.retry {
                Retry::After(wait) if !wait.is_zero() => {
                    format!("{reason}. It would pass in {}.", Time(wait))
                }
                Retry::After(_) => format!("{reason}."),
                Retry::Never => format!("{reason}. Waiting does not help."),
            }
        }
        Answer::Pass { .. } | Answer::Nothing => String::new(),
    }
}

/// What would have let it pass.
fn advice(rule: &RuleExplanation, refusal: Refusal) -> String {
    let (used, cost) = (Rounded(rule.usage.used), rule.cost);
    if let Some(advice) = rule.kind.advice(&rule.usage) {
        return advice;
    }
    match refusal.reason {
        Reason::LimitReached => {
            format!("It passes when one of them has ended, or with a limit above {used}.")
        }
        Reason::CostAboveBurst => {
            format!("It never passes; with a burst of at least {cost}, or at a lower cost, it would.")
        }
        Reason::OverflowSpent => "It shares what is left for newcomers; raise `max_keys`.".to_owned(),
        Reason::Blocked => "It passes when the order ends.".to_owned(),
        _ => {
            let left = rule.usage.remaining;
            let cheaper =
                if left == Cost::ZERO { String::new() } else { format!(", or now at a cost of {left}") };
            match refusal.retry {
                Retry::After(wait) => format!("It passes in {}{cheaper}.", Time(wait)),
                Retry::Never => "It never passes.".to_owned(),
            }
        }
    }
}

struct Keyed<'a>(&'a [KeyPart]);

impl Display for Keyed<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.0.iter().all(|part| part.source == KeySource::Global) {
            return f.write_str("everybody");
        }
        if let Some(missing) = self.0.iter().find(|part| part.value.is_none()) {
            return write!(f, "all requests without {}", missing.source);
        }
        for (index, part) in self.0.iter().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            write!(f, "{comma}{}", Escaped(part.value.as_deref().unwrap_or_default()))?;
        }
        Ok(())
    }
}

/// A cost to the hundredth: what is used drains all the time, and more digits say nothing.
struct Rounded(Cost);

impl Display for Rounded {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let hundredths = self.0.micros().saturating_add(5_000) / 10_000;
        write!(f, "{}", Cost::from_micros(hundredths * 10_000))
    }
}

/// A length of time as people say it, rounded up to three digits: what is promised must be true.
pub(crate) struct Time(pub(crate) Duration);

impl Display for Time {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let nanos = u64::try_from(self.0.as_nanos()).unwrap_or(u64::MAX);
        let (unit, name) = match nanos {
            0..1_000 => return write!(f, "{nanos} ns"),
            1_000..1_000_000 => (1_000, "µs"),
            1_000_000..1_000_000_000 => (1_000_000, "ms"),
            1_000_000_000..60_000_000_000 => (1_000_000_000, "s"),
            60_000_000_000..3_600_000_000_000 => (60_000_000_000, "min"),
            _ => (3_600_000_000_000, "hours"),
        };
        let places = match nanos / unit {
            0..10 => 2,
            10..100 => 1,
            _ => 0,
        };
        let scale = 10_u64.pow(places);
        let scaled = (u128::from(nanos) * u128::from(scale)).div_ceil(u128::from(unit));
        let (whole, rest) = (scaled / u128::from(scale), scaled % u128::from(scale));
        if rest == 0 {
            return write!(f, "{whole} {name}");
        }
        let decimals = format!("{rest:0width$}", width = places as usize);
        write!(f, "{whole}.{} {name}", decimals.trim_end_matches('0'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_said_in_three_digits_and_never_too_short() {
        for (nanos, said) in [
            (0, "0 ns"),
            (93_500_000, "93.5 ms"),
            (93_510_001, "93.6 ms"),
            (1_000_000_000, "1 s"),
            (1_050_000_000, "1.05 s"),
            (90_000_000_000, "1.5 min"),
            (86_400_000_000_000, "24 hours"),
        ] {
            assert_eq!(Time(Duration::from_nanos(nanos)).to_string(), said);
        }
    }
}
