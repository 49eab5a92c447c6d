//! A request on its way: refused, waiting for its turn, or with the service.
//!
//! Each state owns what it holds, so dropping the future in any of them gives everything back: places in flight,
//! the service that was ready, the request. A charge stands. Whoever is cancelled while it waits has had its turn
//! in the schedule, and those behind it have been told theirs.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Response, StatusCode};
use http_body::Body;
use pin_project_lite::pin_project;
use tokio::time::{Sleep, sleep};
use tower_service::Service;

use crate::body::GuardedBody;
use crate::guard::Guard;
use crate::respond::Respond;

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
        Calling { #[pin] future: F, ending: Option<Ending> },
    }
}

struct Waiting<S, R> {
    sleep: Pin<Box<Sleep>>,
    ready: S,
    request: R,
    ending: Ending,
}

/// What is needed when the service has answered.
pub(super) struct Ending {
    pub(super) guard: Guard,
    pub(super) method: Method,
    pub(super) respond: Arc<Respond>,
}

impl<S: Service<R>, R> ResponseFuture<S, R> {
    pub(super) const fn refused(response: Response<Bytes>) -> Self {
        Self { state: State::Refused { response: Some(response) } }
    }

    pub(super) const fn calling(future: S::Future, ending: Ending) -> Self {
        Self { state: State::Calling { future, ending: Some(ending) } }
    }

    pub(super) fn waiting(wait: Duration, ready: S, request: R, ending: Ending) -> Self {
        let waiting = Waiting { sleep: Box::pin(sleep(wait)), ready, request, ending };
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
                    let Waiting { mut ready, request, ending, .. } = *waiting.take().expect(DONE);
                    let future = ready.call(request);
                    state.set(State::Calling { future, ending: Some(ending) });
                }
                StateProjection::Calling { future, ending } => {
                    let response = ready!(future.poll(cx));
                    let ending = ending.take().expect(DONE);
                    return Poll::Ready(match response {
                        Ok(response) => Ok(ending.answer(response)),
                        Err(error) => {
                            ending.guard.fail();
                            Err(error)
                        }
                    });
                }
            }
        }
    }
}

impl Ending {
    /// The service's answer, with our fields on its head and the permit on its body.
    fn answer<B: Body>(mut self, response: Response<B>) -> Response<GuardedBody<B>> {
        let (mut head, body) = response.into_parts();
        self.guard.head(head.status, &head.headers);
        if let Some(admitted) = self.guard.admitted() {
            self.respond.admitted(self.guard.clock(), admitted, &mut head.headers);
        }
        let is_bodiless = self.method == Method::HEAD
            || matches!(head.status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
        let body = if is_bodiless {
            GuardedBody::unsent(body, self.guard)
        } else {
            GuardedBody::served(body, self.guard)
        };
        Response::from_parts(head, body)
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
