//! Clones share the gate, and a rule in shadow leaves no byte.

use http::Response;
use tower::Layer;

use crate::policies::{PER_KEY, concurrent, in_shadow};
use crate::support::{Inner, Step, answer, field, layer, request, serve};

#[tokio::test(start_paused = true)]
async fn clones_share_one_quota() {
    let service = serve([PER_KEY], Inner::default());
    for taken in 1..=20 {
        // A clone for each request, as servers make one for each connection.
        let response = answer(&service.clone(), request("alice")).await;
        assert_eq!(response.status(), 200);
        assert_eq!(
            field(response.headers(), "ratelimit"),
            format!("\"per_key\";r={};t={}", 20 - taken, (taken + 9) / 10)
        );
    }
    assert_eq!(answer(&service, request("alice")).await.status(), 429);
    assert_eq!(answer(&service, request("bob")).await.status(), 200);
}

#[tokio::test(start_paused = true)]
async fn services_of_one_layer_share_one_quota() {
    let layer = layer([PER_KEY]);
    let (one, other) = (layer.layer(Inner::default()), layer.clone().layer(Inner::default()));
    for _ in 0..10 {
        assert_eq!(answer(&one, request("alice")).await.status(), 200);
        assert_eq!(answer(&other, request("alice")).await.status(), 200);
    }
    assert_eq!(answer(&one, request("alice")).await.status(), 429);
    assert_eq!(answer(&other, request("alice")).await.status(), 429);
}

#[tokio::test(start_paused = true)]
async fn a_rule_in_shadow_changes_no_byte() {
    let inner = || {
        let mut inner = Inner { body: vec![Step::Data("hello"), Step::Data(" world")], ..Inner::default() };
        inner.head.insert("ratelimit", "\"origin\";r=5".parse().unwrap());
        inner
    };
    let without = serve([], inner());
    let with = serve([&in_shadow(PER_KEY), &in_shadow(&concurrent(1))], inner());
    for _ in 0..30 {
        let (plain, shadowed) = (answer(&without, request("a")).await, answer(&with, request("a")).await);
        let parts = |response: &Response<_>| (response.status(), response.headers().clone());
        assert_eq!(parts(&plain), parts(&shadowed));
        assert_eq!(plain.body(), shadowed.body());
        assert_eq!(field(plain.headers(), "ratelimit"), "\"origin\";r=5");
    }
}
