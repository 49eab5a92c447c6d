//! The report for programs; its shape is published as `docs/reference/bench.schema.json`.

use std::time::Duration;

use serde_json::{Value, json};

use super::{Answers, ClassReport, Failures, Percentiles, Report, Stretch};
use crate::plan::Protocol;

/// The version of the shape. A field more is no new version; one that changes or goes is.
pub const FORMAT: &str = "tidegate.bench/1";

impl Report {
    /// The report as JSON. Times are in seconds, latencies in microseconds.
    #[must_use]
    pub fn to_json(&self) -> Value {
        json!({
            "format": FORMAT,
            "target": self.authority,
            "protocol": match self.protocol {
                Protocol::Http1 => "http1",
                Protocol::H2 { .. } => "h2",
            },
            "connections": self.connections,
            "timeout_s": seconds(self.timeout),
            "seed": self.seed,
            "length_s": seconds(self.length),
            "stopped": self.is_stopped,
            "late_us": self.late.as_ref().map(percentiles),
            "total": class(&self.total),
            "classes": self.classes.iter().map(class).collect::<Vec<_>>(),
        })
    }
}

fn class(class: &ClassReport) -> Value {
    json!({
        "name": class.name,
        "sent": class.sent,
        "unsent": class.unsent,
        "answered": answers(&class.answers),
        "failed": failures(&class.failures),
        "cut_off": class.cut_off,
        "goodput": class.goodput,
        "latency_us": {
            "all": class.latency.as_ref().map(percentiles),
            "admitted": class.admitted.as_ref().map(percentiles),
            "refused": class.refused.as_ref().map(percentiles),
        },
        "timeline": class.timeline.iter().map(stretch).collect::<Vec<_>>(),
    })
}

fn answers(answers: &Answers) -> Value {
    json!({
        "2xx": answers.ok,
        "3xx": answers.redirected,
        "4xx": answers.caller_error,
        "5xx": answers.server_error,
        "other": answers.other,
        "429": answers.too_many_requests,
        "503": answers.unavailable,
    })
}

fn failures(failures: &Failures) -> Value {
    json!({
        "connect": failures.connect,
        "timed_out": failures.timed_out,
        "reset": failures.reset,
        "protocol": failures.protocol,
    })
}

fn percentiles(of: &Percentiles) -> Value {
    json!({
        "count": of.count,
        "p50": micros(of.p50),
        "p90": micros(of.p90),
        "p99": micros(of.p99),
        "p99.9": micros(of.p999),
        "max": micros(of.max),
    })
}

fn stretch(of: &Stretch) -> Value {
    json!({
        "at_s": of.begins.as_secs(),
        "for_s": of.length.as_secs(),
        "sent": of.sent,
        "unsent": of.unsent,
        "admitted": of.admitted,
        "refused": of.refused,
        "other": of.other,
        "failed": of.failed,
        "p50_us": of.p50.map(micros),
        "p99_us": of.p99.map(micros),
    })
}

fn seconds(length: Duration) -> f64 {
    length.as_secs_f64()
}

fn micros(latency: Duration) -> u64 {
    u64::try_from(latency.as_micros()).unwrap_or(u64::MAX)
}
