//! The end of a gateway that is busy.

use std::net::TcpStream;
use std::time::{Duration, Instant};

use crate::frames::{END_HEADERS, END_STREAM, GOAWAY, HEADERS, Peer, frame, get};
use crate::gateway::support::{
    Answer, Client, Gateway, H2Client, Latch, Signal, Upstream, full, request, until,
};

const IN_FLIGHT: usize = 50;

/// Answers everything but `/` only when the latch is open.
fn holding(latch: &Latch) -> Upstream {
    let latch = latch.clone();
    Upstream::answering(move |request| {
        if request.target() != "/" {
            latch.wait();
        }
        Answer::text("done")
    })
}

fn until_refused(gateway: &Gateway) {
    until(|| TcpStream::connect(gateway.address()).is_err());
}

#[test]
fn sigterm_loses_none_of_fifty_requests_in_flight() {
    let latch = Latch::default();
    let upstream = holding(&latch);
    let mut gateway = Gateway::before(&upstream, "");
    let mut kept = gateway.connect();
    assert_eq!(kept.get("/", &[]).status(), 200);
    let mut clients: Vec<Client> = (0..IN_FLIGHT / 2).map(|_| gateway.connect()).collect();
    for client in &mut clients {
        client.send(request("GET", "/held", &[], ""));
    }
    let streams = H2Client::connect(gateway.address());
    let over_h2: Vec<_> = (1..IN_FLIGHT / 2)
        .map(|_| {
            let mut sender = streams.sender();
            streams.runtime().spawn(async move {
                sender.ready().await.unwrap();
                let request = http::Request::get("http://service.test/held").body(full("")).unwrap();
                let answer = sender.send_request(request).await.unwrap();
                http_body_util::BodyExt::collect(answer.into_body()).await.unwrap().to_bytes()
            })
        })
        .collect();
    let mut peer = Peer::connect(gateway.address(), &[]);
    peer.send(&frame(HEADERS, END_HEADERS | END_STREAM, 1, &get("/held")));
    // The first one was answered before.
    upstream.wait_for(IN_FLIGHT + 1);

    gateway.signal(Signal::TERM);
    until_refused(&gateway);
    assert!(kept.is_closed(), "a connection without a request ends at once");
    // Frames up to GOAWAY; before the latch is open they cannot be those of the answer.
    while let Some((kind, _, _)) = peer.next() {
        assert_ne!(kind, HEADERS);
        if kind == GOAWAY {
            break;
        }
    }
    latch.open();
    for client in &mut clients {
        let answer = client.response();
        assert_eq!((answer.status(), answer.text()), (200, "done"));
        assert_eq!(answer.get("connection"), Some("close"));
        assert!(client.is_closed());
    }
    for answer in over_h2 {
        assert_eq!(streams.runtime().block_on(answer).unwrap(), "done");
    }
    assert_eq!(peer.answer(1).as_deref(), Some(&b"done"[..]));
    assert_eq!(gateway.wait().code(), Some(0));
    assert_eq!(upstream.requests().len(), IN_FLIGHT + 1, "nothing was sent on twice");
}

#[test]
fn what_hangs_is_cut_when_the_time_is_over() {
    let latch = Latch::default();
    let upstream = holding(&latch);
    let mut gateway = Gateway::before(&upstream, "server.drain = \"300ms\"\n");
    let mut client = gateway.connect();
    client.send(request("GET", "/held", &[], ""));
    upstream.wait_for(1);
    let begun = Instant::now();
    gateway.signal(Signal::TERM);
    assert!(client.is_closed(), "without an answer");
    assert!(begun.elapsed() >= Duration::from_millis(300), "only after {:?}", begun.elapsed());
    assert_eq!(gateway.wait().code(), Some(0));
    latch.open();
}
