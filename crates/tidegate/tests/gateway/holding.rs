//! Connections that are kept without being used: what has begun must come to its end in time, however it is fed.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use socket2::SockRef;

use crate::frames::{
    CONTINUATION, DATA, END_HEADERS, END_STREAM, HEADERS, PING, PREFACE, Peer, SETTINGS, frame, get,
};
use crate::support::{Gateway, Latch, PATIENCE, Upstream, request, socket_from, tls};

/// How long a head may take here.
const LIMIT: Duration = Duration::from_millis(300);

/// Between two bytes of a caller that feeds its connection.
const PACE: Duration = Duration::from_millis(20);

fn start(upstream: &Upstream, listener: &str) -> Gateway {
    start_with(upstream, "", listener)
}

fn start_with(upstream: &Upstream, server: &str, listener: &str) -> Gateway {
    Gateway::start_with(
        &format!(
            "upstream = '{}'
            {server}
            [[listener]]
            bind = '127.0.0.1:0'
            {listener}",
            upstream.url()
        ),
        &[("tls.crt", tls::CERT), ("tls.key", tls::KEY)],
    )
}

/// How long a connection lasts that begins with some bytes and is fed with others, one after another.
#[track_caller]
fn lasts(mut stream: TcpStream, first: &[u8], feed: &[u8]) -> Duration {
    stream.set_read_timeout(Some(PACE)).unwrap();
    stream.set_nodelay(true).unwrap();
    let begun = Instant::now();
    stream.write_all(first).unwrap();
    let mut feed = feed.iter().cycle();
    loop {
        match stream.read(&mut [0; 1024]) {
            Ok(0) => return begun.elapsed(),
            Ok(_) => {}
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                let fed = feed.next().map_or(Ok(()), |byte| stream.write_all(&[*byte]));
                if fed.is_err() {
                    return begun.elapsed();
                }
            }
            Err(_) => return begun.elapsed(),
        }
        assert!(begun.elapsed() < PATIENCE, "it is still open");
    }
}

/// Whether that was its limit's doing: other limits here are a minute and more.
#[track_caller]
fn is_cut_in_time(stream: TcpStream, first: &[u8], feed: &[u8]) {
    let lasted = lasts(stream, first, feed);
    // Ticks are coarse, so that a limit may come a little early.
    assert!(lasted > LIMIT / 3, "it was cut at once: {lasted:?}");
}

/// What a connection of HTTP/2 begins with, and then more.
fn begun(more: &[u8]) -> Vec<u8> {
    [PREFACE, &frame(SETTINGS, 0, 0, &[]), more].concat()
}

#[test]
fn half_a_preface_or_frame_or_head_of_http2_is_cut() {
    let upstream = Upstream::ok();
    let gateway = start(&upstream, "protocols = ['h2', 'http/1.1']\nhead_timeout = '300ms'");
    let head = frame(HEADERS, END_HEADERS | END_STREAM, 1, &get("/"));
    let open = frame(HEADERS, END_STREAM, 1, &get("/"));
    let ping = frame(PING, 0, 0, &[0; 8]);
    let large = frame(9, 0, 1, &[0; 16_000]);
    let more = frame(CONTINUATION, 0, 1, &[]);
    let cases: [(&str, Vec<u8>, &[u8]); 9] = [
        ("three bytes", b"PRI".to_vec(), b""),
        ("half a preface", PREFACE[..20].to_vec(), b""),
        ("no settings", PREFACE.to_vec(), b""),
        ("half of the settings' nine bytes", begun(b"")[..28].to_vec(), b""),
        ("half a ping", begun(&ping[..12]), b""),
        ("half of a head's frame", begun(&head[..15]), b""),
        ("a head without its end", begun(&open), b""),
        ("a head that goes on and on", begun(&open), &more),
        ("a head that is fed", begun(&[&open[..], &large[..9]].concat()), &[0]),
    ];
    for (what, first, feed) in &cases {
        eprintln!("{what}");
        is_cut_in_time(TcpStream::connect(gateway.address()).unwrap(), first, feed);
    }
    assert_eq!(upstream.bytes(), 0);
}

#[test]
fn a_connection_of_whole_frames_may_be_idle_for_longer_than_a_head() {
    let upstream = Upstream::ok();
    let gateway = start(&upstream, "protocols = ['h2']\nhead_timeout = '100ms'\nidle_timeout = '600ms'");
    let lasted = lasts(TcpStream::connect(gateway.address()).unwrap(), &begun(b""), b"");
    assert!(lasted > Duration::from_millis(400), "{lasted:?}");
}

#[test]
fn half_a_frame_of_data_is_cut() {
    let upstream = Upstream::ok();
    let gateway = start(&upstream, "protocols = ['h2']\nbody_idle_timeout = '300ms'");
    let post = frame(HEADERS, END_HEADERS, 1, &get("/"));
    let data = frame(DATA, END_STREAM, 1, &[b'x'; 16_000]);
    let first = begun(&[&post[..], &data[..100]].concat());
    is_cut_in_time(TcpStream::connect(gateway.address()).unwrap(), &first, b"x");
}

#[test]
fn half_of_what_comes_before_a_head_is_cut() {
    let upstream = Upstream::ok();
    let behind = "[server]\nclient_address = 'proxy_protocol'\ntrusted_proxies = ['127.0.0.9']";
    let behind = start_with(&upstream, behind, "head_timeout = '300ms'");
    let both = start(&upstream, "protocols = ['h2', 'http/1.1']\nhead_timeout = '300ms'");
    let encrypted = start(&upstream, "tls = { cert = 'tls.crt', key = 'tls.key' }\nhead_timeout = '300ms'");
    let connect = |gateway: &Gateway| TcpStream::connect(gateway.address()).unwrap();
    let proxied = |gateway: &Gateway| socket_from([127, 0, 0, 9].into(), gateway.address());
    let record = [&[22, 3, 1, 2, 0, 1, 0, 1, 252][..], &[3; 50]].concat();
    is_cut_in_time(connect(&encrypted), &record, b"\x03");
    is_cut_in_time(connect(&encrypted), b"\x16", b"");
    is_cut_in_time(proxied(&behind), b"PROXY TCP4 192.0.2.1", b"");
    is_cut_in_time(proxied(&behind), b"PROXY TCP4 192.0.2.1", b"1");
    is_cut_in_time(proxied(&behind), b"\r\n\r\n\0\r\nQUIT\n\x21\x11\x0f\x00", b"a");
    // Each part has less than the limit, and all of them together have no more.
    let lasted =
        lasts(connect(&both), b"P", b"OST / HTTP/1.1\r\nHost: service.test\r\nx-long: aaaaaaaaaaaaaaaaaa");
    assert!(lasted < LIMIT * 2 + Duration::from_secs(1), "{lasted:?}");
    assert_eq!(upstream.bytes(), 0);
}

#[test]
fn heads_of_http1_cannot_be_fed() {
    let upstream = Upstream::ok();
    let gateway = start(&upstream, "head_timeout = '300ms'");
    let served = request("GET", "/", &[], "");
    for (first, feed) in [
        (String::new(), "\r\n"),
        (String::new(), "GET / HTTP/1.1\r\nhost: a\r\nx-a: b\r\nx-b: c\r\nx-c: d"),
        // The next head behind one that is served.
        (served.clone() + "G", "ET / HTTP/1.1\r\nhost: a\r\nx-a: b\r\nx-b: c\r\nx-c: d"),
    ] {
        is_cut_in_time(TcpStream::connect(gateway.address()).unwrap(), first.as_bytes(), feed.as_bytes());
    }
    assert!(upstream.requests().iter().all(|request| request.get("x-c").is_none()));
}

#[test]
fn an_upload_that_trickles_behind_its_answer_ends_with_its_connection() {
    let upstream = Upstream::ok();
    let gateway = start(
        &upstream,
        "head_timeout = '300ms'
        [rule.none]
        quota = '1/day'
        [[route]]
        name = 'all'
        rules = ['none']",
    );
    assert_eq!(gateway.get("/", &[]).status(), 200);
    let head = "POST / HTTP/1.1\r\nHost: service.test\r\nTransfer-Encoding: chunked\r\n\r\n";
    for (first, feed) in [
        (head.to_owned() + "ff\r\n", "a"),
        (head.to_owned(), "1\r\na\r\n"),
        (head.replace("Transfer-Encoding: chunked", "Content-Length: 10000"), "a"),
    ] {
        is_cut_in_time(TcpStream::connect(gateway.address()).unwrap(), first.as_bytes(), feed.as_bytes());
        let mut client = gateway.connect();
        client.send(&first);
        assert_eq!(client.response().status(), 429);
        assert!(client.is_closed());
    }
}

#[test]
fn an_upload_that_trickles_for_longer_than_its_time_is_answered_and_cut() {
    let upstream = Upstream::ok();
    let gateway = Gateway::start(&format!(
        "[upstream.default]
        endpoints = ['{}']
        timeout = '600ms'
        [[listener]]
        bind = '127.0.0.1:0'
        head_timeout = '300ms'",
        upstream.url()
    ));
    let head = "POST / HTTP/1.1\r\nHost: service.test\r\nTransfer-Encoding: chunked\r\n\r\n";
    let mut stream = TcpStream::connect(gateway.address()).unwrap();
    stream.set_read_timeout(Some(PACE)).unwrap();
    stream.write_all(head.as_bytes()).unwrap();
    let begun = Instant::now();
    let mut told = Vec::new();
    loop {
        let mut bytes = [0; 1024];
        match stream.read(&mut bytes) {
            Ok(0) => break,
            Ok(count) => told.extend_from_slice(&bytes[..count]),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                if stream.write_all(b"1\r\na\r\n").is_err() {
                    break;
                }
            }
            Err(_) => break,
        }
        assert!(begun.elapsed() < PATIENCE, "it is still open: {:?}", String::from_utf8_lossy(&told));
    }
    let told = String::from_utf8_lossy(&told);
    assert!(told.starts_with("HTTP/1.1 408 ") || told.starts_with("HTTP/1.1 504 "), "{told:?}");
}

#[test]
fn a_caller_that_leaves_is_noticed_behind_what_it_sent() {
    let latch = Latch::default();
    let upstream = Upstream::holding(&latch);
    let gateway = Gateway::start(&format!(
        "listen = '127.0.0.1:0'
        upstream = '{}'
        telemetry.access_log = {{ to = 'stdout', sample_accepted = '100%' }}",
        upstream.url()
    ));
    let asked = request("GET", "/held", &[], "");
    let large = "x".repeat(100_000);
    for (count, behind) in ["G", &asked, &large].into_iter().enumerate() {
        let mut client = gateway.connect();
        client.send(asked.clone() + behind);
        upstream.wait_for(count + 1);
        drop(client);
        let lines = gateway.output().first(count + 1);
        assert!(lines[count].contains("\"status\":499"), "{}", lines[count]);
    }
    latch.open();
}

#[test]
fn an_upload_whose_caller_leaves_is_noticed_though_its_service_reads_nothing() {
    let (reached, latch) = (Latch::default(), Latch::default());
    let (at, until) = (reached.clone(), latch.clone());
    let upstream = Upstream::scripted(move |wire| {
        assert!(wire.head().is_some());
        at.open();
        until.wait();
    });
    let gateway = Gateway::start(&format!(
        "listen = '127.0.0.1:0'
        upstream = '{}'
        telemetry.access_log = {{ to = 'stdout', sample_accepted = '100%' }}",
        upstream.url()
    ));
    let mut stream = TcpStream::connect(gateway.address()).unwrap();
    stream.write_all(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000000\r\n\r\nx").unwrap();
    reached.wait();
    // Until nobody takes any more.
    stream.set_write_timeout(Some(Duration::from_millis(500))).unwrap();
    while stream.write(&[b'x'; 64 * 1024]).is_ok() {}
    // Its end has to wait for what is unread before it; a reset comes at once.
    SockRef::from(&stream).set_linger(Some(Duration::ZERO)).unwrap();
    drop(stream);
    let lines = gateway.output().first(1);
    assert!(lines[0].contains("\"status\":499"), "{}", lines[0]);
    latch.open();
}

#[test]
fn a_caller_of_http2_that_leaves_is_noticed() {
    let latch = Latch::default();
    let upstream = Upstream::holding(&latch);
    let gateway = Gateway::start(&format!(
        "upstream = '{}'
        telemetry.access_log = {{ to = 'stdout', sample_accepted = '100%' }}
        [[listener]]
        bind = '127.0.0.1:0'
        protocols = ['h2']",
        upstream.url()
    ));
    let mut peer = Peer::connect(gateway.address(), &[]);
    let asked = frame(HEADERS, END_HEADERS | END_STREAM, 1, &get("/held"));
    peer.send(&[&asked[..], &asked[..10]].concat());
    upstream.wait_for(1);
    drop(peer);
    let lines = gateway.output().first(1);
    assert!(lines[0].contains("\"status\":499"), "{}", lines[0]);
    latch.open();
}
