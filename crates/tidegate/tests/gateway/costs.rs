//! What requests cost, reserved when they come and settled when they have gone.

use crate::support::{Answer, Gateway, Upstream};

/// What is left of the only rule.
fn left(answer: &crate::support::Message) -> u64 {
    let state = answer.get("ratelimit").unwrap_or_else(|| panic!("{answer:#?}"));
    let (_, left) = state.split_once(";r=").unwrap();
    left.split(';').next().unwrap().parse().unwrap()
}

/// A service that answers with as many bytes as the target says, and says itself what that has cost.
fn costly() -> Upstream {
    Upstream::answering(|request| {
        let size: usize = request.target().trim_start_matches('/').parse().unwrap();
        Answer::with(&[("x-cost", &(size / 10).to_string())], &"a".repeat(size))
    })
}

#[test]
fn methods_have_their_own_cost() {
    let upstream = Upstream::ok();
    let gateway = Gateway::before(
        &upstream,
        "[rule.shared]
        quota = '10/h'
        [[route]]
        rules = ['shared']
        cost = { POST = 5, default = 2 }",
    );
    let mut client = gateway.connect();
    assert_eq!(left(&client.ask("POST", "/", &[], "x")), 5);
    assert_eq!(left(&client.get("/", &[])), 3);
    let refused = client.ask("POST", "/", &[], "x");
    assert_eq!((refused.status(), left(&refused)), (429, 3));
    assert_eq!(left(&client.get("/", &[])), 1);
    assert_eq!(client.get("/", &[]).status(), 429);
}

#[test]
fn bytes_of_the_answer_are_settled_when_it_has_gone() {
    let upstream = costly();
    let gateway = Gateway::before(
        &upstream,
        "[rule.bytes]\nquota = '10000/h'\ncost = { estimate = 100, settle = 'bytes:response' }",
    );
    let mut client = gateway.connect();
    assert_eq!(left(&client.get("/3000", &[])), 9900, "the estimate is taken first");
    assert_eq!(left(&client.get("/10", &[])), 6900, "then the truth");
    assert_eq!(left(&client.get("/0", &[])), 6890);
    let answer = client.get("/8000", &[]);
    assert_eq!(
        (answer.status(), left(&answer)),
        (200, 6890),
        "what a request really costs is known too late"
    );
    assert_eq!(client.get("/0", &[]).status(), 429);
}

#[test]
fn bytes_are_called_so_in_the_fields() {
    let upstream = costly();
    let gateway = Gateway::before(
        &upstream,
        "[rule.bytes]\nquota = '10000/h'\ncost = { estimate = 100, settle = 'bytes:response' }",
    );
    let answer = gateway.get("/1", &[]);
    assert_eq!(answer.get("ratelimit-policy"), Some("\"bytes\";q=10000;qu=\"content-bytes\";w=3600"));
}

#[test]
fn bytes_of_the_request_are_settled_too() {
    let upstream = Upstream::ok();
    let gateway = Gateway::before(
        &upstream,
        "[rule.bytes]\nquota = '1000/h'\ncost = { estimate = 1, settle = 'bytes:request' }",
    );
    let mut client = gateway.connect();
    client.ask("POST", "/", &[], &"a".repeat(600));
    assert_eq!(left(&client.get("/", &[])), 399);
}

#[test]
fn the_service_says_what_a_request_has_cost() {
    let upstream = costly();
    let gateway = Gateway::before(
        &upstream,
        "[rule.work]\nquota = '1000/h'\ncost = { estimate = 10, settle = 'response_header:x-cost' }",
    );
    let mut client = gateway.connect();
    let answer = client.get("/500", &[]);
    assert_eq!(answer.get("x-cost"), Some("50"), "the field is passed on");
    assert_eq!(left(&answer), 950, "it is known before the answer goes on");
    assert_eq!(left(&client.get("/0", &[])), 950, "a request that cost nothing is given back whole");
}

#[test]
fn two_at_once_are_both_reserved() {
    let latch = crate::support::Latch::default();
    let held = latch.clone();
    let upstream = Upstream::answering(move |_| {
        held.wait();
        Answer::with(&[("x-cost", "0")], "")
    });
    let gateway = Gateway::before(
        &upstream,
        "[rule.work]\nquota = '100/h'\ncost = { estimate = 60, settle = 'response_header:x-cost' }",
    );
    let mut first = gateway.connect();
    first.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    upstream.wait_for(1);
    assert_eq!(gateway.get("/", &[]).status(), 429, "the first may cost as much as was reserved");
    latch.open();
    assert_eq!(first.response().status(), 200);
    assert!((0..1000).any(|_| gateway.get("/", &[]).status() == 200), "it cost nothing");
}
