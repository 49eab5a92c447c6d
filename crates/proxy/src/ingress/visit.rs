//! What is asked of an upstream, and what is learnt from its answer; with its caller or without.

use std::sync::Arc;

use http::{Request, Response};
use tidegate_tower::bulkhead::{self, Place};

use crate::settings::Settings;
use crate::upstream::{CallFailure, RequestBody, Upstream, UpstreamBody, orca};
use crate::worker::Worker;

/// A request at its upstream. It owns all it needs, since its caller may go away.
pub(super) struct Visit {
    pub(super) worker: Arc<Worker>,
    pub(super) settings: Arc<Settings>,
    /// The upstream's position in the settings: each worker has settings of its own, but upstreams are shared, and
    /// counting references to them would cost more.
    pub(super) upstream: usize,
    pub(super) place: Option<Place>,
    pub(super) request: Request<RequestBody>,
}

impl Visit {
    /// Asks the upstream.
    pub(super) async fn go(self) -> Result<Response<UpstreamBody>, CallFailure> {
        let Self { worker, settings, upstream, place, request } = self;
        let upstream = settings.upstreams.get(upstream).ok_or(CallFailure::Unconnected)?;
        let mut answered = upstream.call(worker.number, worker.ticks().now(), request).await;
        if let Some(place) = place {
            match &mut answered {
                Ok(response) => learn(&worker, &settings, upstream, place, response),
                Err(failure) => {
                    if let Some(outcome) = failure.outcome() {
                        place.complete(settings.clock.moment(), outcome);
                    }
                }
            }
        }
        answered
    }
}

/// The head of an answer has come: says what it tells of the upstream, and for how long that is busy with it.
fn learn(
    worker: &Worker,
    settings: &Settings,
    upstream: &Upstream,
    place: Place,
    response: &mut Response<UpstreamBody>,
) {
    let now = settings.clock.moment();
    if let Some(utilization) = orca::utilization(response.headers()) {
        upstream.door(worker.number).tell_utilization(now, utilization);
    }
    for (name, signal) in &settings.told_signals {
        let value = response.headers().get(name).and_then(|value| value.to_str().ok()?.trim().parse().ok());
        if let Some(value) = value {
            worker.shared.signals.tell(signal, now, value);
        }
    }
    let outcome = bulkhead::outcome(response);
    if response.body().is_whole() {
        place.complete(now, outcome);
    } else {
        let stay = worker.stays.keep(worker.ticks().now(), place, now, outcome);
        response.body_mut().keep(stay);
    }
}
