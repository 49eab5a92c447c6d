//! Refusals in the process's own lines: the first of a rule and reason at once, then a count a minute.
//!
//! The counts of the gate are looked at every two seconds, so that no request pays for a line, and however many are
//! refused, lines stay few: one a minute of a rule and reason, and of all of them together at most [`MOST`].

use std::collections::HashMap;
use std::time::{Duration, Instant};

use tidegate_policy::gate::ReasonRefusals;
use tidegate_policy::policy::LogLevel;

use crate::log::Line;

/// How long a rule is silent about a reason after a line.
const SILENCE: Duration = Duration::from_mins(1);

/// Lines in a minute; what does not fit is told in the next one.
const MOST: usize = 32;

/// What was told already.
#[derive(Debug)]
pub(super) struct Refusals {
    told: HashMap<(String, &'static str), Told>,
    /// When the minute began in which lines are counted, and how many it had.
    minute: (Instant, usize),
}

/// What was told of one rule and reason.
#[derive(Clone, Copy, Debug)]
struct Told {
    at: Instant,
    refused: u64,
}

/// Something to be said: requests that were refused since the last line, or for the first time.
#[derive(Clone, Debug, PartialEq, Eq)]
struct News {
    rule: String,
    reason: &'static str,
    refused: u64,
    since: Option<Duration>,
}

impl Refusals {
    pub(super) fn new(now: Instant) -> Self {
        Self { told: HashMap::new(), minute: (now, 0) }
    }

    /// Writes what is new.
    pub(super) fn look(&mut self, counts: Vec<ReasonRefusals>, now: Instant) {
        for news in self.news(counts, now, SILENCE) {
            news.write();
        }
    }

    /// Writes what was not told yet, also within the minute: there will be no later one.
    pub(super) fn end(&mut self, counts: Vec<ReasonRefusals>, now: Instant) {
        self.minute = (now, 0);
        for news in self.news(counts, now, Duration::ZERO) {
            news.write();
        }
    }

    fn news(&mut self, counts: Vec<ReasonRefusals>, now: Instant, silence: Duration) -> Vec<News> {
        if now.saturating_duration_since(self.minute.0) >= SILENCE {
            self.minute = (now, 0);
        }
        let mut before = std::mem::take(&mut self.told);
        let mut all = Vec::new();
        for ReasonRefusals { rule, reason, refused } in counts {
            let key = (rule, reason);
            let told = before.remove(&key);
            // A rule that was changed counts from zero.
            let known = told.map_or(0, |told| if told.refused > refused { 0 } else { told.refused });
            let since = told.map(|told| now.saturating_duration_since(told.at));
            let is_due = refused > known && since.is_none_or(|since| since >= silence);
            if is_due && self.minute.1 < MOST {
                self.minute.1 += 1;
                all.push(News { rule: key.0.clone(), reason, refused: refused - known, since });
                self.told.insert(key, Told { at: now, refused });
            } else if let Some(told) = told {
                self.told.insert(key, Told { refused: known, ..told });
            }
        }
        all
    }
}

impl News {
    fn write(&self) {
        let (rule, count) = (&self.rule, self.refused);
        let sentence = match self.since {
            None => format!("`{rule}` refuses"),
            Some(_) => format!("`{rule}` has refused {count} more"),
        };
        let line = Line::new(LogLevel::Info, &sentence).with("rule", rule.as_str());
        let line = line.with("reason", self.reason).with("count", count);
        match self.since {
            Some(since) => line.with("seconds", since.as_secs()).write(),
            None => line.write(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(of: &[(&str, u64)]) -> Vec<ReasonRefusals> {
        let count = |(rule, refused): &(&str, u64)| ReasonRefusals {
            rule: (*rule).to_owned(),
            reason: "quota",
            refused: *refused,
        };
        of.iter().map(count).collect()
    }

    type Seen = (String, u64, Option<u64>);

    fn told(news: Vec<News>) -> Vec<Seen> {
        let told = |news: News| (news.rule, news.refused, news.since.map(|since| since.as_secs()));
        news.into_iter().map(told).collect()
    }

    #[test]
    fn the_first_is_told_at_once_and_the_rest_once_a_minute() {
        let start = Instant::now();
        let mut refusals = Refusals::new(start);
        let mut at = |seconds, of: &[(&str, u64)]| {
            told(refusals.news(counts(of), start + Duration::from_secs(seconds), SILENCE))
        };
        let none: Vec<Seen> = Vec::new();
        let one = |rule: &str, count, since| vec![(rule.to_owned(), count, since)];
        assert_eq!(at(2, &[("a", 3)]), one("a", 3, None));
        assert_eq!(at(4, &[("a", 500)]), none);
        assert_eq!(at(6, &[("a", 900), ("b", 1)]), one("b", 1, None));
        assert_eq!(at(62, &[("a", 1_000), ("b", 1)]), one("a", 997, Some(60)));
        assert_eq!(at(200, &[("a", 1_000), ("b", 1)]), none, "a rule that refuses nothing is silent");
        assert_eq!(at(202, &[("a", 2), ("b", 1)]), one("a", 2, Some(140)), "it counts from zero again");
    }

    #[test]
    fn lines_of_many_rules_are_bounded_and_come_in_the_next_minute() {
        let start = Instant::now();
        let mut refusals = Refusals::new(start);
        let names: Vec<String> = (0..MOST + 5).map(|n| format!("rule_{n}")).collect();
        let many: Vec<(&str, u64)> = names.iter().map(|name| (name.as_str(), 7)).collect();
        let mut at =
            |seconds| refusals.news(counts(&many), start + Duration::from_secs(seconds), SILENCE).len();
        assert_eq!((at(0), at(2), at(60), at(62)), (MOST, 0, 5, 0));
    }

    #[test]
    fn the_end_tells_what_the_minute_kept_back() {
        let start = Instant::now();
        let mut refusals = Refusals::new(start);
        refusals.news(counts(&[("a", 1)]), start, SILENCE);
        let rest = refusals.news(counts(&[("a", 9)]), start, Duration::ZERO);
        assert_eq!(told(rest), [("a".to_owned(), 8, Some(0))]);
    }
}
