//! What two servers could read in two ways is refused before anything is sent on.
//!
//! Every probe is followed by another request on the same connection: whoever reads the probe in the wrong way would
//! take part of it, or the request behind it, for something that passed the rules.

use crate::support::{Gateway, Upstream};

/// Sends a probe with another request behind it; it must be answered with 400, and nothing else.
fn is_refused(gateway: &Gateway, what: &str, probe: &str) {
    let mut client = gateway.connect();
    client.send(format!("{probe}GET /behind HTTP/1.1\r\nHost: a\r\n\r\n"));
    let answer = client.try_response().unwrap_or_else(|| panic!("{what}: closed without an answer"));
    assert_eq!(answer.status(), 400, "{what}: {answer:#?}");
    assert!(client.is_closed(), "{what}: more was answered");
}

/// Sends all probes and then a request that is sound, which must be the only one the service sees.
fn all_are_refused(probes: &[(&str, &str)]) {
    let upstream = Upstream::ok();
    let gateway = Gateway::before(&upstream, "");
    for (what, probe) in probes {
        is_refused(&gateway, what, probe);
        assert_eq!(upstream.bytes(), 0, "{what}: something was sent on");
    }
    assert_eq!(gateway.get("/sound", &[]).status(), 200);
    assert_eq!(upstream.targets(), ["/sound"]);
}

#[test]
fn two_kinds_of_length_are_refused() {
    all_are_refused(&[
        (
            "length, then chunks",
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        ),
        (
            "chunks, then length",
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n",
        ),
        (
            "spelled otherwise",
            "POST / HTTP/1.1\r\nHost: a\r\ncONTENT-lENGTH:5\r\ntRANSFER-eNCODING:chunked\r\n\r\n0\r\n\r\n",
        ),
    ]);
}

#[test]
fn unclear_lengths_are_refused() {
    all_are_refused(&[
        ("two lengths", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\nabcd"),
        ("a list of lengths", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4, 4\r\n\r\nabcd"),
        ("a sign", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +4\r\n\r\nabcd"),
        ("a negative length", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n"),
        ("hexadecimal", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0x4\r\n\r\nabcd"),
        ("too long a number", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999\r\n\r\n"),
        ("no number", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length:\r\n\r\n"),
    ]);
}

#[test]
fn unclear_transfer_codings_are_refused() {
    let post =
        |coding: &str| format!("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: {coding}\r\n\r\n0\r\n\r\n");
    let [identity, last, unknown, tab, twice, packed] =
        ["identity", "chunked, identity", "xchunked", "\x0bchunked", "chunked, chunked", "gzip, chunked"]
            .map(post);
    all_are_refused(&[
        ("identity", &identity),
        ("chunked is not the last", &last),
        ("an unknown coding", &unknown),
        ("a vertical tab before it", &tab),
        ("chunked twice", &twice),
        ("a coding before it", &packed),
        (
            "two lines of the same",
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        ),
        (
            "two lines",
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n",
        ),
        ("in HTTP/1.0", "POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    ]);
}

#[test]
fn unclear_lines_are_refused() {
    all_are_refused(&[
        ("a space before the colon", "GET / HTTP/1.1\r\nHost: a\r\nX-A : b\r\n\r\n"),
        ("a folded line", "GET / HTTP/1.1\r\nHost: a\r\nX-A: b\r\n c\r\n\r\n"),
        ("a bare carriage return", "GET / HTTP/1.1\r\nHost: a\r\nX-A: b\rX-B: c\r\n\r\n"),
        ("a null byte in a value", "GET / HTTP/1.1\r\nHost: a\r\nX-A: b\0c\r\n\r\n"),
        ("a null byte in a name", "GET / HTTP/1.1\r\nHost: a\r\nX\0A: b\r\n\r\n"),
        ("a bare line feed after the first line", "GET / HTTP/1.1\nHost: a\r\n\r\n"),
        ("a bare line feed after a field", "GET / HTTP/1.1\r\nHost: a\n\r\n"),
        ("a bare line feed at the end", "GET / HTTP/1.1\r\nHost: a\r\n\n"),
        ("a field without a name", "GET / HTTP/1.1\r\nHost: a\r\n: b\r\n\r\n"),
        ("a space in the target", "GET /a b HTTP/1.1\r\nHost: a\r\n\r\n"),
        ("an unknown version", "GET / HTTP/3.7\r\nHost: a\r\n\r\n"),
    ]);
}

#[test]
fn unclear_hosts_are_refused() {
    all_are_refused(&[
        ("no Host", "GET / HTTP/1.1\r\nX-A: b\r\n\r\n"),
        ("two Hosts", "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"),
        ("the same Host twice", "GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n"),
        ("a list of Hosts", "GET / HTTP/1.1\r\nHost: a, b\r\n\r\n"),
        ("a Host with a path", "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n"),
        ("a target with a user", "GET http://a@b/ HTTP/1.1\r\nHost: b\r\n\r\n"),
        ("a Host with a user", "GET / HTTP/1.1\r\nHost: a@b\r\n\r\n"),
    ]);
}

#[test]
fn tunnels_are_refused() {
    all_are_refused(&[("CONNECT", "CONNECT inside:22 HTTP/1.1\r\nHost: inside:22\r\n\r\n")]);
}

#[test]
fn a_chunk_that_is_none_ends_the_connection_without_a_second_request() {
    for (what, chunk) in [
        ("no number", "zz\r\n"),
        ("a bare line feed", "3\nabc\r\n"),
        ("longer than it says", "1\r\nabc\r\n"),
        ("more than can be counted", "fffffffffffffffff\r\n"),
    ] {
        let upstream = Upstream::ok();
        let gateway = Gateway::before(&upstream, "");
        let mut client = gateway.connect();
        let head = "POST /broken HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
        client.send(format!("{head}{chunk}0\r\n\r\nGET /behind HTTP/1.1\r\nHost: a\r\n\r\n"));
        let answers = client.rest();
        let answers = String::from_utf8_lossy(&answers);
        assert!(!answers.contains("HTTP/1.1 200"), "{what}: {answers}");
        assert!(upstream.requests().is_empty(), "{what}: {:#?}", upstream.requests());
    }
}

#[test]
fn a_refused_request_takes_those_before_it_not_down() {
    let upstream = Upstream::ok();
    let gateway = Gateway::before(&upstream, "");
    let mut client = gateway.connect();
    client.send(
        "GET /first HTTP/1.1\r\nHost: a\r\n\r\n\
         POST /second HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc\
         POST /third HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n\
         GET /fourth HTTP/1.1\r\nHost: a\r\n\r\n",
    );
    let statuses = [client.response().status(), client.response().status(), client.response().status()];
    assert_eq!(statuses, [200, 200, 400]);
    assert!(client.is_closed());
    assert_eq!(upstream.targets(), ["/first", "/second"]);
}

#[test]
fn lines_behind_a_body_do_not_hide_the_request_that_follows() {
    let upstream = Upstream::ok();
    let gateway = Gateway::before(&upstream, "");
    let mut client = gateway.connect();
    // Read in one way, the trailers end before `A: b`; read in another, behind `C: d`.
    client.send(
        "POST /first HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n\
         0\r\nX: y\n\r\nA: b\r\nC: d\r\n\r\n\
         POST /second HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    );
    client.rest();
    assert!(!upstream.targets().contains(&"/second".to_owned()), "{:#?}", upstream.requests());
}

#[test]
fn the_refusal_says_what_is_wrong() {
    let upstream = Upstream::ok();
    let gateway = Gateway::before(&upstream, "");
    let mut client = gateway.connect();
    client.send(
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    );
    let answer = client.response();
    assert_eq!(answer.get("content-type"), Some("application/problem+json"));
    assert_eq!(answer.get("connection"), Some("close"));
    assert_eq!(answer.json()["detail"], "the request has both Content-Length and Transfer-Encoding");
}

#[test]
fn equal_lengths_and_chunk_extensions_are_harmless() {
    let upstream = Upstream::ok();
    let gateway = Gateway::before(&upstream, "");
    let mut client = gateway.connect();
    client.send("POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\nabc");
    assert_eq!(client.response().status(), 200);
    client.send(
        "POST /b HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3;name=value\r\nabc\r\n0;last\r\n\r\n",
    );
    assert_eq!(client.response().status(), 200);
    let [first, second] = upstream.requests().try_into().unwrap();
    assert_eq!((first.all("content-length"), first.text()), (vec!["3"], "abc"));
    assert_eq!((second.get("transfer-encoding"), second.text()), (Some("chunked"), "abc"));
}
