//! A service that does what it is told, a clock that follows tokio's, and requests.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::{Future, Ready, ready};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body::{Body, Frame, SizeHint};
use tidegate_core::{Moment, WallTime};
use tidegate_policy::Now;
use tidegate_tower::body::CountedBody;
use tidegate_tower::{Clock, GateLayer, GateService};
use tower::{Layer, Service, ServiceExt};

use crate::policies;

/// Tokio's clock, which tests can pause and advance.
#[derive(Debug)]
pub struct TokioClock(tokio::time::Instant);

impl TokioClock {
    pub fn new() -> Self {
        Self(tokio::time::Instant::now())
    }
}

impl Clock for TokioClock {
    fn now(&self) -> Now {
        let moment = Moment::ORIGIN.plus(self.0.elapsed());
        Now { moment, wall: WallTime::from_unix_nanos(moment.nanos()) }
    }
}

/// What a body does next.
#[derive(Clone, Debug)]
pub enum Step {
    Pending,
    Data(&'static str),
    Trailers(HeaderMap),
    Break,
}

/// A body that takes its steps; it knows its end only when it is asked for more.
#[derive(Clone, Debug, Default)]
pub struct Steps(pub VecDeque<Step>);

impl Body for Steps {
    type Data = Bytes;
    type Error = &'static str;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, &'static str>>> {
        Poll::Ready(match self.0.pop_front() {
            Some(Step::Pending) => {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            Some(Step::Data(data)) => Some(Ok(Frame::data(Bytes::from_static(data.as_bytes())))),
            Some(Step::Trailers(trailers)) => Some(Ok(Frame::trailers(trailers))),
            Some(Step::Break) => Some(Err("broken")),
            None => None,
        })
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::default()
    }
}

/// A service that may hesitate before it is ready and before it answers.
#[derive(Clone, Debug, Default)]
pub struct Inner {
    pub calls: Arc<AtomicU64>,
    /// How often a clone is not ready before it is.
    pub hesitations: u32,
    pub readiness: Readiness,
    pub head: HeaderMap,
    pub status: http::StatusCode,
    pub body: Vec<Step>,
    /// How often an answer is not there before it is.
    pub pauses: u32,
}

/// How far this clone is on its way to be ready. A clone of it begins anew.
#[derive(Debug, Default)]
pub struct Readiness {
    hesitated: u32,
    is_ready: bool,
}

impl Clone for Readiness {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl Inner {
    pub fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }
}

impl<B> Service<Request<CountedBody<B>>> for Inner {
    type Response = Response<Steps>;
    type Error = Infallible;
    type Future = Answer;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        if self.readiness.hesitated < self.hesitations {
            self.readiness.hesitated += 1;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        self.readiness.is_ready = true;
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _request: Request<CountedBody<B>>) -> Answer {
        assert!(std::mem::take(&mut self.readiness.is_ready), "called without having said that it is ready");
        self.readiness.hesitated = 0;
        self.calls.fetch_add(1, Ordering::Relaxed);
        let mut response = Response::new(Steps(self.body.clone().into()));
        *response.headers_mut() = self.head.clone();
        *response.status_mut() = self.status;
        Answer { pauses: self.pauses, response: Some(ready(Ok(response))) }
    }
}

#[derive(Debug)]
pub struct Answer {
    pauses: u32,
    response: Option<Ready<Result<Response<Steps>, Infallible>>>,
}

impl Future for Answer {
    type Output = Result<Response<Steps>, Infallible>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if self.pauses > 0 {
            self.pauses -= 1;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        Poll::Ready(self.response.take().unwrap().into_inner())
    }
}

pub fn layer<const N: usize>(rules: [&str; N]) -> GateLayer {
    GateLayer::for_policy(policies::policy(rules), TokioClock::new()).unwrap()
}

pub fn serve<const N: usize>(rules: [&str; N], inner: Inner) -> GateService<Inner> {
    layer(rules).layer(inner)
}

/// A request of the caller `key`.
pub fn request(key: &str) -> Request<Steps> {
    Request::get("/").header("x-api-key", key).body(Steps::default()).unwrap()
}

/// One answer with its body read to the end.
pub async fn answer(service: &GateService<Inner>, request: Request<Steps>) -> Response<Bytes> {
    let response = service.clone().oneshot(request).await.unwrap();
    let (head, body) = response.into_parts();
    let body = http_body_util::BodyExt::collect(body).await.unwrap().to_bytes();
    Response::from_parts(head, body)
}

/// Polls once, outside of any task.
pub fn poll_once<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

/// A field as text, with its lines joined.
pub fn field(headers: &HeaderMap, name: &str) -> String {
    let lines = headers.get_all(name).iter().map(|line| line.to_str().unwrap());
    lines.collect::<Vec<_>>().join(" | ")
}
