use std::time::Duration;

use tidegate_core::Cost;
use tidegate_core::rate::Period;

use super::length::nanos_of;
use super::{Unreadable, amount, shown, split};
use crate::problem::Code;

/// A quota as it was written, without the burst.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuotaText {
    /// As it was written: `10/s`.
    pub written: String,
    /// How much.
    pub amount: Cost,
    /// In which time.
    pub window: Window,
}

/// The time a quota is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// As a length of time; a month has thirty days.
    pub duration: Duration,
    /// As a piece of the calendar, where it is just one day or one month.
    pub period: Option<Period>,
}

impl QuotaText {
    /// Reads `10/s`, `2.5/s`, `100/30s`, `5000/day`.
    ///
    /// # Errors
    /// When there is no amount, no unit or none that is known, or it allows nothing at all.
    pub fn read(text: &str) -> Result<Self, Unreadable> {
        let written = shown(text);
        let refused = |code, message: &str, help: String| {
            Err(Unreadable::new(code, format!("`{written}` {message}"), help))
        };
        let Some((left, right)) = text.split_once('/') else {
            return match split(text) {
                Some((number, "")) => {
                    refused(Code::QuotaUnit, "has no unit", with_units(&number.to_string()))
                }
                Some((number, _)) => refused(Code::BadQuota, "has no slash", with_units(&number.to_string())),
                None => refused(Code::BadQuota, "is not a quota", with_units("10")),
            };
        };
        let Some(number) = amount(left) else {
            let is_number = |byte: u8| byte.is_ascii_digit() || matches!(byte, b'.' | b'_');
            if left.trim().starts_with(|first: char| first.is_ascii_digit())
                && left.trim().bytes().all(is_number)
            {
                let help = "amounts go up to 18446744073709 and have at most six decimals".to_owned();
                return refused(Code::BadQuota, "has an amount that cannot be counted", help);
            }
            let split = split(left);
            let number = split.map_or_else(|| "10".to_owned(), |(number, _)| number.to_string());
            let help = match (split, right.trim()) {
                // So nginx writes it, whose `m` is a minute.
                (Some((_, "r")), "s") => format!("write \"{number}/s\" instead"),
                (Some((_, "r")), "m") => format!("write \"{number}/min\" instead"),
                _ => with_units(&number),
            };
            return refused(Code::BadQuota, "does not begin with an amount", help);
        };
        if number == Cost::ZERO {
            let help = "an amount is more than 0; to let nothing pass, remove the route".to_owned();
            return refused(Code::BadQuota, "allows nothing", help);
        }
        if is_no_time(right.trim()) {
            let help = format!("write \"{number}/s\" instead, or another time that is more than 0");
            return refused(Code::BadQuota, "is for no time at all", help);
        }
        let Some(window) = window(right.trim()) else {
            if right.trim() == "m" {
                let help = format!("write \"{number}/min\" instead, or \"{number}/month\"");
                return refused(Code::BadQuota, "has an unknown unit", help);
            }
            return refused(Code::BadQuota, "has an unknown unit", with_units(&number.to_string()));
        };
        Ok(Self { written: text.trim().to_owned(), amount: number, window })
    }
}

fn with_units(number: &str) -> String {
    format!(
        "write \"{number}/s\", \"{number}/min\", \"{number}/hour\", \"{number}/day\" or \"{number}/month\""
    )
}

/// `0s`
fn is_no_time(text: &str) -> bool {
    split(text).is_some_and(|(count, unit)| count == Cost::ZERO && nanos_of(unit).is_some())
}

/// `s`, `30s`, `5min`, `day`.
fn window(text: &str) -> Option<Window> {
    let (count, unit) = match split(text) {
        Some((count, unit)) => (count, unit),
        None => (Cost::ONE, text),
    };
    let nanos = u128::from(count.micros()) * u128::from(nanos_of(unit)?) / 1_000_000;
    let duration = Duration::from_nanos(u64::try_from(nanos).ok().filter(|nanos| *nanos > 0)?);
    let period = match unit {
        "d" | "day" | "days" if count == Cost::ONE => Some(Period::Day),
        "month" | "months" if count == Cost::ONE => Some(Period::Month),
        _ => None,
    };
    Some(Window { duration, period })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotas_have_any_window() {
        for (text, micros, millis, period) in [
            ("10/s", 10_000_000, 1_000, None),
            ("2.5/s", 2_500_000, 1_000, None),
            ("100/30s", 100_000_000, 30_000, None),
            ("1_000/5min", 1_000_000_000, 300_000, None),
            ("5000/day", 5_000_000_000, 86_400_000, Some(Period::Day)),
            ("1 / month", 1_000_000, 30 * 86_400_000, Some(Period::Month)),
            ("7/2days", 7_000_000, 2 * 86_400_000, None),
        ] {
            let quota = QuotaText::read(text).unwrap();
            assert_eq!(quota.amount, Cost::from_micros(micros), "{text}");
            assert_eq!(quota.window, Window { duration: Duration::from_millis(millis), period }, "{text}");
        }
    }

    #[test]
    fn bad_quotas_say_what_to_write() {
        for (text, message) in [
            ("10", "`10` has no unit"),
            ("10 per second", "`10 per second` has no slash"),
            ("ten/s", "`ten/s` does not begin with an amount"),
            ("10r/s", "`10r/s` does not begin with an amount"),
            ("1.1234567/s", "`1.1234567/s` has an amount that cannot be counted"),
            ("99999999999999/s", "`99999999999999/s` has an amount that cannot be counted"),
            ("0/s", "`0/s` allows nothing"),
            ("10/", "`10/` has an unknown unit"),
            ("10/m", "`10/m` has an unknown unit"),
            ("10/0s", "`10/0s` is for no time at all"),
        ] {
            assert_eq!(QuotaText::read(text).unwrap_err().message, message);
        }
        for (text, help) in [
            ("ten/s", "write \"10/s\", \"10/min\", \"10/hour\", \"10/day\" or \"10/month\""),
            ("10r/s", "write \"10/s\" instead"),
            ("30r/m", "write \"30/min\" instead"),
            ("10/m", "write \"10/min\" instead, or \"10/month\""),
            ("10/0s", "write \"10/s\" instead, or another time that is more than 0"),
        ] {
            assert_eq!(QuotaText::read(text).unwrap_err().help, help);
        }
    }
}
