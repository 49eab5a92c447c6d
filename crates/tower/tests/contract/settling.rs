//! True costs, read from what the service answers.

use std::convert::Infallible;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use tidegate_tower::body::CountedBody;
use tower::{Layer, ServiceExt};

use crate::policies::{SHAPED, settled};
use crate::support::{Inner, Step, answer, field, layer, poll_once, request, serve};

/// What is left of 1000 after the requests so far, as the next answer says: itself is taken to cost 10.
async fn left(service: &tidegate_tower::GateService<Inner>) -> String {
    field(answer(service, request("alice")).await.headers(), "ratelimit")
}

#[tokio::test(start_paused = true)]
async fn a_header_of_the_answer_is_the_true_cost_at_once() {
    let settle = || settled("response_header:x-cost");
    let costing = |cost: &'static str| {
        let mut inner = Inner::default();
        inner.head.insert("x-cost", cost.parse().unwrap());
        serve([&settle()], inner)
    };
    assert_eq!(left(&costing("250.5")).await, "\"settled\";r=749;t=1");
    assert_eq!(left(&costing("0")).await, "\"settled\";r=1000;t=0");
    // What cannot be read leaves the estimate.
    assert_eq!(left(&costing("much")).await, "\"settled\";r=990;t=1");
    assert_eq!(left(&serve([&settle()], Inner::default())).await, "\"settled\";r=990;t=1");
}

#[tokio::test(start_paused = true)]
async fn the_bytes_of_the_answer_are_the_true_cost_at_its_end() {
    let body = vec![Step::Data("0123456789"), Step::Data("0123456789"), Step::Data("0123456789")];
    let service = serve([&settled("bytes:response")], Inner { body, ..Inner::default() });
    let mut streaming = service.clone().oneshot(request("alice")).await.unwrap();
    assert_eq!(field(streaming.headers(), "ratelimit-policy"), "\"settled\";q=1000;qu=\"content-bytes\";w=1");
    assert_eq!(field(streaming.headers(), "ratelimit"), "\"settled\";r=990;t=1");
    streaming.body_mut().frame().await.unwrap().unwrap();
    streaming.body_mut().frame().await.unwrap().unwrap();
    // Nobody waits for the rest, but twenty bytes have gone.
    drop(streaming);
    assert_eq!(left(&service).await, "\"settled\";r=970;t=1");
    // That one was read to its end: thirty more, and the estimate of this one.
    assert_eq!(left(&service).await, "\"settled\";r=940;t=1");
}

#[tokio::test(start_paused = true)]
async fn the_bytes_of_the_request_are_counted_as_the_service_reads_them() {
    let echo = tower::service_fn(|request: Request<CountedBody<Full<Bytes>>>| async {
        let body = request.into_body().collect().await.unwrap().to_bytes();
        Ok::<_, Infallible>(Response::new(Full::new(body)))
    });
    let service = layer([&settled("bytes:request")]).layer(echo);
    let send = async |body: &'static str| {
        let response = service.clone().oneshot(Request::new(Full::new(Bytes::from(body)))).await.unwrap();
        let left = field(response.headers(), "ratelimit");
        assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), body);
        left
    };
    assert_eq!(send("0123456789012345678901234").await, "\"settled\";r=990;t=1");
    assert_eq!(send("").await, "\"settled\";r=965;t=1");
    assert_eq!(send("").await, "\"settled\";r=965;t=1");
}

/// Polls a request so often and drops it.
fn leave(service: &tidegate_tower::GateService<Inner>, polls: usize) {
    let mut call = Box::pin(service.clone().oneshot(request("alice")));
    for _ in 0..polls {
        assert!(poll_once(call.as_mut()).is_pending());
    }
}

#[tokio::test(start_paused = true)]
async fn who_leaves_before_the_answer_saves_nothing() {
    for (source, polls) in [("response_header:x-cost", 2), ("bytes:response", 2), ("bytes:request", 2)] {
        let service = serve([&settled(source)], Inner { pauses: 5, ..Inner::default() });
        leave(&service, polls);
        assert_eq!(left(&service).await, "\"settled\";r=980;t=1", "the estimate stands: {source}");
        let rule = settled(source).replace(" }", ", abandoned = \"max:300\" }");
        let service = serve([&rule], Inner { pauses: 5, ..Inner::default() });
        leave(&service, polls);
        assert_eq!(left(&service).await, "\"settled\";r=690;t=1", "{source}");
    }
}

#[tokio::test(start_paused = true)]
async fn who_leaves_before_the_service_is_called_pays_the_estimate() {
    let rule = settled("bytes:response").replace(" }", ", abandoned = \"max:300\" }");
    let service = serve([&rule], Inner { hesitations: 3, ..Inner::default() });
    leave(&service, 1);
    let service = serve([SHAPED, &rule], Inner::default());
    assert_eq!(answer(&service, request("alice")).await.status(), 200);
    leave(&service, 1);
    let state = field(answer(&service, request("bob")).await.headers(), "ratelimit");
    assert!(state.contains("\"settled\";r=980"), "{state}");
}

#[tokio::test(start_paused = true)]
async fn a_service_that_breaks_before_it_answers_has_cost_what_is_not_heard() {
    let broken = tower::service_fn(|_: Request<CountedBody<Full<Bytes>>>| async {
        Err::<Response<Full<Bytes>>, _>("broken")
    });
    let rule = settled("response_header:x-cost").replace(" }", ", abandoned = \"max:300\" }");
    let layer = layer([&rule]);
    let asked = layer.clone().layer(broken).oneshot(Request::new(Full::new(Bytes::new()))).await;
    assert_eq!(asked.unwrap_err(), "broken");
    assert_eq!(left(&layer.layer(Inner::default())).await, "\"settled\";r=690;t=1");
}
