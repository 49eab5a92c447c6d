//! What those are told who find no place.

use tidegate_policy::Record;

use super::{Guarded, ONE, ONE_AND_A_MOMENT};
use crate::support::{Gateway, Latch, Message, Signal, Upstream};

const RULE: &str = "[rule.per_hour]\nquota = '10/h'\nalgorithm = 'fixed_window'";

/// The answer of a gateway that is short of something: what to do, and no numbers.
fn assert_is_overloaded(refused: &Message) {
    assert_eq!(refused.status(), 503, "{refused:?}");
    let problem = refused.json();
    assert_eq!(problem["type"], "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity");
    assert_eq!(problem["status"], 503);
    let retry: u64 = refused.get("retry-after").unwrap().parse().unwrap();
    assert!((1..=2).contains(&retry), "{retry}");
    assert_eq!(refused.get("x-envoy-overloaded"), Some("true"));
    assert_eq!(
        refused.get("proxy-status"),
        Some("tidegate;error=destination_unavailable;details=\"rule=upstream:orders\"")
    );
    assert_eq!(refused.get("cache-control"), Some("no-store"));
    for telling in ["ratelimit", "ratelimit-policy", "x-envoy-ratelimited", "tidegate-retry"] {
        assert_eq!(refused.get(telling), None, "{telling}");
    }
    for telling in ["quota", "violated-policies", "limit", "used"] {
        assert_eq!(problem.get(telling), None, "{telling}");
    }
}

fn refused_and_not_charged(upstream: &Upstream, latch: &Latch, concurrency: &str) {
    let guarded = Guarded::before(upstream, concurrency, RULE);
    let mut held = guarded.send("/held", &[]);
    upstream.wait_for(1);
    for _ in 0..3 {
        assert_is_overloaded(&guarded.gateway.get("/", &[]));
    }
    latch.open();
    assert_eq!(held.response().status(), 200);
    let next = guarded.gateway.get("/", &[]);
    let left = next.get("ratelimit").unwrap();
    assert!(left.starts_with("\"per_hour\";r=8;"), "two were served: {left}");
    assert_eq!(upstream.targets(), ["/held", "/"]);
}

#[test]
fn who_finds_no_place_is_told_so_and_not_charged() {
    let latch = Latch::default();
    refused_and_not_charged(&Upstream::holding(&latch), &latch, ONE);
}

#[test]
fn who_has_waited_too_long_is_told_so_and_not_charged() {
    let latch = Latch::default();
    refused_and_not_charged(&Upstream::holding(&latch), &latch, ONE_AND_A_MOMENT);
}

#[test]
fn places_of_a_rule_come_back_from_who_is_turned_away() {
    let latch = Latch::default();
    let upstream = Upstream::holding(&latch);
    let guarded = Guarded::before(&upstream, ONE_AND_A_MOMENT, "[rule.in_flight]\nlimit = 2");
    let mut held = guarded.send("/held", &[]);
    upstream.wait_for(1);
    for _ in 0..3 {
        assert_eq!(guarded.gateway.get("/", &[]).status(), 503, "not 429: the rule has a place left");
    }
    latch.open();
    assert_eq!(held.response().status(), 200);
}

/// The refusal that is logged while one request is held.
fn logged(concurrency: &str, log: &str) -> Vec<Record> {
    let latch = Latch::default();
    let upstream = Upstream::holding(&latch);
    let log = format!("[telemetry]\naccess_log = {{ to = 'stdout', {log} }}");
    let Guarded { mut gateway, .. } = {
        let guarded = Guarded::before(&upstream, concurrency, &log);
        let mut held = guarded.send("/held", &[]);
        upstream.wait_for(1);
        assert_eq!(guarded.gateway.get("/refused", &[]).status(), 503);
        latch.open();
        assert_eq!(held.response().status(), 200);
        guarded
    };
    end(&mut gateway);
    let read = |line: &String| Record::from_line(line).unwrap_or_else(|problem| panic!("{problem}: {line}"));
    gateway.output().all().iter().map(read).collect()
}

fn end(gateway: &mut Gateway) {
    gateway.signal(Signal::TERM);
    assert!(gateway.wait().success());
}

#[test]
fn the_log_says_who_refused_and_why() {
    for (concurrency, reason) in [(ONE, "limit_reached"), (ONE_AND_A_MOMENT, "wait_too_long")] {
        for log in ["sample_accepted = '0%'", "sample_accepted = '0%', always = ['refused', 'failed']"] {
            let [refused] = logged(concurrency, log).try_into().unwrap();
            assert_eq!((refused.path.as_str(), refused.status), ("/refused", Some(503)));
            assert_eq!((refused.is_admitted(), refused.rule.as_deref()), (false, Some("upstream:orders")));
            assert_eq!(refused.reason.as_deref(), Some(reason));
            assert!(refused.retry.is_some() && refused.duration.is_some());
        }
        let all = logged(concurrency, "sample_accepted = '100%'");
        let of = |path| all.iter().find(|record| record.path == path).unwrap();
        assert_eq!((all.len(), of("/held").is_admitted(), of("/refused").is_admitted()), (2, true, false));
    }
}

#[test]
fn refusals_are_counted_where_they_happen() {
    for concurrency in [ONE, ONE_AND_A_MOMENT] {
        let latch = Latch::default();
        let upstream = Upstream::holding(&latch);
        let guarded = Guarded::before(&upstream, concurrency, "");
        let mut held = guarded.send("/held", &[]);
        upstream.wait_for(1);
        for _ in 0..3 {
            assert_eq!(guarded.gateway.get("/", &[]).status(), 503);
        }
        assert_eq!(guarded.turned_away(), 3);
        let page = guarded.ask("/metrics");
        for (decision, count) in [("refused", 3), ("admitted", 1)] {
            let wanted = format!(
                "tidegate_requests_total{{listener=\"default\",route=\"default\",criticality=\"critical\",\
                 decision=\"{decision}\"}} {count}"
            );
            assert!(page.text().lines().any(|line| line == wanted), "{}", page.text());
        }
        let decisions = guarded.ask("/api/v1/decisions?refused=1").json();
        assert_eq!(decisions["decisions"][0]["rule"], "upstream:orders", "{decisions:#}");
        latch.open();
        assert_eq!(held.response().status(), 200);
    }
}
