//! HTTP/2 on either side.

use http::{HeaderMap, Request, Response};
use http_body_util::BodyExt;

use crate::support::{Answer, Gateway, H2Client, H2Upstream, Upstream, full, with_trailers};

fn before_h2(upstream: &H2Upstream, rest: &str) -> Gateway {
    Gateway::start(&format!(
        "listen = '127.0.0.1:0'\n[upstream.service]\nendpoints = ['{}']\nprotocol = 'h2'\n{rest}",
        upstream.url()
    ))
}

#[test]
fn prior_knowledge_is_enough_without_encryption() {
    let upstream = Upstream::ok();
    let gateway = Gateway::before(&upstream, "");
    let client = H2Client::connect(gateway.address());
    for _ in 0..3 {
        let answer = client.get("http://service.test:81/x?y", &[("x-kept", "1")]);
        assert_eq!((answer.status().as_u16(), &answer.body[..]), (200, &b"hello"[..]));
    }
    let request = &upstream.requests()[0];
    assert_eq!((request.target(), request.get("host")), ("/x?y", Some("service.test:81")));
    assert_eq!((request.get("x-kept"), request.get("via")), (Some("1"), Some("2.0 tidegate")));
    assert_eq!(request.get("x-forwarded-for"), Some("127.0.0.1"));
    assert_eq!(gateway.get("/", &[]).status(), 200, "the same port speaks HTTP/1");
}

#[test]
fn a_listener_without_h2_does_not_speak_it() {
    let upstream = Upstream::ok();
    let gateway = Gateway::start(&format!(
        "upstream = '{}'\n[[listener]]\nbind = '127.0.0.1:0'\nprotocols = ['http/1.1']",
        upstream.url()
    ));
    let mut client = gateway.connect();
    client.send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    let answer = String::from_utf8(client.rest()).unwrap();
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 400"), "{answer}");
    assert_eq!(upstream.bytes(), 0);
}

#[test]
fn rules_hold_on_h2_too() {
    let upstream = Upstream::ok();
    let gateway = Gateway::before(&upstream, "[rule.per_key]\nkey = 'header:x-api-key'\nquota = '1/h'");
    let client = H2Client::connect(gateway.address());
    let alice = [("x-api-key", "alice")];
    assert_eq!(client.get("http://a/", &alice).status(), 200);
    let refused = client.get("http://a/", &alice);
    assert_eq!(
        (refused.status().as_u16(), refused.get("content-type")),
        (429, Some("application/problem+json"))
    );
    assert_eq!(client.get("http://a/", &[("x-api-key", "bob")]).status(), 200);
    assert_eq!(gateway.get("/", &alice).status(), 429, "one counter for both protocols");
}

#[test]
fn crumbs_of_cookies_are_joined_for_http_1() {
    let upstream = Upstream::ok();
    let gateway = Gateway::before(&upstream, "");
    H2Client::connect(gateway.address()).get("http://a/", &[("cookie", "a=1"), ("cookie", "b=2")]);
    assert_eq!(upstream.only_request().get("cookie"), Some("a=1; b=2"));
}

#[test]
fn an_authority_and_another_host_are_refused() {
    let upstream = Upstream::ok();
    let gateway = Gateway::before(&upstream, "");
    let client = H2Client::connect(gateway.address());
    assert_eq!(client.get("http://a/", &[("host", "b")]).status(), 400);
    assert_eq!(upstream.bytes(), 0);
    assert_eq!(client.get("http://a/", &[("host", "a")]).status(), 200);
}

#[test]
fn too_many_fields_are_431_on_h2_too() {
    let upstream = Upstream::ok();
    let gateway = Gateway::start(&format!(
        "upstream = '{}'\n[[listener]]\nbind = '127.0.0.1:0'\nmax_headers = 20",
        upstream.url()
    ));
    let names: Vec<String> = (0..25).map(|number| format!("x-{number}")).collect();
    let fields: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "1")).collect();
    let client = H2Client::connect(gateway.address());
    assert_eq!(client.get("http://a/", &fields[..15]).status(), 200);
    assert_eq!(client.get("http://a/", &fields).status(), 431);
    assert_eq!(upstream.requests().len(), 1);
}

#[test]
fn a_head_that_is_too_large_is_431_on_h2_too() {
    let upstream = Upstream::ok();
    let gateway = Gateway::start(&format!(
        "upstream = '{}'\n[[listener]]\nbind = '127.0.0.1:0'\nmax_header_bytes = '8KiB'",
        upstream.url()
    ));
    let client = H2Client::connect(gateway.address());
    let large = "a".repeat(9 * 1024);
    // A caller that was told the bound does not even send it.
    let request = Request::get("http://a/").header("x-a", large).body(full("")).unwrap();
    let refused = client.ask(request);
    assert!(refused.as_ref().map_or(true, |answer| answer.status() == 431), "{refused:?}");
    assert_eq!(upstream.bytes(), 0);
}

#[test]
fn many_requests_share_a_connection() {
    let upstream = Upstream::answering(|request| Answer::text(request.target()));
    let gateway = Gateway::before(&upstream, "");
    let client = H2Client::connect(gateway.address());
    client.runtime().block_on(async {
        let mut answers = Vec::new();
        for number in 0..200 {
            let mut sender = client.sender();
            sender.ready().await.unwrap();
            let request = Request::get(format!("http://a/{number}")).body(full("")).unwrap();
            answers.push(sender.send_request(request));
        }
        for answer in answers {
            assert_eq!(answer.await.unwrap().status(), 200);
        }
    });
    assert_eq!(upstream.requests().len(), 200);
}

#[test]
fn a_service_may_speak_h2() {
    let upstream =
        H2Upstream::answering(|_| Response::builder().header("x-kept", "1").body(full("hello")).unwrap());
    let gateway = before_h2(&upstream, "");
    let mut client = gateway.connect();
    for _ in 0..3 {
        let answer = client.ask("POST", "/x?y", &[("Connection", "x-gone"), ("X-Gone", "1")], "body");
        assert_eq!((answer.status(), answer.text(), answer.get("x-kept")), (200, "hello", Some("1")));
    }
    let request = &upstream.requests()[0];
    assert_eq!(request.head.uri.to_string(), "http://service.test/x?y");
    assert_eq!((&request.body[..], request.head.headers.get("x-gone")), (&b"body"[..], None));
    assert_eq!(request.head.headers["via"], "1.1 tidegate");
}

#[test]
fn trailers_pass_from_h2_to_h2() {
    let upstream = H2Upstream::answering(|request| {
        Response::new(with_trailers("hello", request.trailers.clone().unwrap_or_default()))
    });
    let gateway = before_h2(&upstream, "");
    let client = H2Client::connect(gateway.address());
    let mut trailers = HeaderMap::new();
    trailers.insert("x-sum", "4".parse().unwrap());
    let request =
        Request::post("http://a/").header("te", "trailers").body(with_trailers("body", trailers)).unwrap();
    let answer = client.ask(request).unwrap();
    assert_eq!(answer.trailers.unwrap()["x-sum"], "4");
    assert_eq!(upstream.requests()[0].head.headers["te"], "trailers");
}

#[test]
fn trailers_pass_from_http_1_to_h2() {
    let upstream = Upstream::answering(|_| {
        Answer::raw(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n5\r\nhello\r\n0\r\nX-Sum: 5\r\n\r\n",
        )
    });
    let gateway = Gateway::before(&upstream, "");
    let answer = H2Client::connect(gateway.address()).get("http://a/", &[("te", "trailers")]);
    assert_eq!(answer.body, "hello");
    assert_eq!(answer.trailers.unwrap()["x-sum"], "5");
}

#[test]
fn a_body_of_unknown_length_reaches_http_1_in_chunks() {
    let upstream = Upstream::ok();
    let gateway = Gateway::before(&upstream, "");
    let client = H2Client::connect(gateway.address());
    // Whatever goes through a function may have changed its length.
    let body = full("body").map_frame(|frame| frame).boxed();
    assert_eq!(client.ask(Request::post("http://a/").body(body).unwrap()).unwrap().status(), 200);
    let request = upstream.only_request();
    assert_eq!((request.get("transfer-encoding"), request.text()), (Some("chunked"), "body"));
}

#[test]
fn the_answer_to_head_keeps_its_length() {
    let upstream = Upstream::answering(|_| Answer::raw("HTTP/1.1 200 OK\r\nContent-Length: 1234\r\n\r\n"));
    let gateway = Gateway::before(&upstream, "");
    let request = Request::head("http://a/").body(full("")).unwrap();
    let answer = H2Client::connect(gateway.address()).ask(request).unwrap();
    assert_eq!((answer.get("content-length"), answer.body.len()), (Some("1234"), 0));
}

#[test]
fn half_an_answer_is_a_reset_and_not_an_end() {
    let upstream =
        Upstream::answering(|_| Answer::raw("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc").closing());
    let gateway = Gateway::before(&upstream, "");
    let request = Request::get("http://a/").body(full("")).unwrap();
    assert!(H2Client::connect(gateway.address()).ask(request).is_err());
}

#[test]
fn a_request_that_is_given_up_is_given_up_alone() {
    let upstream = Upstream::answering(|request| match request.target() {
        "/held" => Answer::silence(),
        _ => Answer::text("hello"),
    });
    let gateway = Gateway::before(&upstream, "");
    let client = H2Client::connect(gateway.address());
    client.runtime().block_on(async {
        let mut sender = client.sender();
        let held = sender.send_request(Request::get("http://a/held").body(full("")).unwrap());
        let held = tokio::spawn(held);
        tokio::task::block_in_place(|| upstream.wait_for(1));
        held.abort();
        assert!(held.await.is_err());
    });
    assert_eq!(client.get("http://a/", &[]).status(), 200, "others on the connection go on");
}
