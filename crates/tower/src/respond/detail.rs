//! One sentence for the caller: what it may do, or what to do instead.
//!
//! A rule is told in words a caller understands: `10 requests per second, burst 20, for this API key`.

use std::time::Duration;

use tidegate_core::Cost;
use tidegate_policy::policy::{KeySource, KeySpec, Limit, Rate};
use tidegate_policy::{Standing, Standings};

use super::kind::Kind;
use super::sheet::Sheet;

/// What the sentence is about.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Detail<'a> {
    /// The rules that refuse, and what they allow.
    Rules(&'a Standings<'a>),
    /// A header field that picks a counter and has several lines.
    Repeated { header: &'a str },
    /// The same words whoever asks.
    Words(&'static str),
}

impl Detail<'_> {
    /// What is said where no rule can be named.
    pub(crate) const fn general(kind: Kind) -> Self {
        Self::Words(match kind {
            Kind::Quota => "the quota is used up for now",
            Kind::Concurrency => "too many requests are in flight",
            Kind::Blocked => "blocked by an operator",
            Kind::Unclear => "the request can be read in two ways",
            Kind::Overloaded => "too busy for this request at the moment",
            Kind::Throttled => "what would be called refuses too much at the moment",
            Kind::Late => "the deadline has passed, or would pass before the answer",
            Kind::NoRoute => "no route of this gateway takes the request",
            Kind::Unreachable(why) => why.sentence(),
            Kind::Silent => "the service behind this gateway did not answer in time",
            Kind::Stalled => "the body of the request did not come in time",
        })
    }

    /// Writes the sentence.
    pub(crate) fn write(&self, sheet: &mut Sheet) {
        match self {
            Self::Rules(standings) => {
                let violated = standings.iter().filter(|standing| standing.is_violated);
                for (number, standing) in violated.enumerate() {
                    sheet.push(if number == 0 { "" } else { "; " });
                    write_rule(sheet, standing);
                }
            }
            Self::Repeated { header } => {
                sheet.push("the header field ").push(header).push(" may be sent only once");
            }
            Self::Words(words) => _ = sheet.push(words),
        }
    }
}

/// What the rule allows, and whom.
pub(crate) fn write_rule(sheet: &mut Sheet, standing: &Standing<'_>) {
    let rule = standing.rule;
    let unit = |amount: Cost| match (rule.cost.is_some(), amount == Cost::ONE) {
        (true, true) => " unit ",
        (true, false) => " units ",
        (false, true) => " request ",
        (false, false) => " requests ",
    };
    match &rule.limit {
        Limit::Concurrency(_) => _ = sheet.decimal(standing.limit).push(unit(standing.limit)).push("at once"),
        Limit::Rate(rate) if is_applied(rate, standing) => {
            let quota = &rate.quota;
            write_window(sheet.decimal(quota.amount()).push(unit(quota.amount())), quota.window());
            if let Some(burst) = quota.explicit_burst() {
                sheet.push(", burst ").decimal(burst);
            }
        }
        // What we can bear is nobody's business.
        Limit::Reserve(_) | Limit::Shed(_) => _ = sheet.push("as many requests as can be served"),
        // Another limit of the rule applied: a plan's, or the caller's own.
        Limit::Rate(_) => {
            write_window(sheet.decimal(standing.limit).push(unit(standing.limit)), standing.window);
        }
    }
    write_whom(sheet.push(", for "), &rule.key);
}

/// Whether the numbers are those of the rule's own limit.
fn is_applied(rate: &Rate, standing: &Standing<'_>) -> bool {
    rate.most() == standing.limit && rate.window() == standing.window
}

fn write_window(sheet: &mut Sheet, window: Duration) {
    match (window.as_secs(), window.subsec_nanos()) {
        (1, 0) => sheet.push("per second"),
        (60, 0) => sheet.push("per minute"),
        (3_600, 0) => sheet.push("per hour"),
        (86_400, 0) => sheet.push("per day"),
        _ => sheet.push("per ").decimal(seconds(window)).push(" seconds"),
    };
}

fn write_whom(sheet: &mut Sheet, key: &KeySpec) {
    if key.0.is_empty() {
        sheet.push("all callers together");
    }
    for (number, source) in key.0.iter().enumerate() {
        sheet.push(if number == 0 { "" } else { " and " });
        match source {
            KeySource::Caller => sheet.push("this caller"),
            KeySource::ClientIp => sheet.push("this address"),
            KeySource::Header(name) if name == "x-api-key" => sheet.push("this API key"),
            KeySource::Header(name) => sheet.push("this ").push(name),
            KeySource::Path => sheet.push("this path"),
            KeySource::Route => sheet.push("this route"),
            KeySource::Global => sheet.push("all callers together"),
        };
    }
}

/// A length of time as the number of its seconds, to the millisecond, rounded up: `2`, `0.093`.
pub(crate) const fn seconds(duration: Duration) -> Cost {
    let millis = duration.subsec_nanos().div_ceil(1_000_000) as u64;
    Cost::from_micros(duration.as_secs().saturating_mul(1_000).saturating_add(millis).saturating_mul(1_000))
}

/// A length of time in whole seconds, rounded up.
pub(crate) const fn whole_seconds(duration: Duration) -> u64 {
    duration.as_secs().saturating_add((duration.subsec_nanos() > 0) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_rounded_up_and_written_short() {
        for (nanos, text, whole) in [
            (0, "0", 0),
            (1, "0.001", 1),
            (93_000_000, "0.093", 1),
            (2_000_000_000, "2", 2),
            (2_500_000_001, "2.501", 3),
        ] {
            let duration = Duration::from_nanos(nanos);
            assert_eq!((seconds(duration).to_string().as_str(), whole_seconds(duration)), (text, whole));
        }
    }

    #[test]
    fn keys_are_named_as_callers_know_them() {
        let whom = |key| {
            let mut sheet = Sheet::with_room(0);
            write_whom(&mut sheet, &KeySpec(key));
            sheet.cut()
        };
        let key = vec![KeySource::Header("x-api-key".to_owned()), KeySource::Path];
        assert_eq!(whom(key), "this API key and this path");
        assert_eq!(whom(vec![]), "all callers together");
    }
}
