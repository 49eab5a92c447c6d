//! Upstreams over real sockets: which connections are used again, and which are not.

use std::net::SocketAddr;

use bytes::Bytes;
use http_body_util::BodyExt;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::body::nothing;
use super::*;
use tidegate_core::WallTime;
use tidegate_policy::Now;
use tidegate_tower::SystemClock;

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello";

/// A service that speaks for itself, and an upstream that knows its address.
async fn upstream() -> (TcpListener, Upstream) {
    let listener = TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let SocketAddr::V4(address) = listener.local_addr().unwrap() else { panic!("an IPv4 address") };
    let endpoint = policy::Endpoint::new(false, &address.ip().to_string(), Some(address.port()));
    let spec = policy::Upstream { max_connections: 2, ..policy::Upstream::new("a", vec![endpoint]) };
    let bulkhead = Bulkhead::new(&spec, 7, Arc::new(SystemClock::new())).unwrap();
    (listener, Upstream::new(&Arc::new(spec), bulkhead, 1, &Connector::new(false)))
}

/// What a worker's time would be.
fn ticks(millis: u64) -> Arc<Ticks> {
    let at = |nanos| Now { moment: Moment::from_nanos(nanos), wall: WallTime::from_unix_nanos(nanos) };
    let ticks = Ticks::new(at(0));
    ticks.renew(at(millis * 1_000_000));
    Arc::new(ticks)
}

fn calling(ticks: &Arc<Ticks>) -> Call<'_> {
    Call { worker: 0, ticks, client: ClientShare::FREE, upload: None, place: None }
}

fn request(method: Method) -> Request<RequestBody> {
    let mut request = Request::new(nothing());
    *request.method_mut() = method;
    request
}

async fn ask(upstream: &Upstream, method: Method) -> Result<Bytes, CallFailure> {
    let response =
        upstream.call(calling(&ticks(0)), request(method), &mut Called::default(), || false).await?;
    Ok(response.into_body().collect().await.unwrap().to_bytes())
}

/// Reads a request's head and answers.
async fn serve(stream: &mut TcpStream, answer: &[u8]) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    stream.write_all(answer).await.unwrap();
}

/// How many connections are there.
fn open(upstream: &Upstream) -> usize {
    upstream.endpoints[0].counts().0
}

/// Looks after the connections until so many are left.
async fn left(upstream: &Upstream, count: usize) {
    while open(upstream) != count {
        tokio::task::yield_now().await;
        upstream.look_after(0, &ticks(0), Moment::ORIGIN);
    }
}

#[tokio::test]
async fn a_connection_is_used_again() {
    let (listener, upstream) = upstream().await;
    let serving = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        for _ in 0..3 {
            serve(&mut stream, ANSWER).await;
        }
        stream
    };
    let asking = async {
        for _ in 0..3 {
            assert_eq!(ask(&upstream, Method::GET).await.unwrap(), "hello");
        }
    };
    let (stream, ()) = tokio::join!(serving, asking);
    assert_eq!(upstream.endpoints[0].counts(), (1, 0));
    drop(stream);
    left(&upstream, 0).await;
}

#[tokio::test]
async fn what_comes_unasked_is_never_an_answer() {
    for late in [false, true] {
        let (listener, upstream) = upstream().await;
        let serving = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            let poison = b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\npoison";
            if late {
                serve(&mut stream, ANSWER).await;
                stream.write_all(poison).await.unwrap();
            } else {
                serve(&mut stream, &[ANSWER, poison].concat()).await;
            }
            let (mut next, _) = listener.accept().await.unwrap();
            serve(&mut next, ANSWER).await;
        };
        let asking = async {
            assert_eq!(ask(&upstream, Method::GET).await.unwrap(), "hello");
            left(&upstream, 0).await;
            assert_eq!(ask(&upstream, Method::GET).await.unwrap(), "hello");
        };
        tokio::join!(serving, asking);
    }
}

#[tokio::test]
async fn what_may_be_sent_twice_is_sent_over_another_connection() {
    for (method, is_answered) in [(Method::GET, true), (Method::POST, false)] {
        let (listener, upstream) = upstream().await;
        let serving = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            serve(&mut stream, ANSWER).await;
            // The second request is taken, and never answered.
            serve(&mut stream, b"").await;
            drop(stream);
            if is_answered {
                let (mut next, _) = listener.accept().await.unwrap();
                serve(&mut next, ANSWER).await;
            }
        };
        let asking = async {
            assert_eq!(ask(&upstream, method.clone()).await.unwrap(), "hello");
            let again = ask(&upstream, method.clone()).await;
            assert_eq!(again.is_ok(), is_answered, "{method}: {again:?}");
        };
        tokio::join!(serving, asking);
    }
}

#[tokio::test]
async fn a_request_that_is_dropped_closes_its_connection() {
    let (listener, upstream) = upstream().await;
    let ticks = ticks(0);
    let mut called = Called::default();
    let call = upstream.call(calling(&ticks), request(Method::GET), &mut called, || false);
    let serving = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        serve(&mut stream, b"HTTP/1.1").await;
        stream
    };
    let mut stream = tokio::select! {
        stream = serving => stream,
        _ = call => panic!("nobody has answered"),
    };
    assert_eq!(upstream.endpoints[0].counts(), (0, 0));
    assert_eq!(stream.read(&mut [0]).await.unwrap_or_default(), 0);
}

#[tokio::test]
async fn an_answer_that_is_dropped_closes_its_connection() {
    let (listener, upstream) = upstream().await;
    let serving = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        serve(&mut stream, b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhello").await;
        stream
    };
    let ticks = ticks(0);
    let mut called = Called::default();
    let asking = upstream.call(calling(&ticks), request(Method::GET), &mut called, || false);
    let (answered, _stream) = tokio::join!(asking, serving);
    assert_eq!(upstream.endpoints[0].counts(), (1, 1));
    drop(answered);
    assert_eq!(upstream.endpoints[0].counts(), (0, 0));
}

#[tokio::test]
async fn what_is_idle_for_too_long_is_closed() {
    let (listener, upstream) = upstream().await;
    let serving = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        serve(&mut stream, ANSWER).await;
        stream
    };
    let (mut stream, answer) = tokio::join!(serving, ask(&upstream, Method::GET));
    assert_eq!(answer.unwrap(), "hello");
    upstream.look_after(0, &ticks(1_000), Moment::ORIGIN);
    upstream.look_after(0, &ticks(61_000), Moment::ORIGIN);
    assert_eq!(open(&upstream), 1, "it was first seen idle a minute ago");
    upstream.look_after(0, &ticks(61_001), Moment::ORIGIN);
    assert_eq!(open(&upstream), 0);
    assert_eq!(stream.read(&mut [0]).await.unwrap(), 0);
}

#[tokio::test]
async fn an_upstream_that_is_gone_leaves_no_connection() {
    let (listener, upstream) = upstream().await;
    let serving = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        serve(&mut stream, ANSWER).await;
        stream
    };
    let (mut stream, answer) = tokio::join!(serving, ask(&upstream, Method::GET));
    assert_eq!(answer.unwrap(), "hello");
    drop(upstream);
    assert_eq!(stream.read(&mut [0]).await.unwrap(), 0);
}
