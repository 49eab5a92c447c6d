//! What stands beside the data of a message, extensions of chunks and trailers, has a bound on both sides.

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Response};

use crate::support::{Answer, Gateway, H2Client, H2Upstream, Upstream, full, request, with_trailers};

/// How much a message may have of it.
const MOST: usize = 4 * 1024;

const HEAD: &str = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";

/// Chunks with so much beside them in all: in extensions of some length each, and then in trailers.
fn chunks(extensions: usize, each: usize, trailers: usize) -> String {
    let extended = |_| format!("1;{}\r\nx\r\n", "e".repeat(each - 1));
    let mut body: String = (0..extensions / each).map(extended).collect();
    body.push_str("0\r\n");
    let mut left = trailers;
    while left > 0 {
        // Of a hundred bytes each, or a little more.
        let length = if left < 200 { left } else { 100 };
        body.push_str(&format!("x-t: {}\r\n", "t".repeat(length - 7)));
        left -= length;
    }
    body + "\r\n"
}

#[test]
fn a_request_may_have_four_kilobytes_beside_its_data() {
    let upstream = Upstream::ok();
    let gateway = Gateway::before(&upstream, "");
    // The empty line behind the trailers is a part of them.
    for body in [chunks(MOST, 64, 0), chunks(0, 1, MOST - 2), chunks(MOST / 2, 32, MOST / 2 - 2)] {
        let mut client = gateway.connect();
        assert_eq!(client.send(HEAD.to_owned() + &body).response().status(), 200);
        assert_eq!(client.get("/", &[]).status(), 200, "the connection is kept");
    }
}

#[test]
fn a_request_with_more_beside_its_data_is_400_however_it_is_spread() {
    let upstream = Upstream::ok();
    let gateway = Gateway::before(&upstream, "");
    let endless = |extension: &str| format!("1{extension}\r\nx\r\n").repeat(100_000);
    for body in [
        chunks(MOST + 64, 64, 0),
        chunks(0, 1, MOST),
        chunks(MOST / 2, 32, MOST / 2),
        endless(";"),
        endless(&format!(";{}", "e".repeat(160))),
        "0\r\n".to_owned() + &"x-t: t\r\n".repeat(100_000),
    ] {
        let mut client = gateway.connect();
        // Who refuses it does not read it all.
        drop(client.try_send(HEAD.to_owned() + &body));
        assert_eq!(client.response().status(), 400);
        assert!(client.is_closed());
    }
    assert!(upstream.requests().is_empty(), "none came whole");
}

#[test]
fn an_answer_with_more_beside_its_data_is_a_bad_one() {
    let upstream = Upstream::answering(|request| {
        let body = match request.target() {
            "/fits" => chunks(MOST / 2, 32, MOST / 2 - 2),
            "/extensions" => "1;\r\nx\r\n".repeat(100_000),
            _ => chunks(MOST / 2, 32, MOST / 2),
        };
        Answer::raw(format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{body}"))
    });
    let gateway = Gateway::before(&upstream, "");
    assert_eq!(gateway.get("/fits", &[]).status(), 200);
    for target in ["/extensions", "/trailers"] {
        let mut client = gateway.connect();
        client.send(request("GET", target, &[], ""));
        // It is seen not to be whole.
        assert!(client.try_response().is_none_or(|answer| answer.status() == 502), "{target}");
    }
    assert_eq!(gateway.get("/fits", &[]).status(), 200);
}

fn trailers(length: usize) -> HeaderMap {
    let value = HeaderValue::from_bytes(&b"t".repeat(length)).unwrap();
    HeaderMap::from_iter([("x-t".parse().unwrap(), value)])
}

#[test]
fn trailers_of_http2_have_the_bound_of_a_head() {
    let upstream = H2Upstream::answering(|request| {
        let length = request.head.uri.path().trim_start_matches('/').parse().unwrap_or_default();
        let body = if length > 0 { with_trailers("hello", trailers(length)) } else { full("hello") };
        Response::new(body)
    });
    let gateway = Gateway::start(&format!(
        "[upstream.default]
        endpoints = ['{}']
        protocol = 'h2'
        [[listener]]
        bind = '127.0.0.1:0'
        protocols = ['h2']
        max_header_bytes = '8KiB'",
        upstream.url()
    ));
    let client = H2Client::connect(gateway.address());
    let ask = |path: &str, body| client.ask(Request::post(format!("http://a{path}")).body(body).unwrap());
    assert_eq!(ask("/", with_trailers("x", trailers(4000))).unwrap().body, Bytes::from("hello"));
    // What does not fit is refused, or left out: it goes nowhere.
    drop(ask("/", with_trailers("x", trailers(9000))));
    let longest = |trailers: &HeaderMap| trailers.values().map(HeaderValue::len).max().unwrap_or_default();
    let passed: Vec<usize> =
        upstream.requests().iter().filter_map(|request| request.trailers.as_ref().map(longest)).collect();
    assert!(passed.contains(&4000) && passed.iter().all(|length| *length <= 4000), "{passed:?}");
    assert_eq!(ask("/4000", full("x")).unwrap().trailers, Some(trailers(4000)));
    let beyond = ask("/100000", full("x")).ok().and_then(|answer| answer.trailers);
    assert_eq!(beyond.as_ref().map_or(0, longest), 0);
    assert_eq!(ask("/", full("x")).unwrap().body, Bytes::from("hello"), "others go on");
}
