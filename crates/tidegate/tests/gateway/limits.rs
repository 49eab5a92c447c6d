//! Heads have a bound, and whoever is beyond it is told.

use crate::support::{Gateway, Upstream, request};

fn start(upstream: &Upstream, limits: &str) -> Gateway {
    Gateway::start(&format!(
        "upstream = '{}'\n[[listener]]\nname = 'public'\nbind = '127.0.0.1:0'\n{limits}",
        upstream.url()
    ))
}

#[test]
fn a_head_that_is_too_large_is_431() {
    let upstream = Upstream::ok();
    let gateway = start(&upstream, "max_header_bytes = '16KiB'");
    let mut client = gateway.connect();
    let fitting = "a".repeat(12 * 1024);
    assert_eq!(client.get("/", &[("x-a", &fitting)]).status(), 200);
    let beyond = "a".repeat(17 * 1024);
    assert_eq!(client.get("/", &[("x-a", &beyond)]).status(), 431);
    assert!(client.is_closed());
    assert_eq!(upstream.requests().len(), 1);
}

#[test]
fn a_target_that_is_too_long_is_refused() {
    let upstream = Upstream::ok();
    let gateway = start(&upstream, "max_header_bytes = '16KiB'");
    let mut client = gateway.connect();
    let status = client.get(&format!("/{}", "a".repeat(17 * 1024)), &[]).status();
    assert!(matches!(status, 414 | 431), "{status}");
    assert_eq!(upstream.bytes(), 0);
}

#[test]
fn too_many_fields_are_431() {
    let upstream = Upstream::ok();
    let gateway = start(&upstream, "max_headers = 20");
    let names: Vec<String> = (0..20).map(|number| format!("x-{number}")).collect();
    let fields: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "1")).collect();
    // The Host is one of them.
    assert_eq!(gateway.get("/", &fields[..19]).status(), 200);
    let mut client = gateway.connect();
    client.send(request("GET", "/", &fields, "") + "GET /behind HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(client.response().status(), 431);
    assert!(client.is_closed());
    assert_eq!(upstream.requests().len(), 1);
}

#[test]
fn a_head_that_does_not_come_is_given_up() {
    let upstream = Upstream::ok();
    let gateway = start(&upstream, "head_timeout = '100ms'");
    let mut silent = gateway.connect();
    let mut slow = gateway.connect();
    slow.send("GET / HTTP/1.1\r\nHost: a\r\nX-A: ");
    assert!(silent.is_closed(), "a first head counts from the connection's beginning");
    let rest = String::from_utf8(slow.rest()).unwrap();
    assert!(rest.is_empty() || rest.starts_with("HTTP/1.1 408"), "{rest}");
    assert_eq!(upstream.bytes(), 0);
}

#[test]
fn an_idle_connection_is_closed() {
    let upstream = Upstream::ok();
    let gateway = start(&upstream, "idle_timeout = '100ms'");
    let mut client = gateway.connect();
    assert_eq!(client.get("/", &[]).status(), 200);
    assert!(client.is_closed());
}

#[test]
fn a_body_that_stops_is_given_up() {
    let upstream = Upstream::ok();
    let gateway = start(&upstream, "body_idle_timeout = '100ms'");
    let mut client = gateway.connect();
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nabc");
    client.rest();
    assert!(upstream.requests().is_empty());
}

#[test]
fn connections_beyond_the_most_wait_until_there_is_room() {
    let upstream = Upstream::ok();
    let gateway = start(&upstream, "max_connections = 2");
    let (mut first, mut second) = (gateway.connect(), gateway.connect());
    assert_eq!([first.get("/1", &[]).status(), second.get("/2", &[]).status()], [200, 200]);
    let mut third = gateway.connect();
    third.send(request("GET", "/3", &[], ""));
    assert_eq!(second.get("/4", &[]).status(), 200);
    assert_eq!(upstream.targets(), ["/1", "/2", "/4"]);
    drop(first);
    assert_eq!(third.response().status(), 200);
}

#[test]
fn trusted_proxies_may_have_any_number_of_connections() {
    let upstream = Upstream::ok();
    let gateway = Gateway::start(&format!(
        "upstream = '{}'
        [server]
        trusted_proxies = ['127.0.0.2']
        [[listener]]
        bind = '127.0.0.1:0'
        max_connections_per_address = 1",
        upstream.url()
    ));
    let mut proxies: Vec<_> = (0..5).map(|_| gateway.connect_from([127, 0, 0, 2].into())).collect();
    assert!(proxies.iter_mut().all(|proxy| proxy.get("/", &[]).status() == 200));
    let mut stranger = gateway.connect_from([127, 0, 0, 3].into());
    assert_eq!(stranger.get("/", &[]).status(), 200);
    assert!(gateway.connect_from([127, 0, 0, 3].into()).is_closed());
}

#[test]
fn an_address_with_too_many_connections_is_turned_away_and_others_are_not_kept() {
    let upstream = Upstream::ok();
    let gateway = start(&upstream, "max_connections_per_address = 2");
    let mut first = gateway.connect();
    let mut second = gateway.connect();
    assert_eq!([first.get("/", &[]).status(), second.get("/", &[]).status()], [200, 200]);
    assert!(gateway.connect().is_closed());
    drop(first);
    // The gateway sees the end of the first a moment later.
    let served = (0..1000).any(|_| {
        let mut client = gateway.connect();
        client.try_send(request("GET", "/", &[], "")).is_ok() && client.try_response().is_some()
    });
    assert!(served, "its place is free again");
    assert_eq!(second.get("/", &[]).status(), 200);
}
