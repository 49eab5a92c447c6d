//! Refusals, byte for byte.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Response};
use tidegate_core::Cost;
use tidegate_policy::policy::{Rule, RuleCost};
use tidegate_tower::GateLayer;
use tower::{Layer, ServiceExt};

use crate::policies::{self, PER_KEY, PER_PATH, concurrent};
use crate::support::{Inner, Step, TokioClock, answer, field, request, serve};

/// The head as it would be written, in the order of names.
fn head(response: &Response<Bytes>) -> String {
    let mut lines: Vec<_> = response
        .headers()
        .iter()
        .map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()))
        .collect();
    lines.sort();
    format!("{}\n{}", response.status().as_u16(), lines.join("\n"))
}

fn json(response: &Response<Bytes>) -> serde_json::Value {
    serde_json::from_slice(response.body()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_spent_quota_is_429_with_everything_a_caller_needs() {
    let service = serve([PER_KEY], Inner::default());
    for _ in 0..20 {
        assert_eq!(answer(&service, request("alice")).await.status(), 200);
    }
    let refused = answer(&service, request("alice")).await;
    assert_eq!(
        head(&refused),
        r#"429
cache-control: no-store
content-type: application/problem+json
proxy-status: tidegate;error=http_request_denied;details="rule=per_key"
ratelimit-policy: "per_key";q=20;w=2
ratelimit: "per_key";r=0;t=1
retry-after: 1
x-envoy-ratelimited: true"#
    );
    let text = String::from_utf8(refused.body().to_vec()).unwrap();
    let (problem, id) = text.rsplit_once("urn:tidegate:decision:").unwrap();
    assert_eq!(
        problem,
        r#"{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","title":"Quota exceeded","status":429,"detail":"10 requests per second, burst 20, for this API key","violated-policies":["per_key"],"quota":[{"rule":"per_key","limit":20,"used":20,"window_seconds":2,"retry_after":0.1}],"instance":""#
    );
    assert!(id.len() == 16 + 3 && id.ends_with("\"}\n"), "{id:?}");
}

#[tokio::test(start_paused = true)]
async fn waiting_as_told_is_enough() {
    let service = serve([PER_KEY], Inner::default());
    for _ in 0..20 {
        answer(&service, request("alice")).await;
    }
    tokio::time::advance(std::time::Duration::from_millis(7)).await;
    let refused = answer(&service, request("alice")).await;
    assert_eq!(json(&refused)["quota"][0]["retry_after"], 0.093);
    tokio::time::advance(std::time::Duration::from_millis(93)).await;
    assert_eq!(answer(&service, request("alice")).await.status(), 200);
}

#[tokio::test(start_paused = true)]
async fn too_many_in_flight_is_429_without_a_window() {
    let body = vec![Step::Data("a")];
    let service = serve([PER_KEY, &concurrent(1)], Inner { body, ..Inner::default() });
    let streaming = service.clone().oneshot(request("alice")).await.unwrap();
    assert_eq!(
        field(streaming.headers(), "ratelimit-policy"),
        r#""per_key";q=20;w=2, "concurrent";q=1;qu="concurrent-requests""#
    );
    assert_eq!(field(streaming.headers(), "ratelimit"), r#""per_key";r=19;t=1, "concurrent";r=0"#);
    let refused = answer(&service, request("bob")).await;
    assert_eq!(
        head(&refused),
        r#"429
cache-control: no-store
content-type: application/problem+json
proxy-status: tidegate;error=connection_limit_reached;details="rule=concurrent"
ratelimit-policy: "per_key";q=20;w=2, "concurrent";q=1;qu="concurrent-requests"
ratelimit: "per_key";r=20;t=1, "concurrent";r=0;t=1
retry-after: 1
x-envoy-ratelimited: true"#
    );
    let problem = json(&refused);
    assert_eq!(problem["detail"], "1 request at once, for all callers together");
    assert_eq!(problem["violated-policies"], serde_json::json!(["concurrent"]));
    assert_eq!(
        problem["quota"],
        serde_json::json!([{ "rule": "concurrent", "limit": 1, "used": 1, "retry_after": 1 }])
    );
}

#[tokio::test(start_paused = true)]
async fn a_request_that_can_never_pass_is_told_so() {
    // No file can say so, but a rule can be made so.
    let mut policy = policies::policy([PER_KEY]);
    let cost = Some(RuleCost { estimate: Cost::of(21), settle: None, abandoned: None });
    policy.rules[0] = Arc::new(Rule { cost, ..Rule::clone(&policy.rules[0]) });
    let service = GateLayer::for_policy(policy, TokioClock::new()).unwrap().layer(Inner::default());
    let refused = answer(&service, request("alice")).await;
    assert_eq!(
        (refused.status().as_u16(), field(refused.headers(), "tidegate-retry")),
        (429, "never".into())
    );
    assert!(!refused.headers().contains_key("retry-after"));
    assert!(json(&refused)["quota"][0].get("retry_after").is_none());
}

#[tokio::test(start_paused = true)]
async fn a_key_that_is_sent_twice_is_400() {
    let inner = Inner::default();
    let service = serve([PER_KEY], inner.clone());
    let mut twice = request("alice");
    twice.headers_mut().append("x-api-key", "bob".parse().unwrap());
    let refused = answer(&service, twice).await;
    assert_eq!(
        head(&refused),
        r#"400
cache-control: no-store
content-type: application/problem+json
proxy-status: tidegate;error=http_request_error;details="rule=per_key"
tidegate-retry: never"#
    );
    let problem = json(&refused);
    assert_eq!(problem["type"], "about:blank");
    assert_eq!(problem["detail"], "the header field x-api-key may be sent only once");
    assert_eq!(inner.calls(), 0);
}

#[tokio::test(start_paused = true)]
async fn grpc_is_refused_in_its_own_terms() {
    let service = serve([PER_KEY], Inner::default());
    let grpc = |content_type: &str| {
        let mut request = request("alice");
        request.headers_mut().insert("content-type", content_type.parse().unwrap());
        request
    };
    for _ in 0..20 {
        answer(&service, grpc("application/grpc+proto")).await;
    }
    let refused = answer(&service, grpc("application/grpc")).await;
    let details = field(refused.headers(), "grpc-status-details-bin");
    let expected = format!(
        r#"200
cache-control: no-store
content-type: application/grpc
grpc-message: 10 requests per second, burst 20, for this API key
grpc-retry-pushback-ms: 100
grpc-status-details-bin: {details}
grpc-status: 8
ratelimit-policy: "per_key";q=20;w=2
ratelimit: "per_key";r=0;t=1
x-envoy-ratelimited: true"#
    );
    assert_eq!(head(&refused), expected);
    assert!(refused.body().is_empty());
    let web = answer(&service, grpc("application/grpc-web+proto")).await;
    assert_eq!(field(web.headers(), "content-type"), "application/grpc-web");

    let mut twice = grpc("application/grpc");
    twice.headers_mut().append("x-api-key", "bob".parse().unwrap());
    let unclear = answer(&service, twice).await;
    let fields: HeaderMap = unclear.headers().clone();
    assert_eq!(
        (field(&fields, "grpc-status"), field(&fields, "grpc-retry-pushback-ms")),
        ("3".into(), "-1".into())
    );
}

#[tokio::test(start_paused = true)]
async fn an_escaped_slash_passes_unless_a_rule_looks_at_paths() {
    let escaped = || {
        let mut request = request("alice");
        *request.uri_mut() = "/a%2Fb".parse().unwrap();
        request
    };
    let by_key = serve([PER_KEY], Inner::default());
    assert_eq!(answer(&by_key, escaped()).await.status(), 200);
    // A route for everything does not look either.
    let everything = "[[route]]\nname = \"all\"\nmatch = { path = \"/**\" }\nrules = [\"per_key\"]\n";
    let by_key = serve([PER_KEY, everything], Inner::default());
    assert_eq!(answer(&by_key, escaped()).await.status(), 200);
    let by_path = serve([PER_PATH], Inner::default());
    let refused = answer(&by_path, escaped()).await;
    assert_eq!(refused.status(), 400);
    assert_eq!(json(&refused)["detail"], "the path has an escaped slash, backslash or NUL");
}
