//! Requests whose bodies are slow to come lend their places, and take one again when the service is at work.

use std::time::{Duration, Instant};

use http::Response;

use super::{Guarded, ONE, policy};
use crate::support::{Client, H2Upstream, Latch, PATIENCE, Upstream, Wire, full, until};

/// Two places, of which one may be held by whoever is waited for.
const TWO: &str = "algorithm = 'fixed'\nmax = 2\nqueue = { timeout = '0s' }";

/// For how long an upload holds its place before it is lent.
const MOMENT: Duration = Duration::from_millis(500);

/// Works on uploads until the latch opens, and answers everything else at once.
fn serve(wire: &mut Wire, latch: &Latch) {
    while let Some(request) = wire.request() {
        if request.target() == "/upload" {
            latch.wait();
        }
        wire.send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello");
    }
}

fn start(concurrency: &str) -> (Guarded, Latch, Upstream) {
    let latch = Latch::default();
    let held = latch.clone();
    let upstream = Upstream::scripted(move |wire| serve(wire, &held));
    (Guarded::before(&upstream, concurrency, ""), latch, upstream)
}

/// Sends the beginning of a body.
fn send_a_part(guarded: &Guarded) -> Client {
    let mut caller = guarded.gateway.connect();
    caller.send("POST /upload HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n");
    caller
}

/// The same, and waits until the gateway asks the service, over a connection of its own.
fn begin_upload(guarded: &Guarded, upstream: &Upstream) -> Client {
    let before = upstream.connections();
    let caller = send_a_part(guarded);
    until(|| upstream.connections() != before);
    caller
}

fn end_upload(caller: &mut Client) {
    caller.send("0\r\n\r\n");
}

#[test]
fn an_upload_lends_the_only_place_and_takes_it_again_when_all_of_it_has_come() {
    let (guarded, latch, upstream) = start(ONE);
    let mut caller = begin_upload(&guarded, &upstream);
    assert_eq!(guarded.gateway.get("/", &[]).status(), 200, "the service waits for the caller");
    end_upload(&mut caller);
    guarded.until(|orders| orders["in_flight"] == 1);
    assert_eq!(guarded.gateway.get("/", &[]).status(), 503, "the service is at work");
    latch.open();
    assert_eq!(caller.response().status(), 200);
    guarded.until(|orders| orders["in_flight"] == 0);
    assert_eq!(guarded.gateway.get("/", &[]).status(), 200);
}

#[test]
fn an_upload_holds_its_place_for_a_moment_then_lends_it_and_takes_one_again() {
    let (guarded, latch, upstream) = start(TWO);
    let begun = Instant::now();
    let mut caller = begin_upload(&guarded, &upstream);
    let in_flight = guarded.orders()["in_flight"].clone();
    // Where all of this stood still for a while, the place may be lent by now.
    assert!(in_flight == 1 || begun.elapsed() >= MOMENT, "it may be quick, and {in_flight} are in flight");
    guarded.until(|orders| orders["in_flight"] == 0);
    end_upload(&mut caller);
    guarded.until(|orders| orders["in_flight"] == 1);
    latch.open();
    assert_eq!(caller.response().status(), 200);
    guarded.until(|orders| orders["in_flight"] == 0);
}

#[test]
fn uploads_that_are_worked_on_together_count_beyond_the_limit_and_keep_others_out() {
    let (guarded, latch, upstream) = start(ONE);
    let mut callers: Vec<Client> = (0..3).map(|_| begin_upload(&guarded, &upstream)).collect();
    callers.iter_mut().for_each(end_upload);
    guarded.until(|orders| orders["in_flight"] == 3);
    assert_eq!(guarded.gateway.get("/", &[]).status(), 503);
    latch.open();
    assert!(callers.iter_mut().all(|caller| caller.response().status() == 200));
    guarded.until(|orders| orders["in_flight"] == 0);
}

#[test]
fn an_upload_that_breaks_off_leaves_nothing_behind() {
    for concurrency in [ONE, TWO] {
        let (guarded, _latch, upstream) = start(concurrency);
        for _ in 0..3 {
            begin_upload(&guarded, &upstream).cut();
            guarded.until(|orders| orders["in_flight"] == 0);
        }
        guarded.until(|orders| orders["in_flight"] == 0);
        assert_eq!(guarded.gateway.get("/", &[]).status(), 200);
        only_callers_are_gone(&guarded, 3);
    }
}

/// Waits until so many attempts ended because their callers had gone, and none for another reason that is no success.
#[track_caller]
fn only_callers_are_gone(guarded: &Guarded, count: usize) {
    let begun = Instant::now();
    let gone = format!("outcome=\"caller_gone\"}} {count}");
    loop {
        let page = guarded.ask("/metrics");
        let attempts =
            page.text().lines().filter(|line| line.starts_with("tidegate_upstream_attempts_total"));
        let unwell: Vec<_> =
            attempts.filter(|line| !line.contains("\"ok\"") && !line.ends_with(" 0")).collect();
        if unwell.len() == 1 && unwell.iter().all(|line| line.ends_with(&gone)) {
            return;
        }
        assert!(begun.elapsed() < PATIENCE, "{unwell:#?}");
        std::thread::yield_now();
    }
}

#[test]
fn an_upload_that_breaks_off_over_http_2_is_no_failure_of_the_service() {
    let streaming = H2Upstream::answering(|_| Response::new(full("hello")));
    let other = Upstream::ok();
    let written = policy(&other, TWO, "").replace("endpoints", "protocol = 'h2'\nendpoints");
    let guarded = Guarded::start(&written.replace(&other.url(), &streaming.url()));
    let mut caller = send_a_part(&guarded);
    // Its place may be lent already; the request itself stays.
    until(|| {
        let all = guarded.ask("/api/v1/upstreams").json();
        all["upstreams"][0]["endpoints"][0]["in_flight"] == 1
    });
    caller.cut();
    only_callers_are_gone(&guarded, 1);
}

#[test]
fn an_upload_without_a_place_that_breaks_off_is_no_failure_of_the_service() {
    let upstream = Upstream::ok();
    let guarded = Guarded::before(&upstream, ONE, "[[route]]\nname = 'all'\nexempt = true");
    begin_upload(&guarded, &upstream).cut();
    only_callers_are_gone(&guarded, 1);
}
