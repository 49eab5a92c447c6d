//! HTTP/1 as both sides know it: methods, lengths, trailers, and bodies on their way.

use crate::support::{Answer, Gateway, Latch, Upstream, request};

#[test]
fn an_old_caller_gets_an_answer_and_its_end() {
    let upstream = Upstream::answering(|_| {
        Answer::raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n")
    });
    let gateway = Gateway::before(&upstream, "");
    let mut client = gateway.connect();
    client.send("GET /old HTTP/1.0\r\n\r\n");
    let answer = client.response();
    assert_eq!((answer.status(), answer.text()), (200, "hello"));
    assert_eq!(answer.get("transfer-encoding"), None, "it does not know chunks");
    assert!(client.is_closed());
    let request = upstream.only_request();
    assert_eq!(request.head.first_line, "GET /old HTTP/1.1");
    assert_eq!(
        request.get("host"),
        Some(upstream.address().to_string().as_str()),
        "who speaks 1.1 needs one"
    );
}

#[test]
fn an_old_caller_may_keep_its_connection() {
    let upstream = Upstream::ok();
    let gateway = Gateway::before(&upstream, "");
    let mut client = gateway.connect();
    for _ in 0..2 {
        client.send("GET / HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\n\r\n");
        assert_eq!(client.response().text(), "hello");
    }
}

#[test]
fn an_answer_without_a_length_ends_with_its_connection() {
    let upstream = Upstream::answering(|_| Answer::raw("HTTP/1.0 200 OK\r\n\r\nhello").closing());
    let gateway = Gateway::before(&upstream, "");
    let mut client = gateway.connect();
    for _ in 0..2 {
        let answer = client.get("/", &[]);
        assert_eq!((answer.status(), answer.text()), (200, "hello"));
    }
}

#[test]
fn the_answer_to_head_has_a_length_and_no_body() {
    let upstream = Upstream::answering(|request| match request.method() {
        "HEAD" => Answer::raw("HTTP/1.1 200 OK\r\nContent-Length: 1234\r\nETag: \"a\"\r\n\r\n"),
        _ => Answer::text("hello"),
    });
    let gateway = Gateway::before(&upstream, "");
    let mut client = gateway.connect();
    for _ in 0..2 {
        let answer = client.send(request("HEAD", "/", &[], "")).response_head();
        assert_eq!((answer.get("content-length"), answer.get("etag")), (Some("1234"), Some("\"a\"")));
        assert_eq!(client.get("/", &[]).text(), "hello", "the next answer is in its place");
    }
    assert_eq!(upstream.connections(), 1);
}

#[test]
fn a_refused_head_request_has_no_body_either() {
    let upstream = Upstream::ok();
    let gateway = Gateway::before(&upstream, "[rule.once]\nquota = '1/h'");
    let mut client = gateway.connect();
    client.get("/", &[]);
    let refused = client.send(request("HEAD", "/", &[], "")).response_head();
    assert_eq!((refused.status(), refused.get("content-type")), (429, Some("application/problem+json")));
    assert_eq!(client.get("/", &[]).status(), 429, "the next answer is in its place");
}

#[test]
fn answers_without_a_body_stay_without() {
    let upstream = Upstream::answering(|request| match request.target() {
        "/204" => Answer::raw("HTTP/1.1 204 No Content\r\n\r\n"),
        "/304" => Answer::raw("HTTP/1.1 304 Not Modified\r\nContent-Length: 1234\r\nETag: \"a\"\r\n\r\n"),
        _ => Answer::text("hello"),
    });
    let gateway = Gateway::before(&upstream, "");
    let mut client = gateway.connect();
    let none = client.get("/204", &[]);
    assert_eq!((none.status(), none.get("content-length"), none.get("transfer-encoding")), (204, None, None));
    let same = client.get("/304", &[("If-None-Match", "\"a\"")]);
    assert_eq!((same.status(), same.get("etag"), same.get("transfer-encoding")), (304, Some("\"a\""), None));
    assert_eq!(client.get("/", &[]).text(), "hello");
    assert_eq!(upstream.connections(), 1);
}

#[test]
fn what_a_service_says_in_between_is_not_the_answer() {
    let upstream = Upstream::answering(|_| {
        Answer::raw(
            "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n\
             HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
        )
    });
    let gateway = Gateway::before(&upstream, "");
    let mut client = gateway.connect();
    for _ in 0..2 {
        let answer = client.get("/", &[]);
        assert_eq!((answer.status(), answer.text()), (200, "hello"));
    }
}

#[test]
fn a_get_may_have_a_body() {
    let upstream = Upstream::ok();
    let gateway = Gateway::before(&upstream, "");
    assert_eq!(gateway.connect().ask("GET", "/", &[], "question").status(), 200);
    assert_eq!(upstream.only_request().text(), "question");
}

#[test]
fn a_caller_who_waits_for_it_is_told_to_continue() {
    let upstream = Upstream::ok();
    let gateway = Gateway::before(&upstream, "");
    let mut client = gateway.connect();
    client.send("POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n");
    assert_eq!(client.response().status(), 100);
    client.send("body");
    assert_eq!(client.response().text(), "hello");
    assert_eq!(upstream.only_request().text(), "body");
}

#[test]
fn a_caller_who_is_refused_is_not_told_to_continue() {
    let upstream = Upstream::ok();
    let gateway = Gateway::before(&upstream, "[rule.once]\nquota = '1/h'");
    assert_eq!(gateway.get("/", &[]).status(), 200);
    let mut client = gateway.connect();
    client.send("POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n");
    assert_eq!(client.response().status(), 429);
    assert!(client.is_closed(), "nobody knows whether the body comes");
    assert_eq!(upstream.requests().len(), 1);
}

#[test]
fn a_refused_request_with_a_body_does_not_spoil_the_next() {
    let upstream = Upstream::ok();
    let gateway = Gateway::before(
        &upstream,
        "[rule.once]\nquota = '1/h'\n[[route]]\nmatch = { method = 'POST' }\nrules = ['once']\n[[route]]\nname = 'rest'",
    );
    let mut client = gateway.connect();
    assert_eq!(client.ask("POST", "/", &[], "first").status(), 200);
    let body = "GET /inside HTTP/1.1\r\nHost: a\r\n\r\n";
    client.send(request("POST", "/", &[], body) + &request("GET", "/next", &[], ""));
    assert_eq!(client.response().status(), 429);
    // Whoever keeps the connection must have read the body; who does not, closes.
    let next = client.try_response().map(|answer| answer.status());
    assert!(matches!(next, None | Some(200)), "{next:?}");
    assert!(!upstream.targets().contains(&"/inside".to_owned()));
}

#[test]
fn a_refused_upload_gets_its_answer() {
    let upstream = Upstream::ok();
    let gateway = Gateway::before(&upstream, "[rule.once]\nquota = '1/h'");
    assert_eq!(gateway.get("/", &[]).status(), 200);
    let mut client = gateway.connect();
    let body = "a".repeat(4 << 20);
    // The gateway need not take it all.
    drop(client.try_send(request("POST", "/", &[], &body)));
    assert_eq!(client.response().status(), 429);
}

#[test]
fn half_a_request_is_not_passed_off_as_a_whole_one() {
    for half in [
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\nabc",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
    ] {
        let (begun, ended) = (Latch::default(), Latch::default());
        let (tell_begun, tell_ended) = (begun.clone(), ended.clone());
        let upstream = Upstream::scripted(move |wire| {
            wire.until(b"abc");
            tell_begun.open();
            let rest = String::from_utf8(wire.rest()).unwrap();
            assert!(matches!(rest.as_str(), "" | "\r\n"), "{rest:?}");
            tell_ended.open();
        });
        let gateway = Gateway::before(&upstream, "");
        let mut client = gateway.connect();
        client.send(half);
        begun.wait();
        client.cut();
        ended.wait();
    }
}

#[test]
fn half_of_a_short_body_is_not_passed_on_at_all() {
    let upstream = Upstream::ok();
    let gateway = Gateway::before(&upstream, "");
    let mut client = gateway.connect();
    client.send("POST /half HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nabc");
    client.cut();
    let mut client = gateway.connect();
    client.send("POST /pieces HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\n\r\nabc");
    assert_eq!(client.send("def").response().status(), 200);
    let seen = upstream.requests();
    assert_eq!(seen.iter().map(|request| request.target()).collect::<Vec<_>>(), ["/pieces"]);
    assert_eq!(seen[0].text(), "abcdef");
}

#[test]
fn bodies_stream_both_ways_chunk_by_chunk() {
    // Sends back each chunk when it comes: nothing would move if somebody waited for the whole.
    let upstream = Upstream::scripted(|wire| {
        wire.head();
        wire.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
        while let Some(Some(chunk)) = wire.chunk() {
            wire.send(format!("{:x}\r\n{}\r\n", chunk.len(), String::from_utf8(chunk).unwrap()));
        }
        wire.send("0\r\n\r\n");
    });
    let gateway = Gateway::before(&upstream, "");
    let mut client = gateway.connect();
    client.send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
    assert!(client.head().unwrap().first_line.contains("200"));
    for word in ["one", "two", "three"] {
        client.send(format!("{:x}\r\n{word}\r\n", word.len()));
        assert_eq!(client.chunk().unwrap().unwrap(), word.as_bytes());
    }
    client.send("0\r\n\r\n");
    assert_eq!(client.chunk(), Some(None));
}

#[test]
fn trailers_go_both_ways() {
    let upstream = Upstream::answering(|_| {
        Answer::raw(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n5\r\nhello\r\n0\r\nX-Sum: 5\r\n\r\n",
        )
    });
    let gateway = Gateway::before(&upstream, "");
    let mut client = gateway.connect();
    client.send(
        "POST / HTTP/1.1\r\nHost: a\r\nTE: trailers\r\nConnection: TE\r\nTransfer-Encoding: chunked\r\n\
         Trailer: X-Count\r\n\r\n4\r\nbody\r\n0\r\nX-Count: 4\r\n\r\n",
    );
    let answer = client.response();
    assert_eq!((answer.text(), answer.trailers.get("x-sum")), ("hello", Some("5")));
    let request = upstream.only_request();
    assert_eq!((request.text(), request.trailers.get("x-count")), ("body", Some("4")));
}

#[test]
fn an_early_answer_reaches_the_caller_who_still_sends() {
    let done = Latch::default();
    let wait = done.clone();
    let upstream = Upstream::scripted(move |wire| {
        if wire.head().is_some() {
            wire.send("HTTP/1.1 413 Content Too Large\r\nContent-Length: 3\r\n\r\nbig");
            wait.wait();
        }
    });
    let gateway = Gateway::before(&upstream, "");
    let mut client = gateway.connect();
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\nbegin");
    let answer = client.response();
    assert_eq!((answer.status(), answer.text()), (413, "big"));
    done.open();
    // A connection with half a request in it is of no use to the next caller.
    client.cut();
    assert_eq!(gateway.get("/", &[]).status(), 413);
    assert_eq!(upstream.connections(), 2);
}

#[test]
fn requests_sent_at_once_are_answered_in_order() {
    let upstream = Upstream::answering(|request| Answer::text(request.target()));
    let gateway = Gateway::before(&upstream, "");
    let mut client = gateway.connect();
    let all: String = (0..20).map(|number| request("GET", &format!("/{number}"), &[], "")).collect();
    client.send(all);
    for number in 0..20 {
        assert_eq!(client.response().text(), format!("/{number}"));
    }
}

#[test]
fn a_caller_who_closes_its_sending_side_still_gets_its_answer() {
    let upstream = Upstream::ok();
    let gateway = Gateway::before(&upstream, "");
    let mut client = gateway.connect();
    client.send("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    let answer = client.response();
    assert_eq!((answer.text(), answer.get("connection")), ("hello", Some("close")));
    assert!(client.is_closed());
}

#[test]
fn a_large_body_comes_whole_both_ways() {
    let upstream = Upstream::answering(|request| Answer::text(request.text()));
    let gateway = Gateway::before(&upstream, "");
    let body = "0123456789abcdef".repeat(64 * 1024);
    let mut client = gateway.connect();
    let answer = client.ask("POST", "/", &[], &body);
    assert!(answer.text() == body, "{} bytes came back", answer.body.len());
}
