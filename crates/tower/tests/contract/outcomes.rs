//! How work ended, as the gate counts it: ok, failed, overloaded, abandoned.

use std::convert::Infallible;

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response};
use http_body_util::{BodyExt, Full};
use tidegate_policy::Now;
use tidegate_tower::GateLayer;
use tidegate_tower::body::CountedBody;
use tower::{Layer, ServiceExt};

use crate::policies::concurrent;
use crate::support::{Inner, Step, Steps, layer, poll_once, request};

const OK: [u64; 4] = [1, 0, 0, 0];
const FAILED: [u64; 4] = [0, 1, 0, 0];
const OVERLOADED: [u64; 4] = [0, 0, 1, 0];
const ABANDONED: [u64; 4] = [0, 0, 0, 1];

fn ended(layer: &GateLayer) -> [u64; 4] {
    layer.gate().statistics(Now::default()).ended
}

/// The outcome of one request whose answer is read to its end.
async fn outcome(inner: Inner) -> [u64; 4] {
    let layer = layer([&concurrent(1)]);
    let response = layer.layer(inner).oneshot(request("alice")).await.unwrap();
    assert_eq!(ended(&layer), [0; 4], "not before the last byte");
    let _read = response.into_body().collect().await;
    ended(&layer)
}

/// The outcome of one request whose answer is dropped after so many frames.
async fn outcome_after(frames: usize, inner: Inner, request: Request<Steps>) -> [u64; 4] {
    let layer = layer([&concurrent(1)]);
    let mut response = layer.layer(inner).oneshot(request).await.unwrap();
    for _ in 0..frames {
        response.body_mut().frame().await.unwrap().unwrap();
    }
    drop(response);
    ended(&layer)
}

fn answering(status: u16, body: impl Into<Vec<Step>>) -> Inner {
    Inner { status: status.try_into().unwrap(), body: body.into(), ..Inner::default() }
}

#[tokio::test(start_paused = true)]
async fn the_status_says_how_it_ended_once_the_body_has() {
    for (status, expected) in [(200, OK), (404, OK), (500, FAILED), (503, OVERLOADED), (429, OVERLOADED)] {
        assert_eq!(outcome(answering(status, [Step::Data("a")])).await, expected, "{status}");
    }
    assert_eq!(outcome(answering(200, [Step::Data("a"), Step::Break])).await, FAILED);
}

#[tokio::test(start_paused = true)]
async fn the_trailers_of_grpc_say_it_last() {
    for (status, expected) in [("0", OK), ("5", OK), ("13", FAILED), ("14", OVERLOADED)] {
        let trailers = HeaderMap::from_iter([(
            http::HeaderName::from_static("grpc-status"),
            http::HeaderValue::from_static(status),
        )]);
        let body = [Step::Data("a"), Step::Trailers(trailers)];
        assert_eq!(outcome(answering(200, body)).await, expected, "{status}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_nobody_reads_to_the_end_is_abandoned() {
    let body = || answering(200, [Step::Data("a"), Step::Data("b")]);
    for frames in 0..=2 {
        assert_eq!(outcome_after(frames, body(), request("alice")).await, ABANDONED, "{frames}");
    }
    assert_eq!(outcome_after(0, answering(500, [Step::Data("a")]), request("alice")).await, ABANDONED);
}

#[tokio::test(start_paused = true)]
async fn a_body_dropped_with_all_it_promised_has_ended() {
    let mut inner = answering(200, [Step::Data("ab"), Step::Data("c")]);
    inner.head.insert("content-length", 3.into());
    assert_eq!(outcome_after(1, inner.clone(), request("alice")).await, ABANDONED);
    assert_eq!(outcome_after(2, inner, request("alice")).await, OK);
}

#[tokio::test(start_paused = true)]
async fn answers_without_a_body_end_with_their_head() {
    let mut head = request("alice");
    *head.method_mut() = Method::HEAD;
    assert_eq!(outcome_after(0, answering(200, [Step::Data("a")]), head).await, OK);
    assert_eq!(outcome_after(0, answering(304, [Step::Data("a")]), request("alice")).await, OK);

    let layer = layer([&concurrent(1)]);
    let empty = tower::service_fn(|_: Request<CountedBody<Steps>>| async {
        Ok::<_, Infallible>(Response::new(Full::<Bytes>::default()))
    });
    let unread = layer.layer(empty).oneshot(request("alice")).await.unwrap();
    assert_eq!(ended(&layer), OK);
    drop(unread);
    assert_eq!(ended(&layer), OK);
}

#[tokio::test(start_paused = true)]
async fn a_service_that_breaks_has_failed_and_one_that_is_cancelled_is_abandoned() {
    let broken = layer([&concurrent(1)]);
    let service =
        tower::service_fn(|_: Request<CountedBody<Steps>>| async { Err::<Response<Steps>, _>("broken") });
    assert_eq!(broken.layer(service).oneshot(request("alice")).await.unwrap_err(), "broken");
    assert_eq!(ended(&broken), FAILED);

    let cancelled = layer([&concurrent(1)]);
    let inner = Inner { pauses: 3, ..Inner::default() };
    let mut working = Box::pin(cancelled.layer(inner).oneshot(request("alice")));
    assert!(poll_once(working.as_mut()).is_pending());
    drop(working);
    assert_eq!(ended(&cancelled), ABANDONED);
}
