//! Callers who keep the connections to a service waiting, and what is left for the others.

use std::convert::Infallible;
use std::net::Ipv4Addr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::BodyExt;
use hyper::body::{Body, Frame};
use tokio::task::JoinHandle;

use crate::support::{self, Client, Gateway, H2Client, Latch, Upstream, full, request};

/// Larger than what is waited for before a place is asked for.
const UPLOAD: &str = "POST /upload HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n";

/// Longer than any answer takes here.
const SOON: Duration = Duration::from_millis(500);

const fn address(last: u8) -> Ipv4Addr {
    Ipv4Addr::new(127, 0, 0, last)
}

fn h2_from(from: Ipv4Addr, gateway: &Gateway) -> H2Client {
    let runtime = support::runtime();
    let to = gateway.address();
    let stream = runtime.block_on(async {
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.bind((from, 0).into()).unwrap();
        socket.connect(to).await.unwrap()
    });
    H2Client::over(runtime, stream)
}

/// A body that begins, if it has a piece, and then does not go on.
struct Stalled(Option<Bytes>);

impl Body for Stalled {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.take().map_or(Poll::Pending, |piece| Poll::Ready(Some(Ok(Frame::data(piece)))))
    }
}

type Answer = JoinHandle<Result<Response<hyper::body::Incoming>, hyper::Error>>;

/// Begins some uploads that stall, over HTTP/2.
fn stall(client: &H2Client, count: usize, piece: Option<&'static [u8]>) -> Vec<Answer> {
    let one = |_| {
        let body = Stalled(piece.map(Bytes::from_static)).boxed();
        let request =
            Request::post("http://a/upload").header("content-length", 1_000_000).body(body).unwrap();
        let mut sender = client.sender();
        client.runtime().spawn(async move { sender.send_request(request).await })
    };
    (0..count).map(one).collect()
}

/// Begins an upload that stalls, over HTTP/1.1.
fn stall_http1(gateway: &Gateway, from: Ipv4Addr, piece: &str) -> Client {
    let mut client = gateway.connect_from(from);
    client.send(format!("{UPLOAD}{piece}"));
    client
}

/// Some requests in a row, each answered soon.
#[track_caller]
fn is_served(gateway: &Gateway, from: Ipv4Addr, count: usize) {
    let mut client = gateway.connect_from(from);
    for number in 0..count {
        let begun = Instant::now();
        assert_eq!(client.get("/", &[]).status(), 200, "request {number}");
        assert!(begun.elapsed() < SOON, "request {number} took {:?}", begun.elapsed());
    }
}

fn start(upstream: &Upstream, keys: &str) -> Gateway {
    Gateway::start(&format!(
        "listen = '127.0.0.1:0'\n[upstream.service]\nendpoints = ['{}']\n{keys}",
        upstream.url()
    ))
}

/// Answers requests with hello.
fn upstream() -> Upstream {
    upstream_telling(&Latch::default())
}

/// The same, and `/large` with more than sockets hold; tells when such an answer is cut off.
fn upstream_telling(cut: &Latch) -> Upstream {
    let cut = cut.clone();
    Upstream::scripted(move |wire| {
        while let Some(request) = wire.request() {
            if request.target() != "/large" {
                wire.send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello");
                continue;
            }
            wire.send("HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n");
            while wire.try_send([b'x'; 64 * 1024]).is_ok() {}
            cut.open();
            return;
        }
    })
}

#[test]
fn an_upload_of_which_nothing_has_come_takes_no_connection() {
    let upstream = upstream();
    let gateway = start(&upstream, "");
    let client = h2_from(address(2), &gateway);
    let _streams = stall(&client, 20, None);
    let _connections: Vec<Client> = (0..20).map(|_| stall_http1(&gateway, address(2), "")).collect();
    // Behind the streams on the same connection.
    assert_eq!(client.get("http://a/", &[]).body, "hello");
    is_served(&gateway, address(3), 20);
    assert!(upstream.connections() <= 2, "{} connections", upstream.connections());
}

#[test]
fn an_upload_that_begins_late_comes_whole() {
    let upstream = Upstream::ok();
    let gateway = start(&upstream, "");
    let mut client = stall_http1(&gateway, address(2), "");
    is_served(&gateway, address(3), 1);
    let body = "x".repeat(1_000_000);
    client.send(&body);
    assert_eq!(client.response().status(), 200);
    let uploaded = upstream.requests().into_iter().find(|request| request.target() == "/upload").unwrap();
    assert_eq!((uploaded.get("content-length"), uploaded.body.len()), (Some("1000000"), 1_000_000));
}

#[test]
fn an_address_leaves_connections_to_others_however_many_uploads_it_begins() {
    let upstream = upstream();
    let gateway = start(&upstream, "max_connections = 10");
    let clients = [h2_from(address(2), &gateway), h2_from(address(2), &gateway)];
    let _uploads: Vec<_> = clients.iter().flat_map(|client| stall(client, 40, Some(b"x"))).collect();
    support::until(|| upstream.connections() >= 5);
    is_served(&gateway, address(3), 100);
    assert!(upstream.most_open() <= 7, "{} connections", upstream.most_open());
}

#[test]
fn so_it_does_over_many_connections_of_http_1() {
    let upstream = upstream();
    let gateway = start(&upstream, "max_connections = 10");
    let _uploads: Vec<Client> = (0..80).map(|_| stall_http1(&gateway, address(2), "x")).collect();
    support::until(|| upstream.connections() >= 5);
    is_served(&gateway, address(3), 100);
}

#[test]
fn and_with_answers_that_it_does_not_read() {
    let upstream = upstream();
    let gateway = start(&upstream, "max_connections = 10");
    let ask = |_| {
        let mut client = gateway.connect_from(address(2));
        client.send(request("GET", "/large", &[], ""));
        client
    };
    let _readers: Vec<Client> = (0..80).map(ask).collect();
    let client = h2_from(address(2), &gateway);
    let ask = |_| {
        let mut sender = client.sender();
        let request = Request::get("http://a/large").body(full("")).unwrap();
        client.runtime().spawn(async move { sender.send_request(request).await })
    };
    let _streams: Vec<Answer> = (0..80).map(ask).collect();
    support::until(|| upstream.connections() >= 5);
    is_served(&gateway, address(3), 100);
}

#[test]
fn the_most_stalled_upload_is_ended_for_others_who_find_no_connection() {
    let upstream = upstream();
    let gateway = start(&upstream, "max_connections = 2\nconnect_timeout = '10s'");
    let clients = [2, 3].map(|last| h2_from(address(last), &gateway));
    let [mut one, mut other] = clients.each_ref().map(|client| stall(client, 1, Some(b"x")).remove(0));
    support::until(|| upstream.connections() == 2);
    assert_eq!(gateway.connect_from(address(4)).get("/", &[]).status(), 200);
    let ended = clients[0].runtime().block_on(async {
        tokio::select! {
            answered = &mut one => answered,
            answered = &mut other => answered,
        }
    });
    assert_eq!(ended.unwrap().unwrap().status(), 408);
    assert_eq!(usize::from(one.is_finished()) + usize::from(other.is_finished()), 1, "one was enough");
}

#[test]
fn so_it_is_over_http_1() {
    let upstream = upstream();
    let gateway = start(&upstream, "max_connections = 1\nconnect_timeout = '10s'");
    let mut stalled = stall_http1(&gateway, address(2), "x");
    support::until(|| upstream.connections() == 1);
    assert_eq!(gateway.connect_from(address(4)).get("/", &[]).status(), 200);
    assert_eq!(stalled.response().status(), 408);
}

#[test]
fn the_most_stalled_reader_is_cut_off_for_others_who_find_no_connection() {
    let cut = Latch::default();
    let upstream = upstream_telling(&cut);
    let gateway = start(&upstream, "max_connections = 2\nconnect_timeout = '10s'");
    let _readers: Vec<Client> = [2, 3]
        .into_iter()
        .map(|last| {
            let mut client = gateway.connect_from(address(last));
            client.send(request("GET", "/large", &[], ""));
            assert!(client.head().is_some());
            client
        })
        .collect();
    let mut others = gateway.connect_from(address(4));
    for _ in 0..20 {
        assert_eq!(others.get("/", &[]).status(), 200);
    }
    cut.wait();
}

#[test]
fn callers_of_one_address_get_connections_from_each_other() {
    let upstream = upstream();
    let gateway = start(&upstream, "max_connections = 4\nconnect_timeout = '10s'");
    let client = h2_from(address(2), &gateway);
    let _uploads = stall(&client, 2, Some(b"x"));
    support::until(|| upstream.connections() == 2);
    assert_eq!(gateway.connect_from(address(2)).get("/", &[]).status(), 200);
}
