//! The permit rides on the body. One place in flight shows when it comes back.

use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use http::{HeaderMap, Method, StatusCode};
use http_body::{Body, Frame};
use http_body_util::BodyExt;
use tidegate_tower::GateService;
use tower::ServiceExt;

use crate::policies::concurrent;
use crate::support::{Inner, Step, Steps, poll_once, request, serve};

type Answered = http::Response<tidegate_tower::body::GuardedBody<Steps>>;

async fn ask(service: &GateService<Inner>) -> Answered {
    service.clone().oneshot(request("alice")).await.unwrap()
}

async fn is_free(service: &GateService<Inner>) -> bool {
    ask(service).await.status() == StatusCode::OK
}

fn streaming(body: impl Into<Vec<Step>>) -> GateService<Inner> {
    serve([&concurrent(1)], Inner { body: body.into(), ..Inner::default() })
}

#[tokio::test(start_paused = true)]
async fn a_late_body_is_in_flight_until_its_last_byte() {
    let service = streaming([Step::Data("a"), Step::Pending, Step::Data("b")]);
    let mut streaming = ask(&service).await;
    tokio::time::advance(Duration::from_secs(3_600)).await;
    assert!(!is_free(&service).await);
    for expected in ["a", "b"] {
        assert!(!is_free(&service).await);
        let frame = streaming.body_mut().frame().await.unwrap().unwrap();
        assert_eq!(frame.into_data().unwrap(), expected);
    }
    assert!(!is_free(&service).await, "the end has not been seen yet");
    assert!(streaming.body_mut().frame().await.is_none());
    assert!(is_free(&service).await);
    drop(streaming);
    assert!(is_free(&service).await);
}

#[tokio::test(start_paused = true)]
async fn a_body_that_is_dropped_early_gives_its_place_back() {
    let service = streaming([Step::Data("a"), Step::Data("b")]);
    let mut streaming = ask(&service).await;
    streaming.body_mut().frame().await.unwrap().unwrap();
    assert!(!is_free(&service).await);
    drop(streaming);
    assert!(is_free(&service).await);
}

#[tokio::test(start_paused = true)]
async fn a_body_that_breaks_gives_its_place_back_at_once() {
    let service = streaming([Step::Break]);
    let mut broken = ask(&service).await;
    assert!(!is_free(&service).await);
    assert_eq!(broken.body_mut().frame().await.unwrap().unwrap_err(), "broken");
    assert!(is_free(&service).await);
}

#[tokio::test(start_paused = true)]
async fn trailers_pass_and_come_last() {
    let trailers = HeaderMap::from_iter([(http::header::ETAG, "x".parse().unwrap())]);
    let service = streaming([Step::Data("a"), Step::Trailers(trailers.clone())]);
    let collected = ask(&service).await.into_body().collect().await.unwrap();
    assert_eq!(collected.trailers(), Some(&trailers));
    assert_eq!(collected.to_bytes(), "a");
    assert!(is_free(&service).await);
}

#[tokio::test(start_paused = true)]
async fn an_answer_to_head_has_ended_with_its_head() {
    let service = streaming([Step::Data("a")]);
    let mut head = request("alice");
    *head.method_mut() = Method::HEAD;
    let unread = service.clone().oneshot(head).await.unwrap();
    assert!(is_free(&service).await);
    drop(unread);
}

#[tokio::test(start_paused = true)]
async fn a_service_that_is_cancelled_while_it_works_gives_its_place_back() {
    let inner = Inner { pauses: 3, ..Inner::default() };
    let service = serve([&concurrent(1)], inner);
    let mut working = Box::pin(service.clone().oneshot(request("alice")));
    assert!(poll_once(working.as_mut()).is_pending());
    assert!(!is_free(&service).await);
    drop(working);
    assert!(is_free(&service).await);
}

/// A body that knows its length and its end, as servers' own bodies do.
#[tokio::test(start_paused = true)]
async fn what_a_body_says_of_itself_is_passed_on() {
    let layer = crate::support::layer([&concurrent(1)]);
    let inner = tower::service_fn(|_| async {
        Ok::<_, std::convert::Infallible>(http::Response::new(http_body_util::Full::new(bytes::Bytes::from(
            "abc",
        ))))
    });
    let service = tower::Layer::layer(&layer, inner);
    let mut response = service.clone().oneshot(request("alice")).await.unwrap();
    assert_eq!(response.body().size_hint().exact(), Some(3));
    assert!(!response.body().is_end_stream());
    let refused = service.clone().oneshot(request("alice")).await.unwrap();
    assert_eq!(refused.status(), 429);
    let length = refused.body().size_hint().exact().unwrap();
    assert_eq!(refused.into_body().collect().await.unwrap().to_bytes().len() as u64, length);

    let Poll::Ready(Some(Ok(frame))) = poll_once(std::pin::pin!(std::future::poll_fn(|cx| {
        Pin::new(response.body_mut()).poll_frame(cx)
    }))) else {
        panic!("a full body has one frame");
    };
    assert_eq!(Frame::into_data(frame).unwrap(), "abc");
    assert!(response.body().is_end_stream());
    // Servers do not ask a body that has ended once more, so the place is back already.
    assert_eq!(service.clone().oneshot(request("alice")).await.unwrap().status(), 200);
}
