//! One request of an HTTP/2 connection, ended when its peer takes nothing of the answer for too long.
//!
//! A peer that does not read stops an HTTP/1 connection as a whole, which is seen where bytes are written. Over HTTP/2
//! every request has a window of its own, and one that is never opened holds an answer and its place in flight for ever,
//! while the connection goes on. The server does not ask the answer's body for more until the window opens, so the body
//! cannot end it. But it can tell: a part was given out, and nobody has asked for the next. Whoever runs the request
//! looks at that after some time:
//!
//! | the body                         | its peer takes nothing until the time is over |
//! |----------------------------------|-----------------------------------------------|
//! | gave out a part                  | the request is dropped, and its stream is reset |
//! | gave out a part, then was asked  | nothing: the upstream is slow, not the peer |

use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::rt::Executor;
use pin_project_lite::pin_project;
use tokio::task_local;
use tokio::time::{Instant, Sleep, sleep};

task_local! {
    static PARTS: Cell<Parts>;
}

/// What the body of an answer has given out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Parts {
    count: u64,
    /// Whether nobody has asked for more since the last one.
    is_untaken: bool,
}

/// The body is asked for its next part, so that its peer has taken the one before.
pub(crate) fn asked() {
    note(|parts| Parts { is_untaken: false, ..parts });
}

/// The body gives out a part.
pub(crate) fn gave() {
    note(|parts| Parts { count: parts.count.wrapping_add(1), is_untaken: true });
}

/// Over HTTP/1 there is nobody to tell, nor a need to.
fn note(change: impl FnOnce(Parts) -> Parts) {
    PARTS.try_with(|parts| parts.set(change(parts.get()))).ok();
}

/// Runs the requests of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Streams {
    patience: Duration,
}

impl Streams {
    /// Each part of an answer must be taken within `patience`, or twice that at most.
    pub(crate) const fn new(patience: Duration) -> Self {
        Self { patience }
    }
}

impl<F: Future<Output = ()> + Send + 'static> Executor<F> for Streams {
    fn execute(&self, request: F) {
        let stream = Stream { request, patience: self.patience, waiting: None };
        tokio::spawn(PARTS.scope(Cell::default(), stream));
    }
}

pin_project! {
    /// A request, up to the end of its answer.
    struct Stream<F> {
        #[pin]
        request: F,
        patience: Duration,
        // There from the first time its peer is waited for: most answers are taken at once, and need no timer.
        waiting: Option<Waiting>,
    }
}

struct Waiting {
    timer: Pin<Box<Sleep>>,
    /// What had been given out when the timer was set.
    since: Parts,
}

impl<F: Future<Output = ()>> Future for Stream<F> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.project();
        if this.request.poll(cx).is_ready() {
            return Poll::Ready(());
        }
        let parts = PARTS.with(Cell::get);
        if !parts.is_untaken {
            return Poll::Pending;
        }
        let patience = *this.patience;
        let waiting =
            this.waiting.get_or_insert_with(|| Waiting { timer: Box::pin(sleep(patience)), since: parts });
        while waiting.timer.as_mut().poll(cx).is_ready() {
            if waiting.since == parts {
                return Poll::Ready(());
            }
            // Setting it anew for every part would cost more than being late.
            waiting.since = parts;
            waiting.timer.as_mut().reset(Instant::now() + patience);
        }
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use tokio::time::timeout;

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(60);

    /// Tells when it is dropped.
    struct Guard(Arc<AtomicBool>);

    impl Drop for Guard {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }

    /// Whether a request was ended within twice the patience and a bit.
    async fn is_ended(request: impl Future<Output = ()> + Send + 'static) -> bool {
        let ended = Arc::new(AtomicBool::new(false));
        let guard = Guard(Arc::clone(&ended));
        let guarded = async move {
            let _guard = guard;
            request.await;
        };
        Streams::new(PATIENCE).execute(guarded);
        sleep(PATIENCE * 2 + Duration::from_secs(1)).await;
        ended.load(Ordering::Relaxed)
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_nobody_takes_is_ended() {
        let starved = async {
            gave();
            pending().await
        };
        assert!(is_ended(starved).await);
    }

    #[tokio::test(start_paused = true)]
    async fn an_upstream_may_be_slow() {
        let slow = async {
            gave();
            asked();
            pending().await
        };
        assert!(!is_ended(slow).await);
        assert!(!is_ended(pending()).await, "before the first part, too");
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_may_be_slow_as_long_as_it_takes_something() {
        let sipped = async {
            loop {
                gave();
                drop(timeout(PATIENCE / 2, pending::<()>()).await);
                asked();
            }
        };
        assert!(!is_ended(sipped).await);
    }

    #[test]
    fn outside_a_request_nothing_is_noted() {
        gave();
        asked();
        assert!(PARTS.try_with(Cell::get).is_err());
    }
}
