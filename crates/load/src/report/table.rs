//! The report for people.

use std::fmt;
use std::time::Duration;

use super::{ClassReport, Percentiles, Report};

/// Above this, the generator's own delay is worth a word.
const LATE: Duration = Duration::from_millis(2);

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let only = self.classes.len() == 1;
        let shown = self.classes.iter().chain((!only).then_some(&self.total));
        for (index, class) in shown.enumerate() {
            if index > 0 {
                writeln!(f)?;
            }
            if !only {
                writeln!(f, "{}", class.name)?;
            }
            write_class(f, class, self.length)?;
        }
        if let Some(late) = self.late.filter(|late| late.p99 > LATE && self.total.latency.is_some()) {
            writeln!(
                f,
                "\nThe generator itself was late, p99 {}: this machine is too busy to tell smaller latencies.",
                short(late.p99)
            )?;
        }
        Ok(())
    }
}

fn write_class(f: &mut fmt::Formatter<'_>, class: &ClassReport, length: Duration) -> fmt::Result {
    let (due, seconds) = (class.due(), length.as_secs_f64());
    let rate = if seconds > 0.0 { due as f64 / seconds } else { 0.0 };
    writeln!(f, "{:<12}{:>10}   {rate:.1}/s for {seconds:.1} s", "due", due)?;
    writeln!(f, "{:<12}{:>10}", "unsent", class.unsent)?;
    let (answers, failures) = (&class.answers, &class.failures);
    writeln!(f, "{:<12}{:>10}   goodput {:.1}/s", "2xx", answers.ok, class.goodput)?;
    let rows = [
        ("429", answers.too_many_requests),
        ("503", answers.unavailable),
        ("3xx", answers.redirected),
        ("4xx, no 429", answers.caller_error - answers.too_many_requests),
        ("5xx, no 503", answers.server_error - answers.unavailable),
        ("other", answers.other),
        ("no connect", failures.connect),
        ("timed out", failures.timed_out),
        ("reset", failures.reset),
        ("not HTTP", failures.protocol),
        ("cut off", class.cut_off),
    ];
    // The rows that every reader looks for are always there.
    for (index, (name, count)) in rows.into_iter().enumerate() {
        if index < 2 || count > 0 {
            writeln!(f, "{name:<12}{count:>10}")?;
        }
    }
    let latencies = [("all", &class.latency), ("admitted", &class.admitted), ("refused", &class.refused)];
    if class.latency.is_some() {
        let heads = ["p50", "p90", "p99", "p99.9", "max"];
        write!(f, "\n{:<12}", "latency")?;
        heads.iter().try_for_each(|head| write!(f, "{head:>10}"))?;
        writeln!(f)?;
    }
    for (name, found) in latencies {
        if let Some(Percentiles { p50, p90, p99, p999, max, .. }) = found {
            write!(f, "{name:<12}")?;
            [p50, p90, p99, p999, max]
                .iter()
                .try_for_each(|latency| write!(f, "{:>10}", short(**latency)))?;
            writeln!(f)?;
        }
    }
    Ok(())
}

/// Three digits and a unit.
fn short(latency: Duration) -> String {
    let micros = latency.as_micros();
    match micros {
        0..1_000 => format!("{micros} us"),
        1_000..10_000 => format!("{:.2} ms", micros as f64 / 1e3),
        10_000..100_000 => format!("{:.1} ms", micros as f64 / 1e3),
        100_000..1_000_000 => format!("{:.0} ms", micros as f64 / 1e3),
        _ => format!("{:.2} s", micros as f64 / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latencies_have_three_digits_and_a_unit() {
        let shown = [7, 1234, 12_345, 123_456, 1_234_567].map(|micros| short(Duration::from_micros(micros)));
        assert_eq!(shown, ["7 us", "1.23 ms", "12.3 ms", "123 ms", "1.23 s"]);
    }
}
