//! Callers that go away in the middle of an answer.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body, Frame};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use tidegate_policy::{Now, Source, read};
use tidegate_tower::GateLayer;
use tidegate_tower::body::CountedBody;
use tidegate_tower::clock::ToldClock;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tower::{Layer, service_fn};

use crate::listen;

/// A body that begins and never ends.
struct Endless(bool);

impl Body for Endless {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if std::mem::replace(&mut self.0, true) {
            return Poll::Pending;
        }
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(b"begun")))))
    }
}

async fn endless(_: Request<CountedBody<Incoming>>) -> Result<Response<Endless>, Infallible> {
    Ok(Response::new(Endless(false)))
}

/// Asks, and reads the answer's beginning.
async fn ask(address: std::net::SocketAddr) -> (TcpStream, String) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    let mut answer = Vec::new();
    while !answer.windows(5).any(|text| text == b"begun" || text == b"limit") {
        assert_ne!(stream.read_buf(&mut answer).await.unwrap(), 0);
    }
    (stream, String::from_utf8(answer).unwrap())
}

#[tokio::test]
async fn places_are_exact_after_a_thousand_aborts() {
    let text = b"[rule.concurrent]\nkind = \"concurrency\"\nkey = \"global\"\nlimit = 3\n";
    let (policy, _warnings) = read(Source::named("policy.toml", text), None).unwrap();
    let layer = GateLayer::for_policy(policy, ToldClock::default()).unwrap();
    let gate = layer.gate().clone();
    let (listener, address) = listen().await;
    tokio::spawn(async move {
        let service = layer.layer(service_fn(endless));
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let service = TowerToHyperService::new(service.clone());
            tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
        }
    });

    for round in 1..=1_000 {
        let (stream, answer) = ask(address).await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{round}: {answer}");
        drop(stream);
        // The server hears of it by itself; nothing here says when.
        while gate.statistics(Now::default()).ended[3] < round {
            tokio::task::yield_now().await;
        }
    }
    let held = [ask(address).await, ask(address).await, ask(address).await];
    assert!(held.iter().all(|(_, answer)| answer.starts_with("HTTP/1.1 200")));
    assert!(ask(address).await.1.starts_with("HTTP/1.1 429"));
}
