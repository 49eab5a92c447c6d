//! What it came to, on both sides.

use std::io::{self, Write};
use std::time::Duration;

use super::cost::Micros;
use super::side::Seen;
use super::{LEVELS, Show};

/// Both sides, and what the gateway took.
#[derive(Debug)]
pub(super) struct Closing {
    pub(super) without: Seen,
    pub(super) behind: Seen,
    pub(super) cost: Micros,
}

/// How much more must be answered behind the gateway, and which share of what is critical, to call it clearly
/// better. On a quiet machine there is no comparison, hundreds a second against a handful and all against
/// none; where others take the processor away, all of this suffers.
const CLEARLY: f64 = 2.0;
const MOSTLY: f64 = 0.5;

impl Closing {
    /// Whether the gateway made a clear difference.
    pub(super) fn is_better(&self) -> bool {
        let critical = |seen: &Seen| f64::midpoint(seen.levels[0], seen.levels[1]);
        self.behind.goodput > CLEARLY * self.without.goodput
            && critical(&self.behind) >= MOSTLY
            && critical(&self.behind) > CLEARLY * critical(&self.without)
    }

    pub(super) fn write(&self, page: &mut dyn Write, show: &Show) -> io::Result<()> {
        let mut row = |what: &str, left: String, right: String| {
            writeln!(page, "{}", format!("{what:<44}{left:>17}{right:>17}").trim_end())
        };
        let (without, behind) = (&self.without, &self.behind);
        row("", "without Tidegate".to_owned(), "behind Tidegate".to_owned())?;
        row("In the flood", String::new(), String::new())?;
        row(
            "  answered in time, a second",
            format!("{:.0}", without.goodput),
            format!("{:.0}", behind.goodput),
        )?;
        let of_capacity = |seen: &Seen| percent(seen.goodput / show.capacity());
        row("  of what the service can do", of_capacity(without), of_capacity(behind))?;
        for (level, (name, share)) in LEVELS.iter().enumerate() {
            let rate = show.capacity() * super::FLOOD * share;
            let what = format!("  served of {name}, {rate:.0} a second");
            row(&what, percent(without.levels[level]), percent(behind.levels[level]))?;
        }
        row("  p99 of the answers", millis(without.p99), millis(behind.p99))?;
        let none = || "–".to_owned();
        row("  processor time of the gateway for a refusal", none(), micros(self.cost.refused))?;
        row("  and for an answer that it forwards", none(), micros(self.cost.forwarded))?;
        row("After the flood", String::new(), String::new())?;
        row("  served of all", percent(without.after), percent(behind.after))
    }
}

fn percent(share: f64) -> String {
    // What is not quite all must not look like it.
    match share * 100.0 {
        percent if percent > 99.0 && percent < 100.0 => format!("{:.1} %", (percent * 10.0).floor() / 10.0),
        percent => format!("{percent:.0} %"),
    }
}

fn millis(time: Option<Duration>) -> String {
    time.map_or_else(|| "–".to_owned(), |time| format!("{} ms", time.as_millis()))
}

fn micros(time: Option<f64>) -> String {
    time.map_or_else(|| "–".to_owned(), |time| format!("{time:.0} µs"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(goodput: f64, critical: f64) -> Seen {
        Seen { goodput, levels: [critical, critical, 0.1, 0.0], p99: None, after: critical }
    }

    #[test]
    fn a_clear_difference_is_one_in_goodput_and_in_what_is_critical() {
        let cost = Micros { forwarded: None, refused: None };
        let is_better = |without, behind| Closing { without, behind, cost }.is_better();
        assert!(is_better(seen(5.0, 0.0), seen(290.0, 1.0)));
        assert!(!is_better(seen(200.0, 0.0), seen(290.0, 1.0)));
        assert!(!is_better(seen(5.0, 0.0), seen(290.0, 0.4)));
        assert!(!is_better(seen(5.0, 0.6), seen(290.0, 1.0)));
    }

    #[test]
    fn nearly_all_is_not_all() {
        assert_eq!([1.0, 0.9996, 0.999, 0.5].map(percent), ["100 %", "99.9 %", "99.9 %", "50 %"]);
    }
}
