//! Answers that last hold no place for long.

use std::time::{Duration, Instant};

use http::Response;
use http_body_util::{BodyExt, Full};
use tokio::sync::watch;

use super::{Guarded, ONE_AND_A_QUEUE, policy};
use crate::support::{H2Upstream, Latch, Upstream, Wire, full};

/// A place comes back half a second after the head; this is what a busy machine may make of it.
const SOON: Duration = Duration::from_secs(5);

/// More than the buffers on the way can hold.
const LARGE: usize = 32 * 1024 * 1024;

const UPGRADING: &str = "[[route]]\nupgrade = ['websocket']";

/// Answers with a stream that goes on once the latch opens, a large body, another protocol, or shortly.
fn serve(wire: &mut Wire, latch: &Latch) {
    while let Some(request) = wire.request() {
        match request.target() {
            "/stream" => {
                wire.send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n");
                wire.send("Transfer-Encoding: chunked\r\n\r\n9\r\ndata: 1\n\n\r\n");
                latch.wait();
                wire.send("9\r\ndata: 2\n\n\r\n0\r\n\r\n");
            }
            "/large" => {
                wire.send(format!("HTTP/1.1 200 OK\r\nContent-Length: {LARGE}\r\n\r\n"));
                wire.send(vec![b'x'; LARGE]);
            }
            "/chat" => {
                wire.send("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n");
                wire.send("Upgrade: websocket\r\n\r\n");
                while let Some(line) = wire.until(b"\n") {
                    wire.send(line).send("\n");
                }
            }
            _ => {
                wire.send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello");
            }
        }
    }
}

fn start() -> (Guarded, Latch, Upstream) {
    let latch = Latch::default();
    let held = latch.clone();
    let upstream = Upstream::scripted(move |wire| serve(wire, &held));
    (Guarded::before(&upstream, ONE_AND_A_QUEUE, UPGRADING), latch, upstream)
}

/// Asks for something short while the only place may be taken; it has to come back soon.
fn others_are_served_soon(guarded: &Guarded) {
    let begun = Instant::now();
    assert_eq!(guarded.gateway.get("/", &[]).text(), "hello");
    assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
    let orders = guarded.until(|orders| orders["in_flight"] == 0);
    assert_eq!(orders["waiting"], 0);
}

#[test]
fn a_stream_gives_its_place_back_and_goes_on() {
    let (guarded, latch, _upstream) = start();
    let mut stream = guarded.send("/stream", &[]);
    assert_eq!(stream.head().unwrap().get("content-type"), Some("text/event-stream"));
    assert_eq!(stream.chunk().unwrap().unwrap(), b"data: 1\n\n");
    others_are_served_soon(&guarded);
    latch.open();
    assert_eq!(stream.chunk().unwrap().unwrap(), b"data: 2\n\n");
    assert_eq!(stream.chunk(), Some(None), "its end is its own");
    assert_eq!(guarded.orders()["in_flight"], 0, "a place comes back once");
}

#[test]
fn an_answer_that_does_not_end_over_http_2_gives_its_place_back() {
    let (ends, end) = watch::channel(false);
    let streaming = H2Upstream::answering(move |request| {
        if request.head.uri.path() != "/stream" {
            return Response::new(full("hello"));
        }
        let mut end = end.clone();
        let end = async move {
            drop(end.wait_for(|is_over| *is_over).await);
            None
        };
        Response::new(Full::from("begun").with_trailers(end).boxed())
    });
    let other = Upstream::ok();
    let written = policy(&other, ONE_AND_A_QUEUE, "").replace("endpoints", "protocol = 'h2'\nendpoints");
    let guarded = Guarded::start(&written.replace(&other.url(), &streaming.url()));
    let mut stream = guarded.send("/stream", &[]);
    assert!(stream.head().is_some());
    assert_eq!(stream.take(5), b"begun");
    others_are_served_soon(&guarded);
    ends.send(true).unwrap();
    assert_eq!(stream.get("/", &[]).text(), "hello", "and its connection goes on");
}

#[test]
fn a_slow_reader_gives_its_place_back_and_gets_everything() {
    let (guarded, _latch, _upstream) = start();
    let mut slow = guarded.send("/large", &[]);
    assert!(slow.head().is_some());
    others_are_served_soon(&guarded);
    assert!(slow.take(LARGE).iter().all(|byte| *byte == b'x'));
    assert_eq!(guarded.orders()["in_flight"], 0, "a place comes back once");
}

#[test]
fn an_upgraded_connection_holds_no_place() {
    let (guarded, _latch, _upstream) = start();
    let mut chat = guarded.gateway.connect();
    chat.send(
        "GET /chat HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Key: x\r\nSec-WebSocket-Version: 13\r\n\r\n",
    );
    assert_eq!(chat.response().status(), 101);
    others_are_served_soon(&guarded);
    chat.send("still here\n");
    assert_eq!(chat.take(11), b"still here\n");
}

#[test]
fn streams_that_are_abandoned_give_their_places_back_once() {
    let (guarded, latch, _upstream) = start();
    for _ in 0..3 {
        let mut stream = guarded.send("/stream", &[]);
        assert!(stream.head().is_some());
        stream.cut();
        others_are_served_soon(&guarded);
    }
    latch.open();
    others_are_served_soon(&guarded);
}

#[test]
fn many_streams_leave_room_for_each_other() {
    let (guarded, latch, _upstream) = start();
    let mut streams: Vec<_> = (0..4)
        .map(|_| {
            let mut stream = guarded.send("/stream", &[]);
            assert!(stream.head().is_some(), "one after another gets the only place");
            stream
        })
        .collect();
    others_are_served_soon(&guarded);
    latch.open();
    for stream in &mut streams {
        assert!((0..2).all(|_| stream.chunk().unwrap().is_some()));
        assert_eq!(stream.chunk(), Some(None));
    }
}
