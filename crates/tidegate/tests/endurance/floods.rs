//! Floods of HTTP/2 frames: the peer is cut off, and it costs neither memory nor others their answers.

use std::ops::Range;
use std::time::Duration;

use crate::frames::{
    CONTINUATION, DATA, END_HEADERS, END_STREAM, HEADERS, PING, Peer, RST_STREAM, SETTINGS, Sent, field,
    frame, get, remembered,
};
use crate::gateway::support::{Answer, Gateway, Upstream};
use crate::operated::Operated;
use crate::regular::Regular;
use crate::vitals::{Bound, KIB, MIB, processor_time};

/// How much memory a flood may cost at its worst: two hundred requests in flight, with a tenth of a megabyte each.
const GROWTH: u64 = 32 * MIB;

/// How much processor time. It is generous because tests run unoptimised.
const TIME: Duration = Duration::from_secs(5);

const MAX_HEADER_BYTES: usize = 16 * 1024;

/// Floods a gateway, while a regular caller is served.
#[track_caller]
fn endure(what: &str, flood: impl FnOnce(&Operated, &Upstream)) {
    let upstream = Upstream::answering(|request| {
        if request.target() == "/" { Answer::text(&"x".repeat(300_000)) } else { Answer::text("hello") }
    });
    // The upstream bears all of them at once, so that nobody waits for a place: two hundred that come together are more
    // than a limit begins with, and on a busy machine the regular caller would be refused for that.
    let gateway = Operated::of(Gateway::start(&format!(
        "server.admin = \"127.0.0.1:0\"\n[upstream.default]\nendpoints = [\"{}\"]\n\
         concurrency = {{ algorithm = \"fixed\", max = 1000 }}\n[[listener]]\nbind = \"127.0.0.1:0\"\n\
         head_timeout = \"1s\"\nbody_idle_timeout = \"1s\"\nidle_timeout = \"2s\"\nmax_header_bytes = \"16KiB\"\n",
        upstream.url()
    )));
    let regular = Regular::begin(&gateway.gateway);
    let bound = Bound::of(&gateway.gateway, GROWTH);
    let before = processor_time(&gateway.gateway);
    flood(&gateway, &upstream);
    let took = processor_time(&gateway.gateway) - before;
    let slowest = regular.end();
    assert!(took < TIME, "{took:?} of processor time");
    let grown = bound.check(&gateway.gateway) / KIB;
    eprintln!(
        "{what}: memory grew by {grown} KiB, {took:?} of processor time, others waited {slowest:?} at most"
    );
    gateway.until("/metrics", |page| page.text().contains("tidegate_in_flight{route=\"default\"} 0\n"));
}

#[test]
fn rapid_resets_end_the_connection() {
    endure("rapid reset", |gateway, upstream| {
        let mut peer = Peer::connect(gateway.gateway.address(), &[]);
        let open = get("/");
        for batch in 0..200_u32 {
            let streams = (0..100).map(|number| (batch * 100 + number) * 2 + 1);
            let reset = |stream| {
                let cancel = 8_u32.to_be_bytes();
                let open = frame(HEADERS, END_HEADERS | END_STREAM, stream, &open);
                [open, frame(RST_STREAM, 0, stream, &cancel)].concat()
            };
            if peer.send(&streams.flat_map(reset).collect::<Vec<_>>()) != Sent::All {
                break;
            }
        }
        peer.until_closed();
        let reached = upstream.targets().iter().filter(|target| *target == "/").count();
        assert!(reached < 1000, "{reached} requests reached the upstream");
    });
}

#[test]
fn heads_without_an_end_are_cut() {
    endure("continuation flood", |gateway, upstream| {
        let mut peer = Peer::connect(gateway.gateway.address(), &[]);
        peer.send(&frame(HEADERS, END_STREAM, 1, &get("/")));
        let more = frame(CONTINUATION, 0, 1, &field("x-more", &[b'a'; 4000]));
        (0..20_000).take_while(|_| peer.send(&more) == Sent::All).for_each(drop);
        peer.until_closed();
        // Empty ones cost nothing to send.
        let mut peer = Peer::connect(gateway.gateway.address(), &[]);
        peer.send(&frame(HEADERS, END_STREAM, 1, &get("/")));
        let more = frame(CONTINUATION, 0, 1, &[]).repeat(100);
        (0..2000).take_while(|_| peer.send(&more) == Sent::All).for_each(drop);
        peer.until_closed();
        assert!(!upstream.targets().iter().any(|target| target == "/"));
    });
}

#[test]
fn pings_and_settings_that_nobody_reads_the_answers_of_are_not_taken() {
    for (what, one) in [
        ("ping flood", frame(PING, 0, 0, &[7; 8])),
        ("settings flood", frame(SETTINGS, 0, 0, &[0, 4, 0, 1, 0, 0])),
    ] {
        endure(what, |gateway, _| {
            let mut peer = Peer::connect(gateway.gateway.address(), &[]);
            let many = one.repeat(1000);
            let sent = (0..2000).map(|_| peer.send(&many)).find(|sent| *sent != Sent::All);
            // Whoever does not read is cut once nothing can be sent to him.
            assert!(matches!(sent, Some(Sent::Closed | Sent::Stalled)), "{sent:?}");
        });
    }
}

#[test]
fn header_lists_that_are_too_large_are_refused() {
    endure("huge header lists", |gateway, upstream| {
        let to = gateway.gateway.address();
        let large = [get("/"), field("x-large", &[b'a'; MAX_HEADER_BYTES - 1000])].concat();
        // Each mention of the remembered field is one byte on the wire and four thousand in the list.
        let bomb = [get("/"), remembered("x-bomb", &[b'a'; 3900]), vec![0x80 | 62; 12_000]].concat();
        let many = [get("/"), field("x", b"").repeat(2000)].concat();
        let streams = || (1..=101).step_by(2);
        for (list, is_sound) in [(large, true), (bomb, false), (many, false)] {
            let mut peer = Peer::connect(to, &[]);
            for stream in streams() {
                if peer.send(&frame(HEADERS, END_HEADERS | END_STREAM, stream, &list)) != Sent::All {
                    break;
                }
            }
            let mut statuses = Vec::new();
            while let Some((kind, _, payload)) = peer.next() {
                if kind == HEADERS {
                    statuses.push(payload.first().copied());
                }
                if statuses.len() == 50 || (is_sound && !statuses.is_empty()) {
                    break;
                }
            }
            // 200 has a number of its own in the table; 431 has none.
            let is_ok = |status: &Option<u8>| *status == Some(0x88);
            assert_eq!(statuses.iter().any(is_ok), is_sound, "{statuses:?}");
        }
        let forwarded = upstream.targets().iter().filter(|target| *target == "/").count();
        assert!(forwarded <= streams().count(), "{forwarded} are more than the sound ones");
    });
}

#[test]
fn a_peer_who_opens_no_window_is_cut() {
    endure("window starvation", |gateway, upstream| {
        // Setting 4 is how much may be sent on a stream.
        let mut peer = Peer::connect(gateway.gateway.address(), &[(4, 0)]);
        for stream in STREAMS.step_by(2) {
            assert_eq!(peer.send(&frame(HEADERS, END_HEADERS | END_STREAM, stream, &get("/"))), Sent::All);
        }
        upstream.wait_for(STREAMS.count() / 2);
        let mut reset = 0;
        while let Some((kind, _, payload)) = peer.next() {
            assert!(kind != DATA || payload.is_empty(), "there is no room for data");
            reset += usize::from(kind == RST_STREAM);
        }
        assert_eq!(reset, STREAMS.count() / 2);
    });
}

#[test]
fn a_peer_who_sends_no_body_is_cut() {
    endure("bodies that do not come", |gateway, _| {
        let mut peer = Peer::connect(gateway.gateway.address(), &[]);
        for stream in STREAMS.step_by(2) {
            assert_eq!(peer.send(&frame(HEADERS, END_HEADERS, stream, &get("/"))), Sent::All);
        }
        peer.until_closed();
    });
}

#[test]
fn frames_without_requests_keep_no_connection() {
    endure("pings without end", |gateway, _| {
        let mut peer = Peer::connect(gateway.gateway.address(), &[]);
        let ping = frame(PING, 0, 0, &[7; 8]);
        while peer.send(&ping) == Sent::All && peer.next().is_some() {}
    });
}

/// As many as a peer may have at once, and not more.
const STREAMS: Range<u32> = 1..201;
