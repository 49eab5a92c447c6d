use std::time::Duration;

use super::{Unreadable, shown, split};
use crate::problem::Code;

/// A length of time and how it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Length {
    /// As it was written: `250ms`.
    pub written: String,
    /// How long it is.
    pub duration: Duration,
}

const SECOND: u64 = 1_000_000_000;

/// Units and their nanoseconds. `m` is not among them: it could be a minute or a month.
const UNITS: &[(&[&str], u64)] = &[
    (&["ns"], 1),
    (&["us", "µs", "μs"], 1_000),
    (&["ms"], 1_000_000),
    (&["s", "sec", "second", "seconds"], SECOND),
    (&["min", "minute", "minutes"], 60 * SECOND),
    (&["h", "hour", "hours"], 3_600 * SECOND),
    (&["d", "day", "days"], 86_400 * SECOND),
    (&["month", "months"], 30 * 86_400 * SECOND),
];

impl Length {
    /// Reads `250ms`, `25s`, `10min`, `1h`, `1day`.
    ///
    /// # Errors
    /// When there is no number, no unit or none that is known, or it is longer than five hundred years.
    pub fn read(text: &str) -> Result<Self, Unreadable> {
        let refused = |message: String, help: String| Unreadable::new(Code::BadDuration, message, help);
        let general = "write a number and a unit, such as \"250ms\", \"25s\", \"10min\" or \"1h\"";
        let written = shown(text);
        let Some((number, unit)) = split(text) else {
            return Err(refused(format!("`{written}` is not a length of time"), general.to_owned()));
        };
        if unit.is_empty() {
            let help = format!("write \"{number}ms\", \"{number}s\", \"{number}min\" or \"{number}h\"");
            return Err(refused(format!("`{written}` has no unit"), help));
        }
        let Some(nanos) = nanos_of(unit) else {
            let help = match unit {
                "m" => format!("write \"{number}min\" instead, or \"{number}month\""),
                _ => "units are ms, s, min, h and day".to_owned(),
            };
            return Err(refused(format!("`{written}` has the unknown unit `{}`", shown(unit)), help));
        };
        let total = u128::from(number.micros()) * u128::from(nanos) / 1_000_000;
        let total = u64::try_from(total)
            .map_err(|_| refused(format!("`{written}` is longer than can be counted"), general.to_owned()))?;
        Ok(Self { written: text.trim().to_owned(), duration: Duration::from_nanos(total) })
    }
}

/// The nanoseconds of one such unit.
pub(super) fn nanos_of(unit: &str) -> Option<u64> {
    UNITS.iter().find(|(names, _)| names.contains(&unit)).map(|(_, nanos)| *nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_read_exactly() {
        for (text, nanos) in [
            ("250ms", 250_000_000),
            ("1.5s", 1_500_000_000),
            ("10min", 600 * SECOND),
            ("0s", 0),
            ("1 h", 3_600 * SECOND),
        ] {
            assert_eq!(Length::read(text).unwrap().duration, Duration::from_nanos(nanos), "{text}");
        }
    }

    #[test]
    fn bad_lengths_say_what_to_write() {
        for (text, message, help) in [
            ("25", "`25` has no unit", "write \"25ms\", \"25s\", \"25min\" or \"25h\""),
            ("5m", "`5m` has the unknown unit `m`", "write \"5min\" instead, or \"5month\""),
            (
                "soon",
                "`soon` is not a length of time",
                "write a number and a unit, such as \"250ms\", \"25s\", \"10min\" or \"1h\"",
            ),
        ] {
            let problem = Length::read(text).unwrap_err();
            assert_eq!((problem.message.as_str(), problem.help.as_str()), (message, help));
        }
    }
}
