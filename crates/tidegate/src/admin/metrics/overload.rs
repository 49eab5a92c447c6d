//! The families about overload.

use tidegate_core::Criticality;

use super::super::overload::Overload;
use super::text::Page;

pub(super) fn write(page: &mut Page, overload: &Overload) {
    let upstreams =
        || overload.upstreams.iter().map(|upstream| (upstream.name.as_str(), &upstream.concurrency));
    let mut family =
        page.gauge("tidegate_concurrency_limit", "Requests that may be in flight at an upstream.");
    for (upstream, concurrency) in upstreams() {
        family.sample(&[("upstream", upstream)], concurrency.limit.into());
    }
    let mut family = page.gauge("tidegate_upstream_in_flight", "Places taken at an upstream.");
    for (upstream, concurrency) in upstreams() {
        family.sample(&[("upstream", upstream)], concurrency.in_flight);
    }
    let mut family = page.gauge("tidegate_waiting", "Requests that wait for a place at an upstream.");
    for (upstream, concurrency) in upstreams() {
        family.sample(&[("upstream", upstream)], concurrency.waiting.iter().sum());
    }
    let help = "Time that requests waited for a place at an upstream, of those served lately.";
    let mut family = page.gauge("tidegate_queue_delay_seconds", help);
    for (upstream, concurrency) in upstreams() {
        family.measure(&[("upstream", upstream)], concurrency.queue_delay.as_secs_f64());
    }
    let help = "Share of a criticality that is shed, the greatest of all upstreams and rules.";
    let mut family = page.gauge("tidegate_shed_ratio", help);
    for (level, share) in Criticality::ALL.iter().zip(overload.shed()) {
        family.measure(&[("criticality", level.as_str())], share);
    }
    let mut family = page.gauge("tidegate_signal", "Signals that are known, in their units.");
    for signal in &overload.signals {
        if let Some(value) = signal.value {
            family.measure(&[("name", &signal.name)], value);
        }
    }
    let help = "Capacity that is wanted, as a multiple of what there is: 1 is just enough.";
    page.gauge("tidegate_capacity_wanted_ratio", help).measure(&[], overload.capacity.wanted_ratio);
    let help = "The same, of each upstream.";
    let mut family = page.gauge("tidegate_upstream_wanted_ratio", help);
    for (upstream, concurrency) in upstreams() {
        family.measure(&[("upstream", upstream)], concurrency.wanted_ratio);
    }
}
