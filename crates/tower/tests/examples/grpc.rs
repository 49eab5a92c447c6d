//! What gRPC callers see: a client library, and the frames below it.

use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http_body::Body;
use http_body_util::Empty;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;
use tonic::Code;
use tonic::transport::Endpoint;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;
use tonic_types::StatusExt;

use crate::{layer, listen, tonic_service};

#[tokio::test]
async fn a_tonic_service_is_protected() {
    let (listener, address) = listen().await;
    tokio::spawn(tonic_service::serve(listener, layer()));
    let channel = Endpoint::try_from(format!("http://{address}")).unwrap().connect().await.unwrap();
    let mut client = HealthClient::with_interceptor(channel, |mut request: tonic::Request<()>| {
        request.metadata_mut().insert("x-api-key", "alice".parse().unwrap());
        Ok(request)
    });
    for left in (0..20).rev() {
        let answer = client.check(HealthCheckRequest::default()).await.unwrap();
        let expected = format!("\"per_key\";r={left};t={}", (20_u32 - left).div_ceil(10));
        assert_eq!(answer.metadata().get("ratelimit").unwrap(), expected.as_str());
        assert_eq!(answer.into_inner().status, 1, "serving");
    }
    let refused = client.check(HealthCheckRequest::default()).await.unwrap_err();
    assert_eq!(refused.code(), Code::ResourceExhausted);
    assert_eq!(refused.message(), "10 requests per second, burst 20, for this API key");
    for (name, value) in [
        ("grpc-retry-pushback-ms", "100"),
        ("ratelimit-policy", "\"per_key\";q=20;w=2"),
        ("ratelimit", "\"per_key\";r=0;t=1"),
        ("x-envoy-ratelimited", "true"),
        ("cache-control", "no-store"),
    ] {
        assert_eq!(refused.metadata().get(name).unwrap(), value);
    }
    // As the library reads the structured form.
    let details = refused.get_error_details();
    assert_eq!(details.retry_info().unwrap().retry_delay, Some(Duration::from_millis(100)));
    let violations = &details.quota_failure().unwrap().violations;
    assert_eq!(violations.len(), 1);
    assert_eq!(violations[0].subject, "per_key");
    assert_eq!(violations[0].description, "10 requests per second, burst 20, for this API key");
}

#[tokio::test]
async fn a_refusal_is_one_frame_that_ends_the_stream() {
    let (listener, address) = listen().await;
    tokio::spawn(tonic_service::serve(listener, layer()));
    let stream = TokioIo::new(TcpStream::connect(address).await.unwrap());
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), stream).await.unwrap();
    tokio::spawn(connection);
    let mut last = None;
    for _ in 0..21 {
        let request = Request::post(format!("http://{address}/grpc.health.v1.Health/Check"))
            .header("content-type", "application/grpc")
            .header("x-api-key", "alice")
            .body(Empty::<Bytes>::new())
            .unwrap();
        sender.ready().await.unwrap();
        last = Some(sender.send_request(request).await.unwrap());
    }
    let refused = last.unwrap();
    assert_eq!(refused.status(), 200);
    let mut fields: Vec<_> = refused.headers().iter().collect();
    fields.sort_unstable_by_key(|(name, _)| name.as_str());
    let fields: Vec<_> = fields
        .iter()
        .map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()))
        .filter(|field| !field.starts_with("date: "))
        .collect();
    assert_eq!(
        fields.join("\n"),
        r#"cache-control: no-store
content-type: application/grpc
grpc-message: 10 requests per second, burst 20, for this API key
grpc-retry-pushback-ms: 100
grpc-status: 8
grpc-status-details-bin: CAgSMjEwIHJlcXVlc3RzIHBlciBzZWNvbmQsIGJ1cnN0IDIwLCBmb3IgdGhpcyBBUEkga2V5Gm4KK3R5cGUuZ29vZ2xlYXBpcy5jb20vZ29vZ2xlLnJwYy5RdW90YUZhaWx1cmUSPwo9CgdwZXJfa2V5EjIxMCByZXF1ZXN0cyBwZXIgc2Vjb25kLCBidXJzdCAyMCwgZm9yIHRoaXMgQVBJIGtleRozCih0eXBlLmdvb2dsZWFwaXMuY29tL2dvb2dsZS5ycGMuUmV0cnlJbmZvEgcKBRCAwtcv
ratelimit: "per_key";r=0;t=1
ratelimit-policy: "per_key";q=20;w=2
x-envoy-ratelimited: true"#
    );
    assert!(refused.body().is_end_stream());
}
