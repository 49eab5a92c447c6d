//! A request whose caller has gone, while its upstream works on it.
//!
//! When a caller goes away, the connection to the upstream is closed, and a service that watches it can stop. Most do
//! not: they work on, and answer to nobody. Were the place given back at once, the next request would be sent to a
//! service that is busy with the last one; and callers who time out and retry would fill it with work that nobody
//! waits for, for as long as they retry. Ten workers that take 50 ms, callers who wait for 40:
//!
//! | the place comes back | at the service after a second | answered in time |
//! |----------------------|-------------------------------|------------------|
//! | when the caller goes | ever more; each waits for all before it | none, even when the service is fast again |
//! | when the work ends   | as many as there are places   | all, as soon as the service is fast again |
//!
//! So what was sent goes on without its caller, until it is answered or its
//! [grace](tidegate_tower::Bulkhead::grace) is over: longer work is cut off, so that a service that watches its
//! connections can stop. Its place and its connection are held meanwhile. How long it took, or how long at least where it
//! was cut off, is learnt as work that was done for nobody: those who stayed to the end cannot tell, for they are the ones
//! that were fast, and where nobody stayed it is no proof that the service is well.
//!
//! Three things are worth more than a guess. A rule that allows so many in flight, and a limit of the upstream that is
//! fixed, would be no limits if callers could come, start work and leave; and a cost that only the answer tells would be
//! saved by leaving before it. Where a request holds such a place or owes such a cost, its end is
//! [waited for](crate::alone) beyond the grace, for as long as the upstream may take for any answer.

use std::future::{Future, pending, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::Response;
use http_body::Body;
use tidegate_tower::Admission;
use tidegate_tower::body::GuardedBody;
use tokio::runtime::Handle;

use super::visit::Visit;
use crate::alone::{Patience, alone};
use crate::upstream::{CallFailure, UpstreamBody};

/// How many bytes of an answer are read that nobody waits for. A service that has more to say is stopped by the end of
/// its connection as soon as it writes on.
const MOST_UNWANTED: usize = 64 * 1024;

/// What came of a request that was sent on.
pub(super) struct Sent {
    pub(super) answered: Result<Response<UpstreamBody>, CallFailure>,
    pub(super) admission: Admission,
    patience: Patience,
}

impl Sent {
    /// Asks the upstream, and holds what the request was admitted with meanwhile.
    pub(super) async fn on(visit: Visit, mut admission: Admission, patience: Patience) -> Self {
        admission.ask();
        let answered = visit.go().await;
        Self { answered, admission, patience }
    }

    /// Ends it where nobody waits for it.
    async fn unwanted(self) {
        match self.answered {
            Ok(response) => {
                let holds_place = self.admission.holds_place();
                let patience = self.patience.for_body(response.headers()).filter(|_| holds_place);
                let body = self.admission.answer(response).into_body();
                if let Some(patience) = patience {
                    alone(unwanted(body), patience).await;
                }
            }
            Err(CallFailure::CallerGone | CallFailure::Stalled) => linger(self.admission, self.patience),
            Err(CallFailure::Silent | CallFailure::Broken(_)) => drop(self.admission),
            Err(CallFailure::Unconnected(_) | CallFailure::Busy) => self.admission.unasked(),
        }
    }
}

/// Holds the places of a request whose body broke off, so that a caller who breaks off again and again has no more at
/// work than a rule allows: some services begin their work with the head.
pub(super) fn linger(admission: Admission, patience: Patience) {
    if admission.holds_place() {
        let held = async move {
            let _held = admission;
            pending::<()>().await;
        };
        go_on(held, patience.for_broken_off());
    }
}

/// Reads an answer that nobody waits for, to its end if that is near.
pub(super) async fn unwanted(mut body: GuardedBody<UpstreamBody>) {
    let mut left = MOST_UNWANTED;
    while let Some(Ok(frame)) = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
        let length = frame.data_ref().map_or(0, Bytes::len);
        match left.checked_sub(length) {
            Some(rest) => left = rest,
            None => return,
        }
    }
}

/// A request that has been sent on; dropped, it goes on for a while. Boxed, so that what leads to it stays small.
pub(super) struct Unbroken<F>
where
    F: Future<Output = Sent> + Send + 'static,
{
    /// None when it has ended.
    sent: Option<Pin<Box<F>>>,
    patience: Patience,
}

impl<F> Unbroken<F>
where
    F: Future<Output = Sent> + Send + 'static,
{
    /// Without its caller it goes on for as long as that.
    pub(super) fn new(sent: F, patience: Patience) -> Self {
        Self { sent: Some(Box::pin(sent)), patience }
    }
}

impl<F> Future for Unbroken<F>
where
    F: Future<Output = Sent> + Send + 'static,
{
    type Output = Sent;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(sent) = &mut self.sent else { return Poll::Pending };
        let polled = sent.as_mut().poll(cx);
        if polled.is_ready() {
            self.sent = None;
        }
        polled
    }
}

impl<F> Drop for Unbroken<F>
where
    F: Future<Output = Sent> + Send + 'static,
{
    fn drop(&mut self) {
        if let Some(sent) = self.sent.take() {
            go_on(async { sent.await.unwanted().await }, self.patience);
        }
    }
}

/// Goes on with work that has lost its caller.
pub(super) fn go_on(work: impl Future<Output = ()> + Send + 'static, patience: Patience) {
    // Without a runtime the worker has ended, and all of its work with it.
    if let Ok(runtime) = Handle::try_current() {
        drop(runtime.spawn(alone(work, patience)));
    }
}
