//! Callers that ask and do not read: what they cost in memory, and that nobody else notices.

use crate::frames::{END_HEADERS, END_STREAM, HEADERS, Peer, Sent, WINDOW_UPDATE, frame, get};
use crate::gateway::support::{Answer, Client, Gateway, Upstream, request};
use crate::operated::Operated;
use crate::regular::Regular;
use crate::vitals::{KIB, MIB, memory};

/// How much one connection of HTTP/2 may cost that does not read.
const MOST: u64 = 2 * MIB;

/// As many requests as a connection may have at once.
const STREAMS: usize = 100;

/// What is there from the first such connections on, whatever comes behind them, is not counted.
const BEFORE: usize = 2;

/// Many, since the allocator takes memory from the system two megabytes at a time.
const COUNTED: usize = 12;

fn start(upstream: &Upstream) -> Operated {
    // The upstream bears all of them at once.
    Operated::of(Gateway::start(&format!(
        "server.admin = \"127.0.0.1:0\"\nserver.workers = 1\n[upstream.default]\nendpoints = [\"{}\"]\n\
         max_connections = 5000\nconcurrency = {{ algorithm = \"fixed\", max = 5000 }}\n[[listener]]\n\
         bind = \"127.0.0.1:0\"\n",
        upstream.url()
    )))
}

/// A service whose answers are large, or come in many parts.
fn wordy() -> Upstream {
    let large = "x".repeat(400_000);
    let parts = "4\r\nword\r\n".repeat(5000);
    Upstream::answering(move |request| match request.target() {
        "/large" => Answer::text(&large),
        "/small" => Answer::text(&large[..7000]),
        "/parts" => {
            Answer::raw(format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{parts}")).hanging()
        }
        _ => Answer::text("hello"),
    })
}

/// A connection that asks for as much as it may, and reads nothing of it.
fn ask(gateway: &Gateway, path: &str, window: u32) -> Peer {
    const WINDOW: u16 = 4;
    let mut peer = Peer::connect(gateway.address(), &[(WINDOW, window)]);
    let all: Vec<u8> = (0..STREAMS)
        .flat_map(|number| {
            let stream = u32::try_from(number).unwrap() * 2 + 1;
            frame(HEADERS, END_HEADERS | END_STREAM, stream, &get(path))
        })
        .collect();
    // The whole connection may send as much as it likes.
    assert_eq!(peer.send(&frame(WINDOW_UPDATE, 0, 0, &0x7000_0000_u32.to_be_bytes())), Sent::All);
    assert_eq!(peer.send(&all), Sent::All);
    peer
}

#[test]
fn a_connection_of_http2_that_does_not_read_costs_two_megabytes_at_most() {
    // How much may be sent on each stream: nothing, a byte, a little, everything.
    for (path, window) in [
        ("/large", 0),
        ("/large", 1),
        ("/large", 65_535),
        ("/large", 0x7000_0000),
        ("/small", 0),
        ("/parts", 0),
        ("/parts", 0x7000_0000),
    ] {
        let upstream = wordy();
        let gateway = start(&upstream);
        let regular = Regular::begin(&gateway.gateway);
        let mut peers = Vec::new();
        let mut before = 0;
        for number in 0..BEFORE + COUNTED {
            peers.push(ask(&gateway.gateway, path, window));
            upstream.wait_for((number + 1) * STREAMS);
            // Until nothing moves any more.
            crate::gateway::support::until(|| {
                let begun = memory(&gateway.gateway);
                (0..10).for_each(|_| assert_eq!(gateway.gateway.get("/", &[]).status(), 200));
                memory(&gateway.gateway) == begun
            });
            if number + 1 == BEFORE {
                before = memory(&gateway.gateway);
            }
        }
        let each = memory(&gateway.gateway).saturating_sub(before) / COUNTED as u64;
        let slowest = regular.end();
        eprintln!("{path} with a window of {window}: {} KiB each, others waited {slowest:?}", each / KIB);
        assert!(each <= MOST, "{path} with a window of {window}: {} KiB each", each / KIB);
    }
}

#[test]
fn a_connection_of_http1_that_does_not_read_costs_less() {
    const MANY: usize = 200;
    let upstream = wordy();
    let gateway = start(&upstream);
    let regular = Regular::begin(&gateway.gateway);
    let before = memory(&gateway.gateway);
    let mut clients: Vec<Client> = (0..MANY).map(|_| gateway.gateway.connect()).collect();
    for client in &mut clients {
        // Larger than what sockets hold.
        client.send(request("GET", "/large", &[], "").repeat(100));
    }
    upstream.wait_for(MANY * 10);
    let each = memory(&gateway.gateway).saturating_sub(before) / MANY as u64;
    let slowest = regular.end();
    eprintln!("{} KiB each, others waited {slowest:?}", each / KIB);
    assert!(each <= 256 * KIB, "{} KiB each", each / KIB);
}

#[test]
fn streams_that_are_read_do_not_wait_for_those_that_are_not() {
    let upstream = wordy();
    let gateway = start(&upstream);
    let mut peer = Peer::connect(gateway.gateway.address(), &[(4, 0)]);
    assert_eq!(peer.send(&frame(WINDOW_UPDATE, 0, 0, &0x7000_0000_u32.to_be_bytes())), Sent::All);
    for stream in (1..=199_u32).step_by(2) {
        let asked = frame(HEADERS, END_HEADERS | END_STREAM, stream, &get("/large"));
        assert_eq!(peer.send(&asked), Sent::All);
    }
    upstream.wait_for(STREAMS);
    // Only the last one's window is opened, after all others hold what they may.
    assert_eq!(peer.send(&frame(WINDOW_UPDATE, 0, 199, &0x7000_0000_u32.to_be_bytes())), Sent::All);
    let mut came = 0;
    while came < 400_000 {
        let (kind, stream, payload) = peer.next().expect("it comes");
        if kind == crate::frames::DATA && !payload.is_empty() {
            assert_eq!(stream, 199);
            came += payload.len();
        }
    }
}
