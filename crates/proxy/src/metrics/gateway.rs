//! What a gateway measures of its own connections, for operators.

use std::time::Duration;

use super::{MeasuredFamily, MetricFamily, MetricValue};
use crate::figures::{BOUNDS_MICROS, ListenerCounts, ProtocolError};
use crate::gateway::Gateway;

const OPEN: MetricFamily =
    MetricFamily::gauge("tidegate_connections_open", &["listener"], "Connections of callers that are open.");
const ACCEPTED: MetricFamily = MetricFamily::counter(
    "tidegate_connections_accepted_total",
    &["listener"],
    "Connections that were taken in.",
);
const REJECTED: MetricFamily = MetricFamily::counter(
    "tidegate_connections_rejected_total",
    &["listener"],
    "Connections closed at once, because a bound was reached.",
);
const ABANDONED: MetricFamily = MetricFamily::counter(
    "tidegate_connections_abandoned_total",
    &["listener"],
    "Connections whose callers had left before they could be accepted.",
);

const PROTOCOL_ERRORS: MetricFamily = MetricFamily::counter(
    "tidegate_protocol_errors_total",
    &["listener", "kind"],
    "Requests that could not be read, and connections that ended before a request because of what came.",
);
const CERTIFICATE_EXPIRY: MetricFamily = MetricFamily::gauge(
    "tidegate_certificate_expiry_timestamp_seconds",
    &["listener"],
    "When the certificate shown expires, or the first of its chain, in seconds since 1970.",
);

const UPSTREAM_LATENCY: MetricFamily = MetricFamily::histogram(
    "tidegate_upstream_latency_seconds",
    &["upstream"],
    "Time from asking an upstream until the head of its answer; those that give none are among the attempts only.",
);

impl Gateway {
    /// What it measures, family by family.
    #[must_use]
    pub fn metrics(&self) -> Vec<MeasuredFamily> {
        let listeners = self.figures().listeners;
        let counted = |family, of: fn(&ListenerCounts) -> u64| MeasuredFamily {
            family,
            samples: listeners
                .iter()
                .map(|listener| (vec![listener.listener.clone()], MetricValue::Count(of(listener))))
                .collect(),
        };
        vec![
            counted(&OPEN, |listener| listener.open as u64),
            counted(&ACCEPTED, |listener| listener.accepted),
            counted(&REJECTED, |listener| listener.turned_away),
            counted(&ABANDONED, |listener| listener.left),
            protocol_errors(&listeners),
            expiry(&listeners),
            self.latency(),
        ]
    }

    fn latency(&self) -> MeasuredFamily {
        let samples = self.settled().into_iter().map(|upstream| {
            let histogram = upstream.latency().histogram(BOUNDS_MICROS.map(Duration::from_micros));
            (vec![upstream.spec.name.clone()], MetricValue::Spread(histogram))
        });
        MeasuredFamily { family: &UPSTREAM_LATENCY, samples: samples.collect() }
    }
}

fn protocol_errors(listeners: &[ListenerCounts]) -> MeasuredFamily {
    let samples = listeners.iter().flat_map(|listener| {
        ProtocolError::ALL.iter().zip(listener.errors).map(|(kind, count)| {
            (vec![listener.listener.clone(), kind.as_str().to_owned()], MetricValue::Count(count))
        })
    });
    MeasuredFamily { family: &PROTOCOL_ERRORS, samples: samples.collect() }
}

fn expiry(listeners: &[ListenerCounts]) -> MeasuredFamily {
    let samples = listeners.iter().filter_map(|listener| {
        let seconds = listener.certificate_expires?.unix_nanos() / 1_000_000_000;
        Some((vec![listener.listener.clone()], MetricValue::Count(seconds)))
    });
    MeasuredFamily { family: &CERTIFICATE_EXPIRY, samples: samples.collect() }
}
