//! Clones share the gate, and a rule in shadow leaves no byte.

use std::sync::Arc;
use std::time::Duration;

use http::Response;
use tidegate_core::Moment;
use tidegate_policy::policy::Mode;
use tidegate_policy::{Gate, Now};
use tidegate_tower::GateLayer;
use tower::{Layer, ServiceExt};

use crate::policies::{PER_KEY, busy, concurrent, in_shadow, policy, protected, reserve, shed};
use crate::support::{Inner, Step, TokioClock, answer, field, layer, request, serve};

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

#[tokio::test(start_paused = true)]
async fn nor_does_one_that_would_protect_the_service() {
    let inner = || Inner { body: vec![Step::Data("hello")], ..Inner::default() };
    let plain = policy([PER_KEY, &concurrent(15)]);
    let shadowed = protected(plain.clone(), "fleet", reserve(), Mode::Shadow);
    let shadowed = protected(shadowed, "worker", shed(), Mode::Shadow);
    let layers = [plain, shadowed].map(|policy| {
        let gate = Gate::new(policy, 1, Now::default()).unwrap();
        GateLayer::new(Arc::new(gate)).clock(TokioClock::new())
    });
    for half in 0..20 {
        let moment = Moment::ORIGIN.plus(half * Duration::from_millis(500));
        layers[1].gate().steer(Now { moment, ..Now::default() }, &busy());
    }
    let services = layers.each_ref().map(|layer| layer.layer(inner()));
    // Bodies that are not read hold their places.
    let mut held = Vec::new();
    for _ in 0..30 {
        let mut answers = Vec::new();
        for service in &services {
            let (head, body) = service.clone().oneshot(request("a")).await.unwrap().into_parts();
            answers.push((head.status, head.headers));
            held.push(body);
        }
        assert_eq!(answers[0], answers[1]);
    }
    let refused =
        layers[1].gate().statistics(Now::default()).rules.iter().map(|rule| rule.shadow_refused).sum::<u64>();
    assert!(refused > 15, "{refused}");
}
