//! The families about overload.

use tidegate_core::Criticality;
use tidegate_policy::policy::SignalUnit;
use tidegate_proxy::metrics::{MeasuredFamily, MetricFamily, MetricValue};

use super::super::overload::Overload;
use super::super::signals::unit;
use super::text::Page;

const LIMIT: MetricFamily = MetricFamily::gauge(
    "tidegate_concurrency_limit",
    &["upstream"],
    "Requests that may be in flight at an upstream, as found at this moment.",
);
const IN_FLIGHT: MetricFamily = MetricFamily::gauge(
    "tidegate_upstream_in_flight",
    &["upstream"],
    "Requests in flight at an upstream, of that limit.",
);
const WAITING: MetricFamily = MetricFamily::gauge(
    "tidegate_waiting",
    &["upstream"],
    "Requests that wait until they may go to an upstream.",
);
const QUEUE_DELAY: MetricFamily = MetricFamily::gauge(
    "tidegate_queue_delay_seconds",
    &["upstream"],
    "How long those waited that were served in the last seconds.",
);
const SHED: MetricFamily = MetricFamily::gauge(
    "tidegate_shed_ratio",
    &["criticality"],
    "The share that is refused at once, from 0 to 1: the greatest of all upstreams and rules of kind shed.",
);
const SIGNAL_RATIO: MetricFamily = MetricFamily::gauge(
    "tidegate_signal_ratio",
    &["name"],
    "Signals that are shares from 0 to 1, smoothed; not there while unknown.",
);
const SIGNAL_SECONDS: MetricFamily = MetricFamily::gauge(
    "tidegate_signal_seconds",
    &["name"],
    "Signals that are lengths of time, smoothed; not there while unknown.",
);
const SIGNAL: MetricFamily = MetricFamily::gauge(
    "tidegate_signal",
    &["name"],
    "Signals of the policy's own, smoothed, in units that only the policy knows; not there while unknown.",
);
const CAPACITY_WANTED: MetricFamily = MetricFamily::gauge(
    "tidegate_capacity_wanted_ratio",
    &[],
    "Capacity that is wanted, as a multiple of what there is: 1 is just enough, below it nothing is short.",
);
const UPSTREAM_WANTED: MetricFamily = MetricFamily::gauge(
    "tidegate_upstream_wanted_ratio",
    &["upstream"],
    "The same, of each upstream; the one above is the greatest of them.",
);

pub(super) fn write(page: &mut Page, overload: &Overload) {
    let upstreams =
        || overload.upstreams.iter().map(|upstream| (upstream.name.as_str(), &upstream.concurrency));
    let mut family = page.family(&LIMIT);
    for (upstream, concurrency) in upstreams() {
        family.sample(&[upstream], concurrency.limit.into());
    }
    let mut family = page.family(&IN_FLIGHT);
    for (upstream, concurrency) in upstreams() {
        family.sample(&[upstream], concurrency.in_flight);
    }
    let mut family = page.family(&WAITING);
    for (upstream, concurrency) in upstreams() {
        family.sample(&[upstream], concurrency.waiting.iter().sum());
    }
    let mut family = page.family(&QUEUE_DELAY);
    for (upstream, concurrency) in upstreams() {
        family.measure(&[upstream], concurrency.queue_delay.as_secs_f64());
    }
    let mut family = page.family(&SHED);
    for (level, share) in Criticality::ALL.iter().zip(overload.shed()) {
        family.measure(&[level.as_str()], share);
    }
    signals(page, overload);
    page.family(&CAPACITY_WANTED).measure(&[], overload.capacity.wanted_ratio);
    let mut family = page.family(&UPSTREAM_WANTED);
    for (upstream, concurrency) in upstreams() {
        family.measure(&[upstream], concurrency.wanted_ratio);
    }
}

/// Those that are known, each under the name that says its unit.
fn signals(page: &mut Page, overload: &Overload) {
    let units = [
        (SignalUnit::Share, &SIGNAL_RATIO),
        (SignalUnit::Time, &SIGNAL_SECONDS),
        (SignalUnit::Number, &SIGNAL),
    ];
    for (wanted, family) in units {
        let known = overload.signals.iter().filter(|signal| unit(&signal.name) == wanted);
        let sample = |name: &String, value| (vec![name.clone()], MetricValue::Measure(value));
        let samples = known.filter_map(|signal| Some(sample(&signal.name, signal.value?))).collect();
        page.measured(&MeasuredFamily { family, samples });
    }
}
