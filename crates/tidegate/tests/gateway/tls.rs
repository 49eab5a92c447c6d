//! Encrypted connections on both sides.

use http::{Response, Version};

use crate::support::{Answer, Client, Gateway, H2Upstream, Signal, Upstream, full, tls};

fn start(upstream: &Upstream, protocols: &str) -> Gateway {
    let policy = format!(
        "upstream = '{}'
        [[listener]]
        bind = '127.0.0.1:0'
        protocols = {protocols}
        tls = {{ cert = 'tls.crt', key = 'tls.key' }}",
        upstream.url()
    );
    Gateway::start_with(&policy, &[("tls.crt", tls::CERT), ("tls.key", tls::KEY)])
}

#[test]
fn a_caller_and_the_gateway_agree_on_a_protocol() {
    let upstream = Upstream::ok();
    let gateway = start(&upstream, "['h2', 'http/1.1']");
    for (offered, agreed) in [
        (&["h2", "http/1.1"][..], Some("h2")),
        (&["http/1.1", "h2"], Some("h2")),
        (&["http/1.1"], Some("http/1.1")),
        (&[], None),
    ] {
        assert_eq!(tls::connect(gateway.address(), offered).1.as_deref(), agreed, "{offered:?}");
    }
}

#[test]
fn http_1_is_spoken_over_tls() {
    let upstream = Upstream::ok();
    let gateway = start(&upstream, "['h2', 'http/1.1']");
    let (mut client, _) = tls::connect(gateway.address(), &["http/1.1"]);
    for _ in 0..2 {
        assert_eq!(client.get("/", &[]).text(), "hello");
    }
    assert_eq!(upstream.requests()[0].get("x-forwarded-proto"), Some("https"));
}

#[test]
fn h2_is_spoken_over_tls() {
    let upstream = Upstream::ok();
    let gateway = start(&upstream, "['h2', 'http/1.1']");
    let client = tls::connect_h2(gateway.address());
    assert_eq!(client.get("https://service.test/x", &[]).body, "hello");
    let request = upstream.only_request();
    assert_eq!((request.target(), request.get("host")), ("/x", Some("service.test")));
    assert_eq!(request.get("x-forwarded-proto"), Some("https"));
}

#[test]
fn a_listener_for_one_protocol_offers_one() {
    let upstream = Upstream::ok();
    let gateway = start(&upstream, "['http/1.1']");
    let (mut client, agreed) = tls::connect(gateway.address(), &["h2", "http/1.1"]);
    assert_eq!((agreed.as_deref(), client.get("/", &[]).status()), (Some("http/1.1"), 200));
}

#[test]
fn a_caller_who_does_not_encrypt_is_told_so_in_plain_words() {
    let upstream = Upstream::ok();
    let gateway = start(&upstream, "['h2', 'http/1.1']");
    for asked in ["GET / HTTP/1.1\r\nHost: a\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"] {
        let mut client = Client::connect(gateway.address());
        client.send(asked);
        let rest = client.rest();
        let (head, body) = std::str::from_utf8(&rest).unwrap().split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 400 Bad Request\r\n"), "{head}");
        assert!(head.contains(&format!("content-length: {}\r\n", body.len())), "{head} {body}");
        assert_eq!(body, "This port speaks HTTPS; ask again by https://.\n");
    }
    let mut neither = Client::connect(gateway.address());
    neither.send("\0\0\0\0\0\0");
    assert!(!neither.rest().starts_with(b"HTTP"), "that may be anything");
    assert_eq!(upstream.bytes(), 0);
}

fn before_https(port: u16, variables: &[(&str, &str)]) -> Gateway {
    let policy = format!("listen = '127.0.0.1:0'\nupstream = 'https://localhost:{port}'");
    Gateway::start_among(variables, &policy)
}

#[test]
fn a_service_is_asked_over_tls() {
    let upstream = Upstream::answering_over_tls(|_| Answer::text("secret"));
    let gateway = before_https(upstream.address().port(), &[("SSL_CERT_FILE", tls::CERT_FILE)]);
    let mut client = gateway.connect();
    for _ in 0..2 {
        let answer = client.get("/", &[]);
        assert_eq!((answer.status(), answer.text()), (200, "secret"));
    }
    assert_eq!(upstream.connections(), 1);
}

#[test]
fn a_service_that_offers_h2_is_asked_in_h2() {
    let upstream = H2Upstream::answering_over_tls(|_| Response::new(full("secret")));
    let gateway = before_https(upstream.address().port(), &[("SSL_CERT_FILE", tls::CERT_FILE)]);
    assert_eq!(gateway.get("/x", &[]).text(), "secret");
    let request = &upstream.requests()[0].head;
    assert_eq!(
        (request.version, request.uri.to_string().as_str()),
        (Version::HTTP_2, "https://service.test/x")
    );
}

#[test]
fn a_service_that_nobody_vouches_for_is_not_asked() {
    let upstream = Upstream::answering_over_tls(|_| Answer::text("secret"));
    let gateway = before_https(upstream.address().port(), &[]);
    assert_eq!(gateway.get("/", &[]).status(), 502);
    assert!(upstream.requests().is_empty());
}

#[test]
fn a_renewed_certificate_is_shown_and_a_broken_one_is_not() {
    let upstream = Upstream::ok();
    let gateway = start(&upstream, "['http/1.1']");
    assert!(tls::is_shown(gateway.address(), tls::CERT));
    let (mut client, _) = tls::connect(gateway.address(), &["http/1.1"]);
    let write = |name: &str, text: &str| std::fs::write(gateway.folder().join(name), text).unwrap();

    write("tls.key", tls::RENEWED_KEY);
    gateway.signal(Signal::HUP);
    gateway.errors().find(|line| line.contains("the certificate before stays"));
    assert!(tls::is_shown(gateway.address(), tls::CERT), "a key without its certificate");

    write("tls.crt", tls::RENEWED_CERT);
    gateway.signal(Signal::HUP);
    gateway.errors().find(|line| line.contains("listener `default` shows a new certificate"));
    assert!(tls::is_shown(gateway.address(), tls::RENEWED_CERT));
    assert!(!tls::is_shown(gateway.address(), tls::CERT));
    assert_eq!(client.get("/", &[]).status(), 200, "a connection that is there stays");
}
