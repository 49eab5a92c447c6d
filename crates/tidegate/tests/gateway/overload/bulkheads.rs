//! What is full stands in nobody else's way.

use std::time::{Duration, Instant};

use super::{Guarded, ONE, ONE_AND_A_QUEUE};
use crate::support::{Answer, Client, Latch, Upstream};

#[test]
fn an_exempt_route_passes_while_everything_is_full() {
    let latch = Latch::default();
    let upstream = Upstream::holding(&latch);
    for (concurrency, waiting) in [(ONE, 0), (ONE_AND_A_QUEUE, 3)] {
        let guarded = Guarded::before(
            &upstream,
            concurrency,
            "[[route]]
            name = 'health'
            match = { path = '/health' }
            exempt = true
            [[route]]
            name = 'rest'",
        );
        let before = upstream.requests().len();
        let _held = guarded.send("/held", &[]);
        upstream.wait_for(before + 1);
        let _waiting: Vec<Client> = (1..=waiting).map(|count| guarded.line_up("/", &[], count)).collect();
        assert_eq!(guarded.gateway.statuses(20, "/health", &[]), [200; 20]);
        assert_eq!(guarded.orders()["in_flight"], 1, "who is exempt takes no place");
    }
    latch.open();
}

#[test]
fn the_admin_api_answers_and_stays_ready_while_everything_is_refused() {
    let latch = Latch::default();
    let upstream = Upstream::holding(&latch);
    let guarded = Guarded::before(&upstream, ONE, "");
    let mut held = guarded.send("/held", &[]);
    upstream.wait_for(1);
    let mut client = guarded.gateway.connect();
    // Long enough for everything to be shed that can be.
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(3) {
        assert_eq!(client.get("/", &[]).status(), 503);
        for path in ["/readyz", "/livez"] {
            assert_eq!(guarded.ask(path).status(), 200, "{path}");
        }
    }
    assert!(guarded.orders()["shed"]["sheddable"].as_f64().unwrap() > 0.0, "{:#}", guarded.orders());
    let status = guarded.ask("/api/v1/status").json();
    assert!(status["verdict"].as_str().unwrap().starts_with("Shedding: "), "{}", status["verdict"]);
    latch.open();
    assert_eq!(held.response().status(), 200);
}

#[test]
fn a_service_that_hangs_does_not_slow_another() {
    let (hanging, quick) = (Upstream::answering(|_| Answer::silence()), Upstream::ok());
    let guarded = Guarded::before(
        &hanging,
        "algorithm = 'fixed'\nmax = 3\nqueue = { timeout = '60s', max_waiting = 5, order = 'fifo' }",
        &format!(
            "[upstream.quick]
            endpoints = ['{}']
            [[route]]
            match = {{ path = '/orders' }}
            upstream = 'orders'
            [[route]]
            upstream = 'quick'",
            quick.url()
        ),
    );
    let _clients: Vec<Client> = (0..8).map(|_| guarded.send("/orders", &[])).collect();
    guarded.until(|orders| orders["in_flight"] == 3 && orders["waiting"] == 5);
    assert_eq!(guarded.gateway.get("/orders", &[]).status(), 503, "no place, and none to wait at");
    let mut client = guarded.gateway.connect();
    let slowest = (0..200).map(|_| {
        let begun = Instant::now();
        assert_eq!(client.get("/", &[]).status(), 200);
        begun.elapsed()
    });
    let slowest = slowest.max().unwrap();
    assert!(slowest < Duration::from_secs(2), "{slowest:?}");
    assert_eq!(hanging.requests().len(), 3);
}
