//! A rule in words a caller understands: `10 requests per second, burst 20, for this API key`.

use std::time::Duration;

use tidegate_core::Cost;
use tidegate_policy::Standing;
use tidegate_policy::policy::{KeySource, KeySpec, Limit, Rate};

/// What the rule allows, and whom.
pub(crate) fn detail(standing: &Standing) -> String {
    let rule = &*standing.rule;
    let unit = if rule.cost.is_some() { "units" } else { "requests" };
    let allowed = match &rule.limit {
        Limit::Concurrency(_) => format!("{} {unit} at once", standing.limit),
        Limit::Rate(rate) if is_applied(rate, standing) => {
            let quota = &rate.quota;
            let burst = quota.explicit_burst().map(|burst| format!(", burst {burst}")).unwrap_or_default();
            format!("{} {unit} {}{burst}", quota.amount(), per(quota.window()))
        }
        // Another limit of the rule applied: a plan's, or the caller's own.
        Limit::Rate(_) => format!("{} {unit} {}", standing.limit, per(standing.window)),
    };
    format!("{allowed}, for {}", whom(&rule.key))
}

/// Whether the numbers are those of the rule's own limit.
fn is_applied(rate: &Rate, standing: &Standing) -> bool {
    rate.most() == standing.limit && rate.window() == standing.window
}

fn per(window: Duration) -> String {
    match (window.as_secs(), window.subsec_nanos()) {
        (1, 0) => "per second".to_owned(),
        (60, 0) => "per minute".to_owned(),
        (3_600, 0) => "per hour".to_owned(),
        (86_400, 0) => "per day".to_owned(),
        _ => format!("per {} seconds", seconds(window)),
    }
}

fn whom(key: &KeySpec) -> String {
    let parts: Vec<String> = key
        .0
        .iter()
        .map(|source| match source {
            KeySource::Caller => "this caller".to_owned(),
            KeySource::ClientIp => "this address".to_owned(),
            KeySource::Header(name) if name == "x-api-key" => "this API key".to_owned(),
            KeySource::Header(name) => format!("this {name}"),
            KeySource::Path => "this path".to_owned(),
            KeySource::Route => "this route".to_owned(),
            KeySource::Global => "all callers together".to_owned(),
        })
        .collect();
    if parts.is_empty() { "all callers together".to_owned() } else { parts.join(" and ") }
}

/// A length of time in seconds, to the millisecond, rounded up: `2`, `0.093`.
pub(crate) fn seconds(duration: Duration) -> String {
    let millis = u64::try_from(duration.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX);
    Cost::from_micros(millis.saturating_mul(1_000)).to_string()
}

/// A length of time in whole seconds, rounded up.
pub(crate) fn whole_seconds(duration: Duration) -> u64 {
    duration.as_secs().saturating_add(u64::from(duration.subsec_nanos() > 0))
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
            assert_eq!((seconds(duration).as_str(), whole_seconds(duration)), (text, whole));
        }
    }

    #[test]
    fn keys_are_named_as_callers_know_them() {
        let key = KeySpec(vec![KeySource::Header("x-api-key".to_owned()), KeySource::Path]);
        assert_eq!(whom(&key), "this API key and this path");
        assert_eq!(whom(&KeySpec::default()), "all callers together");
    }
}
