//! What stands on the wire in HTTP/1.1.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::{axum_app, hyper_server, layer, listen};

/// One request on a connection of its own: the whole answer with its fields in order of names, but for what
/// the server adds by itself and the decision's number.
async fn get(address: SocketAddr, key: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request =
        format!("GET / HTTP/1.1\r\nhost: localhost\r\nx-api-key: {key}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let (status, fields) = head.split_once("\r\n").unwrap();
    assert!(fields.contains(&format!("content-length: {}", body.len())));
    let added = ["content-length: ", "connection: ", "date: "];
    let mut fields: Vec<_> =
        fields.split("\r\n").filter(|field| !added.iter().any(|name| field.starts_with(name))).collect();
    fields.sort_unstable();
    let body = body.split_once("decision:").map_or(body, |(before, _)| before);
    format!("{status}\n{}\n\n{body}", fields.join("\n"))
}

const REFUSED: &str = r#"HTTP/1.1 429 Too Many Requests
cache-control: no-store
content-type: application/problem+json
proxy-status: tidegate;error=http_request_denied;details="rule=per_key"
ratelimit-policy: "per_key";q=20;w=2
ratelimit: "per_key";r=0;t=1
retry-after: 1
x-envoy-ratelimited: true

{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","title":"Quota exceeded","status":429,"detail":"10 requests per second, burst 20, for this API key","violated-policies":["per_key"],"quota":[{"rule":"per_key","limit":20,"used":20,"window_seconds":2,"retry_after":0.1}],"instance":"urn:tidegate:"#;

async fn passes_then_refuses(address: SocketAddr, admitted: impl Fn(u32) -> String) {
    for left in (0..20).rev() {
        assert_eq!(get(address, "alice").await, admitted(left));
    }
    assert_eq!(get(address, "alice").await, REFUSED);
    assert_eq!(get(address, "bob").await, admitted(19));
}

#[tokio::test]
async fn an_axum_app_is_protected() {
    let (listener, address) = listen().await;
    tokio::spawn(async { axum::serve(listener, axum_app::app(layer())).await });
    passes_then_refuses(address, |left| {
        format!(
            r#"HTTP/1.1 200 OK
content-type: text/plain; charset=utf-8
ratelimit-policy: "per_key";q=20;w=2
ratelimit: "per_key";r={left};t={}

hello"#,
            (20 - left).div_ceil(10)
        )
    })
    .await;
}

#[tokio::test]
async fn a_hyper_server_is_protected() {
    let (listener, address) = listen().await;
    tokio::spawn(hyper_server::serve(listener, layer()));
    passes_then_refuses(address, |left| {
        format!(
            r#"HTTP/1.1 200 OK
ratelimit-policy: "per_key";q=20;w=2
ratelimit: "per_key";r={left};t={}

hello"#,
            (20 - left).div_ceil(10)
        )
    })
    .await;
}
