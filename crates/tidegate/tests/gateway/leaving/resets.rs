//! Connections of HTTP/2 that reset what they ask for.

use crate::frames::{END_HEADERS, END_STREAM, GOAWAY, HEADERS, Peer, RST_STREAM, frame, get};
use crate::support::{Answer, Gateway, Upstream};

const CANCEL: [u8; 4] = 8_u32.to_be_bytes();

/// How often a connection resets streams of which the gateway has said something until it is sent away; and why it was.
fn resets_until_sent_away(peer: &mut Peer, target: &str, most: u32) -> (u32, Option<Vec<u8>>) {
    // In one piece, for which the system does not wait.
    let mut before = Vec::new();
    for number in 0..most {
        let stream = number * 2 + 1;
        let open = frame(HEADERS, END_HEADERS | END_STREAM, stream, &get(target));
        peer.send(&[std::mem::take(&mut before), open].concat());
        // Behind this comes nothing of the answer to its stream.
        loop {
            match peer.next() {
                Some((HEADERS, of, _)) if of == stream => break,
                Some((GOAWAY, _, payload)) => return (number, Some(payload)),
                Some(_) => {}
                None => return (number, None),
            }
        }
        before = frame(RST_STREAM, 0, stream, &CANCEL);
    }
    peer.send(&before);
    (most, None)
}

/// Answers with a head, and with half of the body.
fn never_ending() -> Upstream {
    Upstream::answering(|request| match request.target() {
        "/half" => Answer::raw("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nab").hanging(),
        _ => Answer::text("hello"),
    })
}

const ENHANCE_YOUR_CALM: u32 = 0xb;

#[test]
fn a_connection_that_resets_again_and_again_is_sent_away() {
    let upstream = never_ending();
    let gateway = Gateway::before(&upstream, "");
    let mut peer = Peer::connect(gateway.address(), &[]);
    let (count, payload) = resets_until_sent_away(&mut peer, "/half", 1_000);
    assert!((200..500).contains(&count), "after {count}");
    let payload = payload.expect("it is told");
    let [last, reason] =
        [&payload[..4], &payload[4..8]].map(|part| u32::from_be_bytes(part.try_into().unwrap()));
    assert_eq!(reason, ENHANCE_YOUR_CALM);
    assert!(last >= 2 * count - 1, "what was opened before was looked at");
    peer.until_closed();
    assert_eq!(gateway.get("/", &[]).status(), 200);
}

#[test]
fn a_reader_who_gives_up_a_page_now_and_then_is_not_sent_away() {
    let upstream = never_ending();
    let gateway = Gateway::before(&upstream, "");
    let mut peer = Peer::connect(gateway.address(), &[]);
    assert_eq!(resets_until_sent_away(&mut peer, "/half", 150), (150, None), "a page of 150 parts");
    // Five of six answers are taken to their end.
    let mut before = Vec::new();
    for number in 150..1_500 {
        let stream = number * 2 + 1;
        let target = if number % 6 == 0 { "/half" } else { "/" };
        let open = frame(HEADERS, END_HEADERS | END_STREAM, stream, &get(target));
        peer.send(&[std::mem::take(&mut before), open].concat());
        loop {
            let (kind, of, payload) = peer.next().expect("it goes on");
            assert_ne!(kind, GOAWAY, "after {number}");
            if of == stream && (kind == HEADERS && number % 6 == 0 || payload == b"hello") {
                break;
            }
        }
        if number % 6 == 0 {
            before = frame(RST_STREAM, 0, stream, &CANCEL);
        }
    }
}

#[test]
fn a_trusted_proxy_may_reset_as_its_callers_do() {
    let upstream = never_ending();
    let gateway = Gateway::before(&upstream, "[server]\ntrusted_proxies = ['127.0.0.1']");
    let mut peer = Peer::connect(gateway.address(), &[]);
    assert_eq!(resets_until_sent_away(&mut peer, "/half", 1_000), (1_000, None));
}
