//! What is asked of an upstream, and what is learnt from its answer; with its caller or without.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::{Request, Response};
use tidegate_core::permit::Outcome;
use tidegate_core::{Criticality, Moment};
use tidegate_policy::policy::LimitAlgorithm;
use tidegate_tower::bulkhead::{self, Place};
use tidegate_tower::{Bulkhead, Clock};

use super::line::LogLine;
use crate::alone;
use crate::settings::Settings;
use crate::stay::{Again, Arrival, Stay};
use crate::upstream::{
    Call, CallFailure, Called, ClientShare, Exchange, Lend, RequestBody, Upstream, UpstreamBody,
    UpstreamError, orca,
};
use crate::worker::Worker;

/// A request at its upstream. It owns all it needs, since its caller may go away.
pub(super) struct Visit {
    pub(super) worker: Arc<Worker>,
    pub(super) settings: Arc<Settings>,
    /// The upstream's position in the settings: each worker has settings of its own, but upstreams are shared, and
    /// counting references to them would cost more.
    pub(super) upstream: usize,
    pub(super) hold: Hold,
    /// Since when the upstream is asked.
    pub(super) began: Moment,
    /// Its line in the access log, if it may get one.
    pub(super) line: Option<Arc<LogLine>>,
    pub(super) request: Request<RequestBody>,
    /// Whose share of the connections it counts for.
    pub(super) client: ClientShare,
    /// How its body comes, if it is still coming.
    pub(super) upload: Option<Arc<Exchange>>,
    pub(super) criticality: Option<Criticality>,
}

/// How a request holds its place.
pub(super) enum Hold {
    /// It has none.
    Nothing,
    /// Until it is answered.
    Place(Place),
    /// It is lent to others.
    Lent,
    /// Its body is still coming: as long, but lends it to others while that takes too long.
    Upload(Stay),
}

impl Hold {
    /// How a request holds the place it was given, if it was given one, while its body is still coming.
    pub(super) fn upload(given: Option<(Place, Again)>, worker: &Worker) -> Self {
        Self::Upload(match given {
            Some((place, again)) => worker.stays.upload(worker.ticks().now(), place, again),
            None => Stay::without_place(),
        })
    }

    /// Who is told how the body comes, if that matters.
    pub(super) fn arrival(&self) -> Option<Arrival> {
        match self {
            Self::Nothing | Self::Place(_) | Self::Lent => None,
            Self::Upload(stay) => Some(stay.arrival()),
        }
    }

    /// The place of a request that is answered.
    fn answered(self) -> Option<Place> {
        match self {
            Self::Nothing | Self::Lent => None,
            Self::Place(place) => Some(place),
            Self::Upload(stay) => stay.answered(),
        }
    }

    /// The place of a request that gets no answer, if the upstream was at work on it.
    fn unanswered(self) -> Option<Place> {
        match self {
            Self::Nothing | Self::Lent => None,
            Self::Place(place) => Some(place),
            Self::Upload(stay) => stay.unanswered(),
        }
    }
}

/// How a request holds its place while there is no answer.
struct Unanswered<'a> {
    hold: Mutex<Hold>,
    door: &'a Arc<Bulkhead>,
    criticality: Option<Criticality>,
    clock: &'a dyn Clock,
}

impl Unanswered<'_> {
    /// The grace is over: the work takes so long at least. Were only answers heard of, a service too slow to give any
    /// would look as fast as ever.
    fn take_back(&self) {
        if let Some(place) = self.end().unanswered() {
            place.complete(self.clock.moment(), Outcome::Abandoned);
        }
    }

    fn hold(&self) -> MutexGuard<'_, Hold> {
        self.hold.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn end(&self) -> Hold {
        std::mem::replace(&mut *self.hold(), Hold::Nothing)
    }
}

impl Lend for Unanswered<'_> {
    fn lend(&self) {
        if self.criticality.is_none() {
            return;
        }
        let mut hold = self.hold();
        let place = match &mut *hold {
            Hold::Place(_) => match std::mem::replace(&mut *hold, Hold::Lent) {
                Hold::Place(place) => Some(place),
                Hold::Nothing | Hold::Lent | Hold::Upload(_) => None,
            },
            Hold::Upload(stay) => stay.lend(),
            Hold::Nothing | Hold::Lent => None,
        };
        // It goes to the next, who may be anybody, while nothing is locked.
        drop(hold);
        place.into_iter().for_each(Place::undo);
    }

    fn take_again(&self) {
        let Some(criticality) = self.criticality else { return };
        match &mut *self.hold() {
            lent @ Hold::Lent => *lent = Hold::Place(self.door.enter_anyway(criticality)),
            Hold::Upload(stay) => stay.take_again(self.door, criticality),
            Hold::Nothing | Hold::Place(_) => {}
        }
    }
}

impl Drop for Unanswered<'_> {
    fn drop(&mut self) {
        if alone::is_alone() {
            self.take_back();
        }
    }
}

/// An upstream that is being asked. Dropped, it notes how, though there was no answer.
struct Asking<'a> {
    called: Called,
    upstream: &'a Upstream,
    line: Option<&'a LogLine>,
    /// After how long the head of the answer came.
    head: Option<Duration>,
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        let Some(line) = self.line else { return };
        let endpoint = self.called.endpoint.and_then(|position| self.upstream.endpoints().get(position));
        line.asked(self.called, endpoint.map(|endpoint| endpoint.spec.to_string()), self.head);
    }
}

impl Visit {
    /// Asks the upstream.
    pub(super) async fn go(self) -> Result<Response<UpstreamBody>, CallFailure> {
        let Self { worker, settings, upstream, hold, began, line, request, client, upload, criticality } =
            self;
        let upstream =
            settings.upstreams.get(upstream).ok_or(CallFailure::Unconnected(UpstreamError::ConnectFailed))?;
        let is_fixed = upstream.spec.concurrency.algorithm == LimitAlgorithm::Fixed;
        let door = upstream.door(worker.number);
        let arrival = hold.arrival();
        let unanswered = Unanswered { hold: Mutex::new(hold), door, criticality, clock: &*settings.clock };
        let is_caller_gone = || arrival.as_ref().is_some_and(Arrival::is_broken_off);
        let (ticks, upload, place) = (worker.ticks(), upload.as_ref(), Some(&unanswered as &dyn Lend));
        let call = Call { worker: worker.number, ticks, client, upload, place };
        let mut asking = Asking { called: Called::default(), upstream, line: line.as_deref(), head: None };
        let called = &mut asking.called;
        let mut call = pin!(upstream.call(call, request, called, is_caller_gone));
        let mut answered = poll_fn(|cx| {
            if !is_fixed && alone::is_late() {
                unanswered.take_back();
            }
            call.as_mut().poll(cx)
        })
        .await;
        let hold = unanswered.end();
        match &mut answered {
            Ok(response) => {
                let now = settings.clock.moment();
                upstream.took(worker.number, now.since(began));
                asking.head = Some(now.since(began));
                hear(&worker, &settings, upstream, response);
                if let Some(place) = hold.answered() {
                    keep(&worker, now, upstream, place, response);
                }
            }
            Err(failure) => {
                if let Some(line) = asking.line {
                    line.failed(failure.error());
                }
                if let Some(place) = hold.unanswered() {
                    match failure.outcome() {
                        Some(outcome) => place.complete(settings.clock.moment(), outcome),
                        // It was never sent.
                        None => place.undo(),
                    }
                }
            }
        }
        answered
    }
}

/// The head of an answer has come: what it says of the upstream counts, whether the request took a place or not.
fn hear(worker: &Worker, settings: &Settings, upstream: &Upstream, response: &Response<UpstreamBody>) {
    if let Some(utilization) = orca::utilization(response.headers()) {
        upstream.door(worker.number).tell_utilization(settings.clock.moment(), utilization);
    }
    for (name, signal) in &settings.told_signals {
        let value = response.headers().get(name).and_then(|value| value.to_str().ok()?.trim().parse().ok());
        if let Some(value) = value {
            worker.shared.signals.tell(signal, settings.clock.moment(), value);
        }
    }
}

/// The head of an answer has come: for how long the upstream is busy with it, and what the limit learns.
fn keep(
    worker: &Worker,
    now: Moment,
    upstream: &Upstream,
    place: Place,
    response: &mut Response<UpstreamBody>,
) {
    let outcome = match bulkhead::outcome(response) {
        Outcome::Ok if alone::is_alone() => Outcome::Abandoned,
        outcome => outcome,
    };
    let linger = if response.body().is_whole() { None } else { upstream.door(worker.number).linger() };
    match linger {
        None => place.complete(now, outcome),
        Some(linger) => {
            let stay = worker.stays.keep(worker.ticks().now(), place, (now, outcome), linger);
            response.body_mut().keep(stay);
        }
    }
}
