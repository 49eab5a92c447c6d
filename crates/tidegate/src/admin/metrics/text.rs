//! The text format of Prometheus, version 0.0.4: a family has a name, a help and a type, then one line a sample.

use std::fmt::Write;

use tidegate_proxy::metrics::{Histogram, MeasuredFamily, MetricFamily, MetricValue};

/// A page that is being written.
#[derive(Debug, Default)]
pub(super) struct Page(String);

impl Page {
    pub(super) const TYPE: &'static str = "text/plain; version=0.0.4; charset=utf-8";

    pub(super) fn finish(self) -> String {
        self.0
    }

    /// Begins a family.
    pub(super) fn family(&mut self, family: &'static MetricFamily) -> Family<'_> {
        let MetricFamily { name, kind, help, .. } = family;
        // Writing to a text cannot fail.
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {}", kind.as_str());
        Family { page: &mut self.0, family }
    }

    /// A family with all of its samples. One without any is left out.
    pub(super) fn measured(&mut self, measured: &MeasuredFamily) {
        if measured.samples.is_empty() {
            return;
        }
        let mut family = self.family(measured.family);
        for (labels, value) in &measured.samples {
            let labels: Vec<&str> = labels.iter().map(String::as_str).collect();
            match value {
                MetricValue::Count(count) => family.sample(&labels, *count),
                MetricValue::Measure(value) => family.measure(&labels, *value),
                MetricValue::Spread(histogram) => family.spread(&labels, histogram),
            }
        }
    }
}

/// The samples of one family. Their labels are the values of those it declares, in the same order.
#[derive(Debug)]
pub(super) struct Family<'a> {
    page: &'a mut String,
    family: &'static MetricFamily,
}

impl Family<'_> {
    pub(super) fn sample(&mut self, labels: &[&str], value: u64) {
        self.line("", labels, None, &value.to_string());
    }

    /// A measurement. What is not a number cannot be drawn and is left out.
    pub(super) fn measure(&mut self, labels: &[&str], value: f64) {
        if value.is_finite() {
            self.line("", labels, None, &value.to_string());
        }
    }

    /// Counts up to each bound, and all of them and their sum.
    pub(super) fn spread(&mut self, labels: &[&str], histogram: &Histogram) {
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

    fn line(&mut self, suffix: &str, labels: &[&str], bound: Option<&str>, value: &str) {
        debug_assert_eq!(labels.len(), self.family.labels.len(), "{}", self.family.name);
        let _ = write!(self.page, "{}{suffix}", self.family.name);
        let labels = self.family.labels.iter().copied().zip(labels.iter().copied());
        let labels = labels.chain(bound.map(|bound| ("le", bound)));
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
        const ANSWER: MetricFamily = MetricFamily::gauge("answer", &[], "What it is.");
        const SHARE: MetricFamily = MetricFamily::gauge("share", &[], "How much.");
        const UNKNOWN: MetricFamily = MetricFamily::gauge("unknown", &[], "Not known.");
        const SAID: MetricFamily = MetricFamily::counter("said_total", &["by", "to"], "What was said.");
        const TOOK: MetricFamily = MetricFamily::histogram("took_seconds", &["route"], "How long.");
        let mut page = Page::default();
        page.family(&ANSWER).sample(&[], 42);
        page.family(&SHARE).measure(&[], 0.25);
        page.family(&UNKNOWN).measure(&[], f64::NAN);
        page.family(&SAID).sample(&["a\"b\\c\nd", "e"], 1);
        let histogram = Histogram {
            steps: vec![(Duration::from_micros(500), 2), (Duration::from_secs(1), 3)],
            beyond: 1,
            total: Duration::from_millis(2_500),
        };
        let samples = vec![(vec!["r".to_owned()], MetricValue::Spread(histogram))];
        page.measured(&MeasuredFamily { family: &TOOK, samples });
        page.measured(&MeasuredFamily { family: &TOOK, samples: Vec::new() });
        let expected = r#"# HELP answer What it is.
# TYPE answer gauge
answer 42
# HELP share How much.
# TYPE share gauge
share 0.25
# HELP unknown Not known.
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
