//! What a gateway measures of its own connections, for operators.

use super::{MeasuredFamily, MetricFamily, MetricValue};
use crate::figures::ListenerCounts;
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
        ]
    }
}
