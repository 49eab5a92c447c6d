//! How many requests an upstream may have in flight, and how the others wait.

use std::time::Duration;

use super::limit::not_for_this;
use super::range::{count, outside, patience};
use crate::document::read::Field;
use crate::document::upstream::{ConcurrencyDoc, LimitAlgorithmWord, UpstreamDoc, WaitDoc, WaitingOrderWord};
use crate::policy::{Concurrency, LimitAlgorithm, Upstream, WaitingOrder, WaitingQueue};
use crate::problem::{Code, Problem, Problems};
use crate::quantity::{Length, shown};
use crate::text::Span;

/// The most that a limit can be.
const MOST_IN_FLIGHT: u64 = 65_535;

/// The most that can wait.
const MOST_WAITING: u64 = 1_000_000;

/// Who would wait longer wants a ticket and not a connection held open.
const LONGEST_WAIT: Duration = Duration::from_secs(600);

pub(super) fn compile(
    upstream: &str,
    written: &UpstreamDoc,
    path: &str,
    problems: &mut Problems,
) -> Concurrency {
    let default = Concurrency::default();
    let Some(field) = &written.concurrency else { return default };
    let (written, path) = (&field.value, format!("{path}.concurrency"));
    let algorithm = written.algorithm.as_ref().map_or(default.algorithm, |field| match field.value {
        LimitAlgorithmWord::Fixed => LimitAlgorithm::Fixed,
        LimitAlgorithmWord::Aimd => LimitAlgorithm::Aimd,
        LimitAlgorithmWord::Vegas => LimitAlgorithm::Vegas,
        LimitAlgorithmWord::Gradient => LimitAlgorithm::Gradient,
    });
    let (min, max) = match algorithm {
        LimitAlgorithm::Fixed => fixed(upstream, field, &path, problems),
        LimitAlgorithm::Aimd | LimitAlgorithm::Vegas | LimitAlgorithm::Gradient => {
            found(written, &path, problems)
        }
    };
    let latency = written.latency.as_ref();
    Concurrency {
        algorithm,
        min,
        max,
        latency: patience(latency, &format!("{path}.latency"), problems),
        queue: written.queue.as_ref().map_or(default.queue, |field| queue(&field.value, &path, problems)),
    }
}

/// A limit that is known is one number, and nothing moves it.
fn fixed(upstream: &str, field: &Field<ConcurrencyDoc>, path: &str, problems: &mut Problems) -> (u32, u32) {
    let written = &field.value;
    let what = format!("the fixed limit of upstream `{}`", shown(upstream));
    let min = written.min.as_ref().map(|field| field.key_span);
    let latency = written.latency.as_ref().map(|field| field.key_span);
    for (key, at) in [("min", min), ("latency", latency)] {
        if let Some(at) = at {
            problems.push(not_for_this(key, "adaptive limits", &what, path, at));
        }
    }
    if written.max.is_none() && !problems.mentions(&format!("{path}.max")) {
        let message = format!("{what} has no `max`");
        let at = written.algorithm.as_ref().map_or(field.key_span, |algorithm| algorithm.span);
        let entry = problems.entry("max", "50");
        problems
            .push(Problem::new(Code::MissingKey, message).at(at).path(path).label(format!("add {entry}")));
    }
    let max = in_flight(written.max.as_ref(), "max", path, problems);
    let max = max.unwrap_or(Concurrency::default().max);
    (max, max)
}

/// A limit that is found lies between two numbers.
fn found(written: &ConcurrencyDoc, path: &str, problems: &mut Problems) -> (u32, u32) {
    let default = Concurrency::default();
    let min = in_flight(written.min.as_ref(), "min", path, problems);
    let max = in_flight(written.max.as_ref(), "max", path, problems).unwrap_or(default.max);
    if let (Some(field), Some(min)) = (&written.min, min)
        && min > max
    {
        let problem = Problem::new(Code::EmptyRange, format!("min {min} is above max {max}"));
        problems.push(problem.at(field.span).path(format!("{path}.min")).label("lower it, or raise `max`"));
    }
    (min.unwrap_or(default.min.min(max)), max)
}

fn in_flight(written: Option<&Field<u64>>, key: &str, path: &str, problems: &mut Problems) -> Option<u32> {
    let found = count(written, 1..=MOST_IN_FLIGHT, &format!("{path}.{key}"), problems)?;
    u32::try_from(found).ok()
}

fn queue(written: &WaitDoc, path: &str, problems: &mut Problems) -> WaitingQueue {
    let (default, path) = (WaitingQueue::default(), format!("{path}.queue"));
    if let Some(field) = written.timeout.as_ref().filter(|field| field.value.duration > LONGEST_WAIT) {
        let allowed = "from 0s to 10min";
        problems.push(outside(&field.value.written, allowed, field.span, &format!("{path}.timeout")));
    }
    let waiting = written.max_waiting.as_ref();
    WaitingQueue {
        timeout: written.timeout.as_ref().map_or(default.timeout, |field| Some(field.value.duration)),
        order: written.order.as_ref().map_or(default.order, |field| match field.value {
            WaitingOrderWord::Fifo => WaitingOrder::Fifo,
            WaitingOrderWord::AdaptiveLifo => WaitingOrder::AdaptiveLifo,
            WaitingOrderWord::Codel => WaitingOrder::Codel,
            WaitingOrderWord::Fair => WaitingOrder::Fair,
        }),
        max_waiting: count(waiting, 1..=MOST_WAITING, &format!("{path}.max_waiting"), problems)
            .unwrap_or(default.max_waiting),
    }
}

/// Who may wait longer than the whole may take waits in vain, and no answer takes longer than the whole.
pub(super) fn too_patient(compiled: &Upstream, written: &UpstreamDoc, path: &str, problems: &mut Problems) {
    let Some(timeout) = compiled.timeout else { return };
    let concurrency = written.concurrency.as_ref().map(|field| &field.value);
    let queue = concurrency.and_then(|concurrency| concurrency.queue.as_ref());
    let wait = queue.and_then(|queue| queue.value.timeout.as_ref());
    let latency = concurrency.and_then(|concurrency| concurrency.latency.as_ref());
    let span = |field: &Field<Length>| field.span;
    for (key, length, at) in [
        ("concurrency.queue.timeout", compiled.concurrency.queue.timeout, wait.map(span)),
        ("concurrency.latency", compiled.concurrency.latency, latency.map(span)),
    ] {
        let is_said = problems.mentions(&format!("{path}.{key}"));
        if let (Some(length), Some(at)) = (length.filter(|length| *length > timeout && !is_said), at) {
            problems.push(outlasted(timeout, key, length, at, path));
        }
    }
}

fn outlasted(timeout: Duration, key: &str, length: Duration, at: Span, path: &str) -> Problem {
    let message = format!("timeout {timeout:?} is shorter than {key} {length:?}");
    let problem = Problem::new(Code::TimeoutTooShort, message).at(at).path(format!("{path}.{key}"));
    problem.label(format!("shorten {key}, or raise `timeout`"))
}
