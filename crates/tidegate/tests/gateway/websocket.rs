//! Connections that turn to another protocol.

use std::time::{Duration, Instant};

use crate::support::{Answer, Gateway, Upstream, Wire};

/// Turns every connection that asks to, and sends back what comes; answers others with a text.
fn echo(wire: &mut Wire) {
    while let Some(request) = wire.request() {
        let Some(upgrade) = request.get("upgrade") else {
            wire.send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nplain");
            continue;
        };
        assert_eq!(request.get("connection").map(str::to_ascii_lowercase).as_deref(), Some("upgrade"));
        wire.send(format!(
            "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: {upgrade}\r\n\
             Sec-WebSocket-Accept: x\r\n\r\nwelcome"
        ));
        while let Some(line) = wire.until(b"\n") {
            wire.send(line).send("\n");
        }
    }
}

fn start(upstream: &Upstream) -> Gateway {
    Gateway::before(
        upstream,
        "[[route]]
        name = 'chat'
        match = { path = '/chat' }
        upgrade = ['websocket']
        [[route]]
        name = 'rest'",
    )
}

fn ask(target: &str, protocol: &str) -> String {
    format!(
        "GET {target} HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, Upgrade\r\nUpgrade: {protocol}\r\n\
         Sec-WebSocket-Key: x\r\nSec-WebSocket-Version: 13\r\n\r\n"
    )
}

#[test]
fn a_route_that_allows_it_turns_to_websocket() {
    let upstream = Upstream::scripted(echo);
    let gateway = start(&upstream);
    let mut client = gateway.connect();
    client.send(ask("/chat", "websocket"));
    let answer = client.response();
    assert_eq!((answer.status(), answer.get("upgrade")), (101, Some("websocket")));
    assert_eq!(answer.get("sec-websocket-accept"), Some("x"));
    assert_eq!(client.take(7), b"welcome");
    for word in ["one", "\0\r\n two", "GET / HTTP/1.1\r"] {
        client.send(format!("{word}\n"));
        assert_eq!(client.take(word.len() + 1), format!("{word}\n").as_bytes());
    }
    client.finish_sending();
    assert!(client.is_closed());
}

#[test]
fn what_is_sent_right_behind_the_request_is_not_lost() {
    let upstream = Upstream::scripted(echo);
    let gateway = start(&upstream);
    let mut client = gateway.connect();
    client.send(ask("/chat", "WebSocket") + "early\n");
    assert_eq!(client.response().status(), 101);
    assert_eq!(client.take(13), b"welcomeearly\n");
}

#[test]
fn other_routes_and_protocols_do_not_turn() {
    let upstream = Upstream::scripted(echo);
    let gateway = start(&upstream);
    for (target, protocol) in [("/other", "websocket"), ("/chat", "h2c"), ("/chat", "websocket, h2c")] {
        let mut client = gateway.connect();
        client.send(ask(target, protocol));
        let answer = client.response();
        assert_eq!((answer.status(), answer.text()), (200, "plain"), "{target} {protocol}");
        assert_eq!(client.get("/", &[]).status(), 200, "it is still HTTP");
    }
}

#[test]
fn a_service_that_turns_unasked_is_not_believed() {
    let upstream = Upstream::answering(|_| {
        Answer::raw("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
    });
    let gateway = start(&upstream);
    let mut client = gateway.connect();
    client.send(ask("/other", "websocket"));
    assert_eq!(client.response().status(), 502);
}

#[test]
fn an_upgrade_meets_the_rules_of_its_route() {
    let upstream = Upstream::scripted(echo);
    let gateway = Gateway::before(
        &upstream,
        "[rule.once]\nquota = '1/h'\n[[route]]\nname = 'chat'\nupgrade = ['websocket']\nrules = ['once']",
    );
    let mut first = gateway.connect();
    assert_eq!(first.send(ask("/chat", "websocket")).response().status(), 101);
    let mut second = gateway.connect();
    assert_eq!(second.send(ask("/chat", "websocket")).response().status(), 429);
    assert_eq!(second.send(ask("/chat", "websocket")).response().status(), 429, "it is still HTTP");
}

#[test]
fn a_turned_connection_is_ended_when_nothing_goes_over_it() {
    let upstream = Upstream::scripted(echo);
    let gateway = Gateway::start(&format!(
        "upstream = '{}'
        [[listener]]
        bind = '127.0.0.1:0'
        idle_timeout = '500ms'
        [[route]]
        name = 'chat'
        upgrade = ['websocket']",
        upstream.url()
    ));
    let mut client = gateway.connect();
    client.send(ask("/chat", "websocket"));
    assert_eq!(client.response().status(), 101);
    assert_eq!(client.take(7), b"welcome");
    let begun = Instant::now();
    // It lasts as long as something goes over it, and then no longer.
    while begun.elapsed() < Duration::from_secs(1) {
        client.send("word\n");
        assert_eq!(client.take(5), b"word\n");
    }
    assert!(client.is_closed());
    assert!(begun.elapsed() > Duration::from_millis(1200), "{:?}", begun.elapsed());
}
