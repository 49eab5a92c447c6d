//! How many may be in flight.

use crate::support::{Answer, Gateway, Latch, Upstream, request};

const TWO_A_KEY: &str = "[rule.in_flight]\nkey = 'header:x-api-key'\nlimit = 2";

#[test]
fn no_more_than_the_limit_are_in_flight() {
    let latch = Latch::default();
    let upstream = Upstream::holding(&latch);
    let gateway = Gateway::before(&upstream, TWO_A_KEY);
    let alice = [("x-api-key", "alice")];
    let held = request("GET", "/held", &alice, "");
    let (mut first, mut second) = (gateway.connect(), gateway.connect());
    first.send(&held);
    second.send(&held);
    upstream.wait_for(2);

    let refused = gateway.get("/", &alice);
    assert_eq!((refused.status(), refused.get("retry-after")), (429, Some("1")));
    assert_eq!(refused.get("ratelimit-policy"), Some("\"in_flight\";q=2;qu=\"concurrent-requests\""));
    assert_eq!(refused.get("ratelimit"), Some("\"in_flight\";r=0;t=1"));
    assert_eq!(refused.json()["quota"][0]["used"], 2);
    assert_eq!(gateway.get("/", &[("x-api-key", "bob")]).status(), 200);

    latch.open();
    assert_eq!([first.response().status(), second.response().status()], [200, 200]);
    assert_eq!(gateway.get("/", &alice).status(), 200);
}

#[test]
fn an_answer_is_in_flight_until_its_last_byte() {
    let latch = Latch::default();
    let half = latch.clone();
    let upstream = Upstream::scripted(move |wire| {
        while let Some(request) = wire.request() {
            wire.send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nab");
            if request.target() == "/held" {
                half.wait();
            }
            wire.send("cd");
        }
    });
    let gateway = Gateway::before(&upstream, "[rule.in_flight]\nlimit = 1");
    let mut client = gateway.connect();
    client.send(request("GET", "/held", &[], ""));
    assert!(client.head().is_some());
    assert_eq!(client.take(2), b"ab");
    assert_eq!(gateway.get("/", &[]).status(), 429);
    latch.open();
    assert_eq!(client.take(2), b"cd");
    // Whoever has the last byte may be faster than the note that it is gone.
    assert!((0..1000).any(|_| gateway.get("/", &[]).status() == 200));
}

#[test]
fn a_failure_of_the_service_frees_the_place() {
    let upstream = Upstream::answering(|_| Answer::raw("").closing());
    let gateway = Gateway::before(&upstream, "[rule.in_flight]\nlimit = 1");
    assert_eq!(gateway.statuses(5, "/", &[]), [502; 5]);
}
