//! A new policy under requests that are on their way.

use http_body_util::BodyExt;
use tidegate_policy::Now;
use tower::{Layer, ServiceExt};

use crate::policies::{self, PER_KEY, PER_PATH, concurrent};
use crate::support::{Inner, Step, answer, field, layer, request};

#[tokio::test(start_paused = true)]
async fn a_streaming_answer_gives_its_place_back_under_a_new_policy() {
    let layer = layer([&concurrent(1)]);
    let service = layer.layer(Inner { body: vec![Step::Data("a")], ..Inner::default() });
    let streaming = service.clone().oneshot(request("alice")).await.unwrap();
    layer.gate().swap(policies::policy([&concurrent(2)]), Now::default()).unwrap();
    let second = service.clone().oneshot(request("alice")).await.unwrap();
    assert_eq!(field(second.headers(), "ratelimit"), "\"concurrent\";r=0");
    assert_eq!(answer(&service, request("alice")).await.status(), 429);
    streaming.into_body().collect().await.unwrap();
    assert_eq!(answer(&service, request("alice")).await.status(), 200);
}

#[tokio::test(start_paused = true)]
async fn what_is_looked_for_in_a_request_follows_the_policy() {
    let layer = layer([PER_KEY]);
    let service = layer.layer(Inner::default());
    let escaped = || {
        let mut request = request("alice");
        *request.uri_mut() = "/a%2Fb".parse().unwrap();
        request
    };
    assert_eq!(answer(&service, escaped()).await.status(), 200);
    layer.gate().swap(policies::policy([PER_PATH]), Now::default()).unwrap();
    assert_eq!(answer(&service, escaped()).await.status(), 400);
}
