use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tidegate_core::queue::Handle;
use tidegate_core::{Criticality, Reason, Refusal, Retry};
use tokio::sync::oneshot;
use tokio::time::{Sleep, sleep};

use super::{Bulkhead, Place, TICK};

/// Somebody who waits, as the queue knows it.
#[derive(Debug)]
pub(super) struct Waiter {
    /// The entrance it came by.
    pub(super) door: Arc<Bulkhead>,
    sender: oneshot::Sender<Result<Place, Refusal>>,
}

impl Waiter {
    pub(super) fn new(door: &Arc<Bulkhead>) -> (Self, oneshot::Receiver<Result<Place, Refusal>>) {
        let (sender, receiver) = oneshot::channel();
        (Self { door: Arc::clone(door), sender }, receiver)
    }

    /// Says what became of it. A place that nobody takes comes back by being dropped.
    pub(super) fn tell(self, answer: Result<Place, Refusal>) {
        drop(self.sender.send(answer));
    }
}

/// A request that waits for its place. Dropped, it leaves the queue.
#[derive(Debug)]
#[must_use = "who does not wait gets no place"]
pub struct Waiting {
    receiver: oneshot::Receiver<Result<Place, Refusal>>,
    /// None once its time is up.
    timer: Option<Pin<Box<Sleep>>>,
    handle: Handle,
    criticality: Criticality,
    door: Arc<Bulkhead>,
    is_over: bool,
}

impl Waiting {
    pub(super) fn new(
        receiver: oneshot::Receiver<Result<Place, Refusal>>,
        patience: Duration,
        handle: Handle,
        criticality: Criticality,
        door: Arc<Bulkhead>,
    ) -> Self {
        let timer = Some(Box::pin(sleep(patience)));
        Self { receiver, timer, handle, criticality, door, is_over: false }
    }
}

impl Future for Waiting {
    type Output = Result<Place, Refusal>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if let Poll::Ready(answer) = Pin::new(&mut self.receiver).poll(cx) {
            self.is_over = true;
            // Whoever takes a waiter out of the queue tells it something.
            let unanswered = Refusal { reason: Reason::WaitTooLong, retry: Retry::After(TICK) };
            return Poll::Ready(answer.unwrap_or(Err(unanswered)));
        }
        let Some(timer) = &mut self.timer else { return Poll::Pending };
        if timer.as_mut().poll(cx).is_pending() {
            return Poll::Pending;
        }
        self.timer = None;
        if !self.door.cancel(self.handle) {
            // It has left the queue already, and the answer is on its way.
            return Poll::Pending;
        }
        self.is_over = true;
        let late = Refusal { reason: Reason::WaitTooLong, retry: Retry::After(TICK) };
        Poll::Ready(Err(self.door.refuse(self.criticality, late)))
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if !self.is_over && self.door.cancel(self.handle) {
            self.door.counts.abandoned();
        }
    }
}
