//! What a request costs whose caller does not wait for the answer.

use http::Request;

use super::{before, have_left};
use crate::support::{Answer, Gateway, H2Client, Latch, Message, Upstream, full, request, until};

/// 1000 an hour, with this as the cost of a request.
fn rule(cost: &str) -> String {
    format!("[rule.work]\nquota = '1000/h'\ncost = {{ {cost} }}")
}

const BY_HEADER: &str = "estimate = 10, settle = 'response_header:x-cost'";

/// What is left of the only rule.
fn left(answer: &Message) -> u64 {
    let state = answer.get("ratelimit").unwrap_or_else(|| panic!("{answer:#?}"));
    let (_, left) = state.split_once(";r=").unwrap();
    left.split(';').next().unwrap().parse().unwrap()
}

/// What is left after all that is known by now; to ask costs nothing.
fn left_now(gateway: &Gateway) -> u64 {
    left(&gateway.get("/free", &[]))
}

/// A service that holds `/held` until the latch is open, and says what each request has cost it.
fn costly(latch: &Latch) -> Upstream {
    let latch = latch.clone();
    Upstream::answering(move |request| match request.target() {
        "/free" => Answer::with(&[("x-cost", "0")], ""),
        "/silent" => Answer::silence(),
        "/broken" => Answer::raw("").closing(),
        _ => {
            latch.wait();
            Answer::with(&[("x-cost", "400")], "hello")
        }
    })
}

/// Starts work and leaves before there is an answer, over either protocol.
fn leave(gateway: &Gateway, upstream: &Upstream, target: &str, is_h2: bool) {
    let before = upstream.requests().len();
    if is_h2 {
        let client = H2Client::connect(gateway.address());
        client.runtime().block_on(async {
            let asked = Request::get(format!("http://a{target}")).body(full("")).unwrap();
            let asked = tokio::spawn(client.sender().send_request(asked));
            tokio::task::block_in_place(|| upstream.wait_for(before + 1));
            asked.abort();
            drop(asked.await);
        });
    } else {
        let mut client = gateway.connect();
        client.send(request("GET", target, &[], ""));
        upstream.wait_for(before + 1);
        client.cut();
    }
}

#[test]
fn the_answer_says_what_work_has_cost_whose_caller_has_left() {
    for is_h2 in [false, true] {
        let latch = Latch::default();
        let upstream = costly(&latch);
        let gateway = before(&upstream.url(), "", &rule(BY_HEADER));
        leave(&gateway, &upstream, "/held", is_h2);
        have_left(&gateway, 1);
        assert_eq!(left_now(&gateway), 990, "the estimate stands meanwhile");
        latch.open();
        until(|| left_now(&gateway) == 600);
    }
}

#[test]
fn without_an_answer_the_policy_says_what_work_has_cost() {
    for (more, expected) in [("", 990), (", abandoned = 'estimate'", 990), (", abandoned = 'max:250'", 750)] {
        for (target, is_h2) in [("/silent", false), ("/silent", true), ("/broken", false)] {
            let upstream = costly(&Latch::default());
            let gateway = before(&upstream.url(), "timeout = '1s'", &rule(&format!("{BY_HEADER}{more}")));
            leave(&gateway, &upstream, target, is_h2);
            until(|| left_now(&gateway) == expected);
        }
    }
}

#[test]
fn a_caller_who_stays_is_charged_the_same_when_no_answer_comes() {
    let upstream = costly(&Latch::default());
    let cost = rule(&format!("{BY_HEADER}, abandoned = 'max:250'"));
    let gateway = before(&upstream.url(), "timeout = '100ms'", &cost);
    assert_eq!(gateway.get("/silent", &[]).status(), 504);
    assert_eq!(left_now(&gateway), 750);
    assert_eq!(gateway.get("/broken", &[]).status(), 502);
    assert_eq!(left_now(&gateway), 500);
}

#[test]
fn what_could_not_be_sent_costs_no_more_than_its_estimate() {
    let mut gone = Upstream::ok().url();
    gone.truncate(gone.rfind(':').unwrap());
    let cost = rule(&format!("{BY_HEADER}, abandoned = 'max:250'"));
    // Nothing listens on the port that is for nothing.
    let gateway = before(&format!("{gone}:9"), "", &cost);
    let answers: Vec<Message> = (0..2).map(|_| gateway.get("/", &[])).collect();
    assert_eq!(answers.iter().map(Message::status).collect::<Vec<_>>(), [502, 502]);
    assert_eq!(answers.iter().map(left).collect::<Vec<_>>(), [990, 980]);
}

#[test]
fn leaving_saves_no_bytes_of_the_answer() {
    let latch = Latch::default();
    let held = latch.clone();
    let upstream = Upstream::scripted(move |wire| {
        while let Some(request) = wire.request() {
            let length = if request.target() == "/free" { 0 } else { 2_000 };
            if request.target() == "/held" {
                held.wait();
            }
            // The gateway may have closed it.
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n");
            if wire.try_send(head + &"x".repeat(length / 4)).is_err() || length == 0 {
                continue;
            }
            held.wait();
            drop(wire.try_send("x".repeat(length / 4 * 3)));
        }
    });
    let cost = rule("estimate = 100, settle = 'bytes:response'");
    let free = |gateway: &Gateway| left(&gateway.get("/free", &[]));
    // Of the one who asks the estimate is still taken.
    let gateway = before(&upstream.url(), "", &cost);
    let mut client = gateway.connect();
    client.send(request("GET", "/held", &[], ""));
    until(|| upstream.bytes() > 0);
    client.cut();
    have_left(&gateway, 1);
    assert_eq!([free(&gateway), free(&gateway)], [800, 800], "before the head: the estimate");

    let gateway = before(&upstream.url(), "", &cost);
    let mut client = gateway.connect();
    client.send(request("GET", "/half", &[], ""));
    assert!(client.head().is_some());
    client.take(500);
    client.cut();
    until(|| free(&gateway) == 400);
    latch.open();
    assert_eq!(free(&gateway), 400, "in the middle: what has gone");
}

#[test]
fn breaking_off_saves_no_bytes_of_the_request() {
    let upstream = Upstream::ok();
    let gateway = before(&upstream.url(), "", &rule("estimate = 100, settle = 'bytes:request'"));
    let mut client = gateway.connect();
    client.send("POST /half HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\nabc");
    until(|| upstream.bytes() > 0);
    client.cut();
    until(|| gateway.output().so_far().iter().any(|line| line.contains("/half")));
    assert_eq!([left(&gateway.get("/", &[])), left(&gateway.get("/", &[]))], [800, 800]);
}

#[test]
fn leaving_the_queue_costs_the_estimate() {
    let latch = Latch::default();
    let upstream = Upstream::holding(&latch);
    let fixed = "concurrency = { algorithm = 'fixed', max = 1, queue = { timeout = '60s' } }";
    let cost = rule("estimate = 100, settle = 'bytes:response', abandoned = 'max:500'");
    let gateway = before(&upstream.url(), fixed, &cost);
    let (mut first, mut second) = (gateway.connect(), gateway.connect());
    assert_eq!(second.get("/", &[]).status(), 200);
    first.send(request("GET", "/held", &[], ""));
    upstream.wait_for(2);
    second.send(request("GET", "/waits", &[], ""));
    second.cut();
    have_left(&gateway, 1);
    latch.open();
    assert_eq!(left(&first.response()), 795, "five bytes of one answer, and two estimates");
    assert_eq!(left(&gateway.get("/", &[])), 790, "one of them has come to five bytes");
}
