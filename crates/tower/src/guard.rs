//! What is held for a request that was admitted, until its answer has ended.
//!
//! A request is in flight until the last byte of its answer has gone out: a download of a minute occupies the
//! service for a minute, though its head came at once. So the permit cannot end with the call; it rides on the
//! response body, inside a `Guard`, and ends in one of three ways:
//!
//! | the body                          | the work was |
//! |-----------------------------------|--------------|
//! | came to its end                   | ok, failed or overloaded, as the answer's status says |
//! | broke                             | failed |
//! | was dropped before its end        | abandoned: the place returns, and nothing is learnt |
//!
//! True costs are settled on the way: from the response's header when it is there, from the bytes at the end. What a
//! request has cost whose answer nobody waited for is not known, and leaving must not pay: then it is what the rule
//! charges for that (`abandoned`), or the bytes that went, if they were more. A request that was never sent to the
//! service costs what it was charged.

use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use http::{HeaderMap, HeaderName, StatusCode, header};
use tidegate_core::Cost;
use tidegate_core::permit::Outcome;
use tidegate_policy::policy::Settle;
use tidegate_policy::{Admitted, Now};

use crate::clock::Clock;

const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");

/// Who is told how an admitted request ended.
pub trait Ending: Debug + Send + Sync {
    /// It has ended, and what it took is given back next.
    fn ended(&self, ended: &Ended<'_>);
}

/// How an admitted request ended.
#[derive(Clone, Copy, Debug)]
pub struct Ended<'a> {
    /// What it was admitted with, settled as far as that is known.
    pub admitted: &'a Admitted,
    /// How its work ended.
    pub outcome: Outcome,
    /// The bytes of the answer's body that were given out.
    pub sent: u64,
    /// The bytes of the request's body that the service has read.
    pub received: u64,
}

/// An admitted request, and what its answer has shown so far.
#[derive(Debug)]
pub(crate) struct Guard {
    /// Boxed: it has room for sixteen rules, and bodies are moved about.
    admitted: Option<Box<Admitted>>,
    clock: Arc<dyn Clock>,
    outcome: Outcome,
    sent: u64,
    /// How many bytes the answer's head promised.
    promised: Option<u64>,
    /// The bytes of the request that the service has read, where a rule wants to know.
    received: Option<Arc<AtomicU64>>,
    /// Who is told of its end, where it matters to a log.
    ending: Option<Arc<dyn Ending>>,
    heard: Heard,
}

/// How much is known of what the service did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Heard {
    /// It was not asked yet.
    Unasked,
    /// It is at work, for all that is known.
    Asked,
    /// It has answered.
    Answer,
    /// It will not answer any more.
    Nothing,
}

impl Guard {
    pub(crate) fn new(admitted: Admitted, clock: Arc<dyn Clock>) -> Self {
        let wants_received = admitted.settles().any(|settle| matches!(settle, Settle::RequestBytes));
        let received = wants_received.then(|| Arc::new(AtomicU64::new(0)));
        Self {
            admitted: Some(Box::new(admitted)),
            clock,
            outcome: Outcome::Failed,
            sent: 0,
            promised: None,
            received,
            heard: Heard::Unasked,
            ending: None,
        }
    }

    /// Tells of its end.
    pub(crate) fn tell(&mut self, ending: Arc<dyn Ending>) {
        self.received.get_or_insert_default();
        self.ending = Some(ending);
    }

    fn told(&self, outcome: Outcome) {
        if let (Some(ending), Some(admitted)) = (&self.ending, &self.admitted) {
            let received = self.received.as_ref().map_or(0, |bytes| bytes.load(Ordering::Relaxed));
            ending.ended(&Ended { admitted, outcome, sent: self.sent, received });
        }
    }

    /// The service is asked from here on.
    pub(crate) const fn ask(&mut self) {
        self.heard = Heard::Asked;
    }

    /// There will be no answer, though the service was asked.
    pub(crate) fn unheard(&mut self) {
        self.heard = Heard::Nothing;
        let now = self.clock.now();
        self.settle_seen(now);
    }

    /// Where the bytes of the request are counted, if they are.
    pub(crate) fn received(&self) -> Option<Arc<AtomicU64>> {
        self.received.clone()
    }

    pub(crate) fn clock(&self) -> &dyn Clock {
        &*self.clock
    }

    pub(crate) fn admitted(&self) -> Option<&Admitted> {
        self.admitted.as_deref()
    }

    /// The answer has begun.
    pub(crate) fn head(&mut self, status: StatusCode, headers: &HeaderMap) {
        self.outcome = outcome_of(status, headers);
        if self.heard == Heard::Nothing {
            // The answer is ours.
            return;
        }
        self.heard = Heard::Answer;
        self.promised =
            headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
        let costs = self.costs(|settle| match settle {
            Settle::ResponseHeader(name) => headers.get(name)?.to_str().ok()?.trim().parse().ok(),
            Settle::ResponseBytes | Settle::RequestBytes => None,
        });
        if !costs.is_empty() {
            self.settle(self.clock.now(), costs);
        }
    }

    /// So many bytes of the answer have gone.
    pub(crate) fn sent(&mut self, bytes: usize) {
        self.sent = self.sent.saturating_add(bytes as u64);
    }

    /// The answer's trailers have gone.
    pub(crate) fn trailers(&mut self, trailers: &HeaderMap) {
        self.outcome = grpc_outcome(trailers).unwrap_or(self.outcome);
    }

    /// The answer has come to its end.
    pub(crate) fn end(mut self) {
        self.complete();
    }

    /// The service or its answer broke.
    pub(crate) fn fail(mut self) {
        self.outcome = Outcome::Failed;
        if self.heard == Heard::Asked {
            self.unheard();
        }
        self.complete();
    }

    /// The service could not be asked after all.
    pub(crate) const fn unasked(&mut self) {
        self.heard = Heard::Unasked;
    }

    /// What the gate said, to be ended in another way.
    pub(crate) fn release(mut self) -> Option<Admitted> {
        self.admitted.take().map(|admitted| *admitted)
    }

    fn complete(&mut self) {
        let now = self.clock.now();
        self.settle_bytes(now);
        self.told(self.outcome);
        if let Some(admitted) = self.admitted.take() {
            admitted.complete(now, self.outcome);
        }
    }

    fn settle_bytes(&mut self, now: Now) {
        let costs = self.seen();
        self.settle(now, costs);
    }

    /// The bytes that went either way.
    fn seen(&self) -> Vec<(Settle, Cost)> {
        let (sent, received) = (self.sent, self.received.as_ref());
        self.costs(|settle| match settle {
            Settle::ResponseBytes => Some(cost_of(sent)),
            Settle::RequestBytes => received.map(|bytes| cost_of(bytes.load(Ordering::Relaxed))),
            Settle::ResponseHeader(_) => None,
        })
    }

    /// What is seen is not all that was done.
    fn settle_seen(&mut self, now: Now) {
        let seen = self.seen();
        let Some(admitted) = &mut self.admitted else { return };
        for (settle, bytes) in seen {
            admitted.settle_at_least(now, &settle, bytes);
        }
        if self.heard != Heard::Answer {
            admitted.settle_unheard(now);
        }
    }

    /// What is known now of the costs that are still open. Nearly always nothing, which allocates nothing.
    fn costs(&self, known: impl Fn(&Settle) -> Option<Cost>) -> Vec<(Settle, Cost)> {
        let settles = self.admitted.iter().flat_map(|admitted| admitted.settles());
        settles.filter_map(|settle| Some((settle.clone(), known(settle)?))).collect()
    }

    fn settle(&mut self, now: Now, costs: Vec<(Settle, Cost)>) {
        if let Some(admitted) = &mut self.admitted {
            for (settle, cost) in costs {
                admitted.settle(now, &settle, cost);
            }
        }
    }
}

impl Drop for Guard {
    /// A server that knows the answer's length stops asking for more after its last byte, so a body that is
    /// dropped with all it promised has ended; any other is abandoned.
    fn drop(&mut self) {
        if self.admitted.is_none() {
            return;
        }
        if self.heard == Heard::Answer && self.promised == Some(self.sent) {
            self.complete();
        } else {
            if self.heard != Heard::Unasked {
                self.settle_seen(self.clock.now());
            }
            self.told(Outcome::Abandoned);
        }
    }
}

fn cost_of(bytes: u64) -> Cost {
    Cost::units(bytes).unwrap_or(Cost::MAX)
}

/// How the work ended, as far as the head of its answer says.
pub(crate) fn outcome_of(status: StatusCode, headers: &HeaderMap) -> Outcome {
    grpc_outcome(headers).unwrap_or_else(|| http_outcome(status))
}

fn http_outcome(status: StatusCode) -> Outcome {
    match status {
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => Outcome::Overloaded,
        status if status.is_server_error() => Outcome::Failed,
        _ => Outcome::Ok,
    }
}

/// How a gRPC answer ended: 8 is exhausted, 14 unavailable; unknown, deadline, internal and data loss are
/// failures of the service; the rest is the caller's own doing.
fn grpc_outcome(fields: &HeaderMap) -> Option<Outcome> {
    Some(match fields.get(GRPC_STATUS)?.as_bytes() {
        b"8" | b"14" => Outcome::Overloaded,
        b"2" | b"4" | b"13" | b"15" => Outcome::Failed,
        _ => Outcome::Ok,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_says_how_the_work_ended() {
        for (status, outcome) in [
            (200, Outcome::Ok),
            (404, Outcome::Ok),
            (429, Outcome::Overloaded),
            (500, Outcome::Failed),
            (503, Outcome::Overloaded),
            (504, Outcome::Failed),
        ] {
            assert_eq!(http_outcome(StatusCode::from_u16(status).unwrap()), outcome);
        }
    }

    #[test]
    fn the_status_of_grpc_says_so_too() {
        let outcome = |status: &'static str| {
            let fields = HeaderMap::from_iter([(
                HeaderName::from_static("grpc-status"),
                http::HeaderValue::from_static(status),
            )]);
            grpc_outcome(&fields).unwrap()
        };
        assert_eq!(
            ["0", "5", "8", "13", "14"].map(outcome),
            [Outcome::Ok, Outcome::Ok, Outcome::Overloaded, Outcome::Failed, Outcome::Overloaded,]
        );
        assert_eq!(grpc_outcome(&HeaderMap::new()), None);
    }
}
