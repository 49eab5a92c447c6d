//! The text format of Prometheus, version 0.0.4: a family has a name, a help and a type, then one line a sample.

use std::fmt::Write;

use super::super::station::Histogram;

/// A page that is being written.
#[derive(Debug, Default)]
pub(super) struct Page(String);

/// Labels with their values.
pub(super) type Labels<'a> = [(&'a str, &'a str)];

impl Page {
    pub(super) const TYPE: &'static str = "text/plain; version=0.0.4; charset=utf-8";

    pub(super) fn finish(self) -> String {
        self.0
    }

    /// Begins a family of counters.
    pub(super) fn counter(&mut self, name: &'static str, help: &str) -> Family<'_> {
        self.family(name, "counter", help)
    }

    /// Begins a family of gauges.
    pub(super) fn gauge(&mut self, name: &'static str, help: &str) -> Family<'_> {
        self.family(name, "gauge", help)
    }

    /// Begins a family of histograms.
    pub(super) fn histogram(&mut self, name: &'static str, help: &str) -> Family<'_> {
        self.family(name, "histogram", help)
    }

    fn family(&mut self, name: &'static str, kind: &str, help: &str) -> Family<'_> {
        // Writing to a text cannot fail.
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
        Family { page: &mut self.0, name }
    }
}

/// The samples of one family.
#[derive(Debug)]
pub(super) struct Family<'a> {
    page: &'a mut String,
    name: &'static str,
}

impl Family<'_> {
    pub(super) fn sample(&mut self, labels: &Labels<'_>, value: u64) {
        self.line("", labels, None, &value.to_string());
    }

    /// A measurement. What is not a number cannot be drawn and is left out.
    pub(super) fn measure(&mut self, labels: &Labels<'_>, value: f64) {
        if value.is_finite() {
            self.line("", labels, None, &value.to_string());
        }
    }

    /// Counts up to each bound, and all of them and their sum.
    pub(super) fn spread(&mut self, labels: &Labels<'_>, histogram: &Histogram) {
        let mut below = 0;
        for (bound, count) in &histogram.steps {
            below += count;
            self.line("_bucket", labels, Some(&bound.as_secs_f64().to_string()), &below.to_string());
        }
        let count = histogram.count().to_string();
        self.line("_bucket", labels, Some("+Inf"), &count);
        self.line("_sum", labels, None, &histogram.total.as_secs_f64().to_string());
        self.line("_count", labels, None, &count);
    }

    fn line(&mut self, suffix: &str, labels: &Labels<'_>, bound: Option<&str>, value: &str) {
        let _ = write!(self.page, "{}{suffix}", self.name);
        let labels = labels.iter().copied().chain(bound.map(|bound| ("le", bound)));
        let mut opening = '{';
        for (name, value) in labels {
            let _ = write!(self.page, "{opening}{name}=\"{}\"", escaped(value));
            opening = ',';
        }
        let _ = writeln!(self.page, "{} {value}", if opening == ',' { "}" } else { "" });
    }
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn families_are_written_as_prometheus_reads_them() {
        let mut page = Page::default();
        page.gauge("answer", "What it is.").sample(&[], 42);
        page.gauge("share", "How much.").measure(&[], 0.25);
        page.gauge("unknown", "Who knows.").measure(&[], f64::NAN);
        page.counter("said_total", "What was said.").sample(&[("by", "a\"b\\c\nd"), ("to", "e")], 1);
        let histogram = Histogram {
            steps: vec![(Duration::from_micros(500), 2), (Duration::from_secs(1), 3)],
            beyond: 1,
            total: Duration::from_millis(2_500),
        };
        page.histogram("took_seconds", "How long.").spread(&[("route", "r")], &histogram);
        let expected = r#"# HELP answer What it is.
# TYPE answer gauge
answer 42
# HELP share How much.
# TYPE share gauge
share 0.25
# HELP unknown Who knows.
# TYPE unknown gauge
# HELP said_total What was said.
# TYPE said_total counter
said_total{by="a\"b\\c\nd",to="e"} 1
# HELP took_seconds How long.
# TYPE took_seconds histogram
took_seconds_bucket{route="r",le="0.0005"} 2
took_seconds_bucket{route="r",le="1"} 5
took_seconds_bucket{route="r",le="+Inf"} 6
took_seconds_sum{route="r"} 2.5
took_seconds_count{route="r"} 6
"#;
        assert_eq!(page.finish(), expected);
    }
}
