//! A cheaper answer instead of a refusal.

use std::time::Instant;

use tidegate_policy::Record;

use super::{Guarded, ONE, ONE_AND_A_MOMENT};
use crate::support::{Client, Latch, PATIENCE, Signal, Upstream};

const DEGRADED: &str = "[[route]]
    name = 'catalogue'
    match = { path = '/catalogue' }
    [route.degrade]
    when = 'shedding'
    status = 203
    body = '{\"items\":[]}'
    headers = { content-type = 'application/json', x-stale = 'yes' }
    [[route]]
    name = 'switched'
    match = { path = '/switched' }
    degrade = { when = 'switched', status = 200, body = 'later' }
    [[route]]
    name = 'rest'";

/// A gateway whose only place is taken until the latch opens.
fn full(upstream: &Upstream, concurrency: &str, rest: &str) -> (Guarded, Client) {
    let guarded = Guarded::before(upstream, concurrency, &format!("{DEGRADED}\n{rest}"));
    let held = guarded.send("/held", &[]);
    upstream.wait_for(1);
    (guarded, held)
}

/// The cheaper answers of a route, as the page for Prometheus counts them.
fn counted(guarded: &Guarded, route: &str) -> [(&'static str, u64); 2] {
    let page = guarded.ask("/metrics");
    ["shedding", "switched"].map(|why| {
        let series = format!("tidegate_degraded_total{{route=\"{route}\",why=\"{why}\"}} ");
        let count = page.text().lines().find_map(|line| line.strip_prefix(&series)?.parse().ok());
        (why, count.unwrap_or_else(|| panic!("{series} is not in\n{}", page.text())))
    })
}

#[test]
fn who_would_be_refused_gets_the_cheaper_answer() {
    for concurrency in [ONE, ONE_AND_A_MOMENT] {
        let latch = Latch::default();
        let upstream = Upstream::holding(&latch);
        let (guarded, mut held) = full(&upstream, concurrency, "");
        let answer = guarded.gateway.get("/catalogue", &[]);
        assert_eq!((answer.status(), answer.text()), (203, "{\"items\":[]}"), "{answer:?}");
        assert_eq!(answer.get("tidegate-degraded"), Some("shedding"));
        assert_eq!(answer.get("content-type"), Some("application/json"));
        assert_eq!((answer.get("x-stale"), answer.get("retry-after")), (Some("yes"), None));
        for target in ["/", "/switched"] {
            let refused = guarded.gateway.get(target, &[]);
            assert_eq!((refused.status(), refused.get("tidegate-degraded")), (503, None), "{target}");
        }
        latch.open();
        let answer = held.response();
        assert_eq!((answer.status(), answer.get("tidegate-degraded")), (200, None));
        let answer = guarded.gateway.get("/catalogue", &[]);
        assert_eq!((answer.status(), answer.text()), (200, "hello"), "who has a place gets the real thing");
        assert_eq!(answer.get("tidegate-degraded"), None);
        assert_eq!(counted(&guarded, "catalogue"), [("shedding", 1), ("switched", 0)]);
        assert_eq!(upstream.targets(), ["/held", "/catalogue"]);
    }
}

/// Switches the route of this name, as an operator does.
#[track_caller]
fn switch(guarded: &Guarded, to: &str) {
    let fields = [("host", "127.0.0.1"), ("content-type", "application/json")];
    let body = format!("{{\"degrade\": \"{to}\"}}");
    let answer = Client::connect(guarded.admin).ask("PATCH", "/api/v1/routes/switched", &fields, &body);
    assert_eq!(answer.status(), 200, "{answer:?}");
}

#[test]
fn what_is_switched_to_a_cheaper_answer_is_still_wanted() {
    let latch = Latch::default();
    let upstream = Upstream::holding(&latch);
    let (guarded, mut held) = full(&upstream, ONE, "");
    let wanted = || guarded.ask("/api/v1/capacity").json()["wanted_ratio"].as_f64().unwrap();
    let until = |is_right: &dyn Fn(f64) -> bool, ask: &dyn Fn()| {
        let begun = Instant::now();
        while !is_right(wanted()) {
            assert!(begun.elapsed() < PATIENCE, "it stays {}", wanted());
            ask();
        }
    };
    assert_eq!(guarded.gateway.get("/", &[]).status(), 503);
    latch.open();
    assert_eq!(held.response().status(), 200);
    until(&|ratio| ratio > 0.0, &|| ());
    switch(&guarded, "on");
    until(&|ratio| ratio > 20.0, &|| {
        let mut client = guarded.gateway.connect();
        (0..50).for_each(|_| assert_eq!(client.get("/switched", &[]).text(), "later"));
    });
}

#[test]
fn an_operator_switches_a_route_and_back() {
    let upstream = Upstream::ok();
    let guarded = Guarded::before(&upstream, ONE, DEGRADED);
    assert_eq!(guarded.gateway.get("/switched", &[]).text(), "hello");
    switch(&guarded, "on");
    let answer = guarded.gateway.get("/switched", &[]);
    assert_eq!((answer.text(), answer.get("tidegate-degraded")), ("later", Some("switched")));
    assert_eq!(guarded.gateway.get("/catalogue", &[]).text(), "hello", "the other route is as it was");
    switch(&guarded, "auto");
    assert_eq!(guarded.gateway.get("/switched", &[]).text(), "hello");
    assert_eq!(upstream.targets(), ["/switched", "/catalogue", "/switched"]);
    assert_eq!(counted(&guarded, "switched"), [("shedding", 0), ("switched", 1)]);
}

#[test]
fn who_is_over_its_quota_is_refused_as_ever() {
    let latch = Latch::default();
    let upstream = Upstream::holding(&latch);
    let rule = "[rule.once]\nquota = '1/h'";
    let rest = DEGRADED.replace("name = 'catalogue'", "name = 'catalogue'\nrules = ['once']");
    let guarded = Guarded::before(&upstream, ONE, &format!("{rest}\n{rule}"));
    assert_eq!(guarded.gateway.statuses(2, "/catalogue", &[]), [200, 429]);
}

#[test]
fn the_log_says_that_the_upstream_had_no_room() {
    for concurrency in [ONE, ONE_AND_A_MOMENT] {
        let latch = Latch::default();
        let upstream = Upstream::holding(&latch);
        let log = "[telemetry]\naccess_log = { to = 'stdout', sample_accepted = '0%', always = ['refused'] }";
        let (guarded, mut held) = full(&upstream, concurrency, log);
        assert_eq!(guarded.gateway.get("/catalogue", &[]).status(), 203);
        latch.open();
        assert_eq!(held.response().status(), 200);
        let mut gateway = guarded.gateway;
        gateway.signal(Signal::TERM);
        assert!(gateway.wait().success());
        let lines = gateway.output().all();
        assert_eq!(lines.len(), 1, "{lines:#?}");
        let record = Record::from_line(&lines[0]).unwrap();
        assert_eq!((record.path.as_str(), record.status), ("/catalogue", Some(203)));
        assert_eq!((record.is_admitted(), record.rule.as_deref()), (false, Some("upstream:orders")));
    }
}
