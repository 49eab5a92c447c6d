//! A request on its way: refused, waiting for its turn, or with the service.
//!
//! Each state owns what it holds, so dropping the future in any of them gives everything back: places in flight,
//! the service that was ready, the request. A charge stands. Whoever is cancelled while it waits has had its turn
//! in the schedule, and those behind it have been told theirs.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::Response;
use http_body::Body;
use pin_project_lite::pin_project;
use tokio::time::{Sleep, sleep};
use tower_service::Service;

use crate::admission::Admission;
use crate::body::GuardedBody;

pin_project! {
    /// The answer to a request, once there is one.
    pub struct ResponseFuture<S, R>
    where
        S: Service<R>,
    {
        #[pin]
        state: State<S, R, S::Future>,
    }
}

pin_project! {
    #[project = StateProjection]
    enum State<S, R, F> {
        Refused { response: Option<Response<Bytes>> },
        // Boxed, because few requests wait and all of them would be larger.
        Waiting { waiting: Option<Box<Waiting<S, R>>> },
        Calling { #[pin] future: F, admission: Option<Admission> },
    }
}

struct Waiting<S, R> {
    sleep: Pin<Box<Sleep>>,
    ready: S,
    request: R,
    admission: Admission,
}

impl<S: Service<R>, R> ResponseFuture<S, R> {
    pub(super) const fn refused(response: Response<Bytes>) -> Self {
        Self { state: State::Refused { response: Some(response) } }
    }

    pub(super) const fn calling(future: S::Future, admission: Admission) -> Self {
        Self { state: State::Calling { future, admission: Some(admission) } }
    }

    pub(super) fn waiting(wait: Duration, ready: S, request: R, admission: Admission) -> Self {
        let waiting = Waiting { sleep: Box::pin(sleep(wait)), ready, request, admission };
        Self { state: State::Waiting { waiting: Some(Box::new(waiting)) } }
    }
}

impl<S, R, B> Future for ResponseFuture<S, R>
where
    S: Service<R, Response = Response<B>>,
    B: Body,
{
    type Output = Result<Response<GuardedBody<B>>, S::Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        const DONE: &str = "a future is not polled again after it has answered";
        let mut state = self.project().state;
        loop {
            match state.as_mut().project() {
                StateProjection::Refused { response } => {
                    let response = response.take().expect(DONE);
                    return Poll::Ready(Ok(response.map(GuardedBody::refused)));
                }
                StateProjection::Waiting { waiting } => {
                    let sleep = &mut waiting.as_mut().expect(DONE).sleep;
                    ready!(sleep.as_mut().poll(cx));
                    let Waiting { mut ready, request, mut admission, .. } = *waiting.take().expect(DONE);
                    admission.ask();
                    let future = ready.call(request);
                    state.set(State::Calling { future, admission: Some(admission) });
                }
                StateProjection::Calling { future, admission } => {
                    let response = ready!(future.poll(cx));
                    let admission = admission.take().expect(DONE);
                    return Poll::Ready(match response {
                        Ok(response) => Ok(admission.answer(response)),
                        Err(error) => {
                            admission.fail();
                            Err(error)
                        }
                    });
                }
            }
        }
    }
}

impl<S: Service<R>, R> fmt::Debug for ResponseFuture<S, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match &self.state {
            State::Refused { .. } => "refused",
            State::Waiting { .. } => "waiting",
            State::Calling { .. } => "calling",
        };
        f.debug_struct("ResponseFuture").field("state", &state).finish_non_exhaustive()
    }
}
