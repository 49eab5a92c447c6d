//! However a request ends, its place comes back; not before the service has ended its work.

use std::time::Instant;

use http::Request;

use super::{Guarded, ONE, ONE_AND_A_MOMENT, ONE_AND_A_QUEUE, policy};
use crate::support::{self, Answer, Client, H2Client, Latch, PATIENCE, Signal, Upstream, request};

const PLACES: u64 = 20;

const CLIENTS: u64 = 1_000;

const QUEUE: &str = "algorithm = 'fixed'\nmax = 20\nqueue = { timeout = '60s' }";

/// A service that holds what begins with `/held` until `first` is open, and `/again` until `again` is.
fn holding(first: &Latch, again: &Latch) -> Upstream {
    let (first, again) = (first.clone(), again.clone());
    Upstream::answering(move |request| {
        match request.target() {
            "/again" => again.wait(),
            "/held" => first.wait(),
            _ => {}
        }
        Answer::text("hello")
    })
}

/// The service is at work for callers who have all left: none of its places is free before it answers.
fn all_have_left(guarded: &Guarded) {
    let orders = guarded.until(|orders| orders["waiting"] == 0);
    assert_eq!(orders["in_flight"], PLACES);
}

/// As many requests at once as there are places, which all are served.
fn all_places_are_free(guarded: &Guarded, latch: &Latch) {
    let begun = Instant::now();
    let mut clients = loop {
        guarded.until(|orders| orders["in_flight"] == 0 && orders["waiting"] == 0);
        let before = guarded.turned_away();
        let clients: Vec<Client> = (0..PLACES).map(|_| guarded.send("/again", &[])).collect();
        guarded.until(|orders| {
            assert_eq!(orders["waiting"], 0, "there is a place for each");
            orders["in_flight"].as_u64().unwrap() + guarded.turned_away() - before == PLACES
        });
        if guarded.turned_away() == before {
            break clients;
        }
        // Those who went away wanted to be served as well, so that some are shed for a moment.
        assert!(begun.elapsed() < PATIENCE, "{:#}", guarded.orders());
    };
    latch.open();
    for client in &mut clients {
        assert_eq!(client.response().status(), 200);
    }
    guarded.until(|orders| orders["in_flight"] == 0 && orders["waiting"] == 0);
}

#[test]
fn clients_that_go_away_while_they_wait_or_are_served_leave_their_places() {
    let (latch, again) = (Latch::default(), Latch::default());
    let upstream = holding(&latch, &again);
    let guarded = Guarded::before(&upstream, QUEUE, "");
    let clients: Vec<Client> = (0..CLIENTS).map(|_| guarded.send("/held", &[])).collect();
    guarded.until(|orders| {
        let waiting = orders["waiting"].as_u64().unwrap();
        orders["in_flight"] == PLACES && waiting + guarded.turned_away() == CLIENTS - PLACES
    });
    // From the back, so that none of those who wait is given a place of those who are served.
    clients.into_iter().rev().for_each(drop);
    all_have_left(&guarded);
    latch.open();
    all_places_are_free(&guarded, &again);
}

#[test]
fn a_place_given_to_somebody_who_is_leaving_is_given_to_the_next() {
    let again = Latch::default();
    let upstream = holding(&Latch::default(), &again);
    let guarded = Guarded::before(&upstream, QUEUE, "");
    let mut clients: Vec<Client> = (0..CLIENTS).map(|_| guarded.send("/", &[])).collect();
    // The service answers at once, so places are passed on all the time.
    for (number, client) in clients.iter_mut().enumerate() {
        if number % 3 > 0 {
            client.cut();
        }
    }
    for client in clients.iter_mut().step_by(3) {
        assert!([200, 503].contains(&client.response().status()));
    }
    all_places_are_free(&guarded, &again);
}

#[test]
fn streams_of_one_connection_that_are_reset_leave_their_places() {
    let (latch, again) = (Latch::default(), Latch::default());
    let upstream = holding(&latch, &again);
    let guarded = Guarded::before(&upstream, QUEUE, "");
    let client = H2Client::connect(guarded.gateway.address());
    let asked: Vec<_> = (0..2 * PLACES)
        .map(|_| {
            let request = Request::get("http://service.test/held").body(support::full("")).unwrap();
            let mut sender = client.sender();
            client.runtime().spawn(async move { sender.send_request(request).await })
        })
        .collect();
    guarded.until(|orders| {
        let waiting = orders["waiting"].as_u64().unwrap();
        orders["in_flight"] == PLACES && waiting + guarded.turned_away() == PLACES
    });
    asked.into_iter().for_each(|asked| asked.abort());
    all_have_left(&guarded);
    latch.open();
    all_places_are_free(&guarded, &again);
}

#[test]
fn failures_of_the_service_and_answers_without_a_body_give_their_places_back() {
    let upstream = Upstream::answering(|request| match request.target() {
        "/breaks" => Answer::raw("").closing(),
        "/breaks-later" => Answer::raw("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf").closing(),
        "/no-http" => Answer::raw("what?\r\n\r\n").closing(),
        "/not-modified" => Answer::raw("HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n"),
        "/head" => Answer::raw("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"),
        _ => Answer::text("hello"),
    });
    let guarded = Guarded::before(&upstream, ONE, "");
    for (method, target, status) in [
        ("GET", "/breaks", 502),
        ("GET", "/no-http", 502),
        ("GET", "/not-modified", 304),
        ("HEAD", "/head", 200),
        ("GET", "/", 200),
    ] {
        let mut client = guarded.gateway.connect();
        client.send(request(method, target, &[], ""));
        assert_eq!(client.response_head().status(), status, "{target}");
        guarded.until(|orders| orders["in_flight"] == 0);
    }
    // Whatever of it comes through.
    guarded.send("/breaks-later", &[]).rest();
    guarded.until(|orders| orders["in_flight"] == 0);
}

#[test]
fn a_service_that_cannot_be_reached_or_is_too_slow_takes_no_place_for_good() {
    let silent = Upstream::answering(|_| Answer::silence());
    let gone = Upstream::ok().url();
    let written = policy(&silent, ONE, "");
    for (policy, status) in [
        (written.replace("endpoints", "timeout = '100ms'\nendpoints"), 504),
        (written.replace(&silent.url(), &gone), 502),
    ] {
        let guarded = Guarded::start(&policy);
        for _ in 0..3 {
            assert_eq!(guarded.gateway.get("/", &[]).status(), status);
            guarded.until(|orders| orders["in_flight"] == 0);
        }
    }
}

#[test]
fn who_waited_for_a_rule_asks_for_a_place_only_then() {
    let latch = Latch::default();
    let upstream = Upstream::holding(&latch);
    // Of those that come together, each waits 100 ms for the one before.
    let rule = "[rule.shaped]\nquota = '10/s'\nalgorithm = 'leaky_bucket'\nburst = 5";
    let guarded = Guarded::before(&upstream, ONE_AND_A_MOMENT, rule);
    let mut held = guarded.send("/held", &[]);
    upstream.wait_for(1);
    let mut late: Vec<Client> = (0..3).map(|_| guarded.send("/late", &[])).collect();
    for late in &mut late {
        assert_eq!(late.response().status(), 503);
    }
    let gone = guarded.send("/gone", &[]);
    drop(gone);
    latch.open();
    assert_eq!(held.response().status(), 200);
    guarded.until(|orders| orders["in_flight"] == 0 && orders["waiting"] == 0);
    assert_eq!(guarded.gateway.get("/", &[]).status(), 200);
}

#[test]
fn those_who_wait_are_served_while_the_gateway_drains() {
    let latch = Latch::default();
    let upstream = Upstream::holding(&latch);
    let mut guarded = Guarded::before(&upstream, ONE_AND_A_QUEUE, "");
    let mut held = guarded.send("/held", &[]);
    upstream.wait_for(1);
    let mut waiting = guarded.line_up("/", &[], 1);
    guarded.gateway.signal(Signal::TERM);
    let errors = guarded.gateway.errors();
    assert!(errors.find(|line| line.contains("draining")).is_some(), "{:#?}", errors.so_far());
    latch.open();
    assert_eq!([held.response().status(), waiting.response().status()], [200; 2]);
    assert!(guarded.gateway.wait().success());
}

#[test]
fn a_body_is_not_asked_for_before_there_is_a_place() {
    let latch = Latch::default();
    let upstream = Upstream::holding(&latch);
    let guarded = Guarded::before(&upstream, ONE_AND_A_MOMENT, "");
    let mut held = guarded.send("/held", &[]);
    upstream.wait_for(1);
    let mut client = guarded.gateway.connect();
    let expecting = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n";
    assert_eq!(client.send(expecting).response().status(), 503, "and no 100 before it");
    latch.open();
    assert_eq!(held.response().status(), 200);
    let mut client = guarded.gateway.connect();
    assert_eq!(client.send(expecting).response().status(), 100);
    assert_eq!(client.send("body").response().status(), 200);
}
