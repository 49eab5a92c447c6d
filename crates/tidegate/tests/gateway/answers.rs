//! Answers of services in every form they come in, and connections to them that must not be used again.

use crate::support::{Answer, Gateway, Latch, Message, Upstream, Wire, request};

/// What a caller gets for an answer, twice: the second shows that the first was taken to its end and no further.
fn passed_on(answer: &'static [u8]) -> Message {
    let upstream = Upstream::answering(move |_| Answer::raw(answer));
    let gateway = Gateway::before(&upstream, "");
    let mut client = gateway.connect();
    let first = client.get("/", &[]);
    let second = client.get("/", &[]);
    assert_eq!((first.status(), &first.body), (second.status(), &second.body));
    first
}

#[test]
fn the_first_line_is_read_as_it_is_written() {
    for (line, status) in [
        ("HTTP/1.1 200", 200),
        ("HTTP/1.1 200 ", 200),
        ("HTTP/1.1 299 Good \u{e9}nough", 299),
        ("HTTP/1.1 599 X", 599),
    ] {
        let upstream =
            Upstream::answering(move |_| Answer::raw(format!("{line}\r\nContent-Length: 5\r\n\r\nhello")));
        let answer = Gateway::before(&upstream, "").get("/", &[]);
        assert_eq!((answer.status(), answer.text()), (status, "hello"), "{line}");
    }
}

#[test]
fn chunks_are_read_in_every_spelling() {
    let answer = passed_on(
        b"HTTP/1.1 200 OK\r\nTRANSFER-ENCODING: Chunked\r\n\r\n\
          0005;a=b;c=\"d;e\"\r\nhello\r\n00A ;x\r\n, everybod\r\n1\r\ny\r\n000\r\n\r\n",
    );
    assert_eq!(answer.text(), "hello, everybody");
}

#[test]
fn values_beyond_ascii_pass_byte_by_byte_both_ways() {
    let upstream = Upstream::scripted(|wire| {
        let head = wire.until(b"\r\n\r\n").unwrap();
        assert!(head.windows(7).any(|window| window == b"x-a: \xe9\xff"), "{head:?}");
        wire.send(b"HTTP/1.1 200 OK\r\nX-B: \xe9\xff\r\nContent-Length: 0\r\n\r\n");
        wire.rest();
    });
    let gateway = Gateway::before(&upstream, "");
    let mut client = gateway.connect();
    client.send(b"GET / HTTP/1.1\r\nHost: a\r\nX-A: \xe9\xff\r\n\r\n");
    let head = client.until(b"\r\n\r\n").unwrap();
    assert!(head.windows(7).any(|window| window == b"x-b: \xe9\xff"), "{head:?}");
}

#[test]
fn an_answer_may_come_byte_by_byte() {
    for answer in [
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3;x\r\nllo\r\n0\r\nT: 1\r\n\r\n",
    ] {
        let upstream = Upstream::scripted(move |wire| {
            while wire.request().is_some() {
                for byte in answer.bytes() {
                    wire.send([byte]);
                }
            }
        });
        let gateway = Gateway::before(&upstream, "");
        let mut client = gateway.connect();
        assert_eq!(
            [client.get("/", &[]).text(), client.get("/", &[]).text()],
            ["hello", "hello"],
            "{answer:?}"
        );
    }
}

#[test]
fn a_large_head_passes_and_a_huge_one_does_not() {
    let upstream = Upstream::answering(|request| {
        let size: usize = request.target().trim_start_matches('/').parse().unwrap();
        Answer::with(&[("x-a", &"a".repeat(size))], "hello")
    });
    let gateway = Gateway::before(&upstream, "");
    assert_eq!([gateway.get("/30000", &[]).status(), gateway.get("/2000000", &[]).status()], [200, 502]);
}

#[test]
fn answers_that_have_no_body_by_their_nature_leave_the_next_in_its_place() {
    for (method, answer) in [
        ("HEAD", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"),
        ("HEAD", "HTTP/1.1 404 Not Found\r\nContent-Length: 1234\r\n\r\n"),
        ("HEAD", "HTTP/1.1 200 OK\r\n\r\n"),
        ("GET", "HTTP/1.1 304 Not Modified\r\nTransfer-Encoding: chunked\r\n\r\n"),
        ("GET", "HTTP/1.1 304 Not Modified\r\n\r\n"),
        ("GET", "HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n"),
        ("GET", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
    ] {
        let upstream = Upstream::answering(move |request| match request.target() {
            "/first" => Answer::raw(answer),
            _ => Answer::text("hello"),
        });
        let gateway = Gateway::before(&upstream, "");
        let mut client = gateway.connect();
        client.send(request(method, "/first", &[], "")).response_head();
        assert_eq!(client.get("/second", &[]).text(), "hello", "{method} {answer:?}");
    }
}

/// Whether a second request goes over the connection of the first.
fn is_used_again(answer: &'static str) -> bool {
    let upstream = Upstream::answering(move |_| Answer::raw(answer));
    let gateway = Gateway::before(&upstream, "[server]\nworkers = 1");
    let mut client = gateway.connect();
    assert_eq!([client.get("/", &[]).text(), client.get("/", &[]).text()], ["hello", "hello"], "{answer:?}");
    upstream.connections() == 1
}

#[test]
fn connections_are_used_again_unless_the_service_says_no() {
    for (answer, is_kept) in [
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", true),
        ("HTTP/1.1 200 OK\r\nConnection: Keep-Alive\r\nContent-Length: 5\r\n\r\nhello", true),
        ("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello", false),
        ("HTTP/1.1 200 OK\r\nConnection: x-a, Close\r\nContent-Length: 5\r\n\r\nhello", false),
        ("HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello", false),
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello, and more", false),
    ] {
        assert_eq!(is_used_again(answer), is_kept, "{answer:?}");
    }
}

#[test]
fn an_answer_that_nobody_asked_for_is_not_taken_for_the_next() {
    let (unasked, sent) = (Latch::default(), Latch::default());
    let (wait, tell) = (unasked.clone(), sent.clone());
    let upstream = Upstream::scripted(move |wire: &mut Wire| {
        let Some(request) = wire.request() else { return };
        wire.send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello");
        if request.target() == "/first" {
            wait.wait();
            wire.send("HTTP/1.1 408 Request Timeout\r\nContent-Length: 4\r\n\r\nlate");
            tell.open();
        }
        while wire.request().is_some() {
            wire.send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nwrong");
        }
    });
    let gateway = Gateway::before(&upstream, "[server]\nworkers = 1");
    let mut client = gateway.connect();
    assert_eq!(client.get("/first", &[]).text(), "hello");
    unasked.open();
    sent.wait();
    assert_eq!(client.get("/second", &[]).text(), "hello");
}

#[test]
fn a_service_that_answers_and_closes_on_an_upload_is_heard() {
    let upstream = Upstream::scripted(|wire| {
        if wire.head().is_some() {
            wire.send("HTTP/1.1 413 Content Too Large\r\nConnection: close\r\nContent-Length: 3\r\n\r\nbig");
        }
    });
    let gateway = Gateway::before(&upstream, "");
    let mut client = gateway.connect();
    // It need not be taken to its end.
    drop(client.try_send(request("POST", "/", &[], &"a".repeat(4 << 20))));
    let answer = client.response();
    assert_eq!((answer.status(), answer.text()), (413, "big"));
    assert_eq!(upstream.connections(), 1, "it is not sent again");
}
