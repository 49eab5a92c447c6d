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

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::task_local;
use tokio::time::timeout;

task_local! {
    /// Known where a request goes on without its caller.
    static ALONE: ();
}

/// Whether the request that is being worked on has lost its caller.
pub(super) fn is_alone() -> bool {
    ALONE.try_with(|()| ()).is_ok()
}

/// A request that has been sent on; dropped, it goes on for a while. Boxed, so that what leads to it stays small.
pub(super) struct Unbroken<F>
where
    F: Future<Output: Send> + Send + 'static,
{
    /// None when it has ended.
    sent: Option<Pin<Box<F>>>,
    grace: Duration,
}

impl<F> Unbroken<F>
where
    F: Future<Output: Send> + Send + 'static,
{
    /// Without its caller it goes on for as long as `grace`.
    pub(super) fn new(sent: F, grace: Duration) -> Self {
        Self { sent: Some(Box::pin(sent)), grace }
    }
}

impl<F> Future for Unbroken<F>
where
    F: Future<Output: Send> + Send + 'static,
{
    type Output = F::Output;

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
    F: Future<Output: Send> + Send + 'static,
{
    fn drop(&mut self) {
        // Without a runtime the worker has ended, and all of its work with it.
        if let (Some(sent), Ok(runtime)) = (self.sent.take(), Handle::try_current()) {
            drop(runtime.spawn(timeout(self.grace, ALONE.scope((), sent))));
        }
    }
}
