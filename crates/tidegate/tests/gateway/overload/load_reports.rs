//! Services that say how busy they are (ORCA).

use super::{Guarded, ONE};
use crate::support::{Answer, Upstream};

/// A service whose answers say what a request's `x-say` tells them to.
fn saying() -> Upstream {
    Upstream::answering(|request| match request.get("x-say") {
        Some(report) => Answer::with(&[(request.get("x-name").unwrap(), report)], "hello"),
        None => Answer::text("hello"),
    })
}

#[test]
fn reports_are_read_and_pass() {
    let upstream = saying();
    for (name, report, busy) in [
        ("endpoint-load-metrics", "TEXT cpu_utilization=0.1", 0.1),
        ("endpoint-load-metrics", "JSON {\"cpu_utilization\": 0.2, \"application_utilization\": 0.4}", 0.4),
        ("endpoint-load-metrics-bin", "CTMzMzMzM9M/", 0.3),
        ("endpoint-load-metrics", "TEXT cpu_utilization=7", 1.0),
    ] {
        let guarded = Guarded::before(&upstream, ONE, "");
        let answer = guarded.gateway.get("/", &[("x-name", name), ("x-say", report)]);
        assert_eq!((answer.status(), answer.text()), (200, "hello"));
        assert_eq!(answer.get(name), Some(report), "whoever is before us may want it too");
        assert_eq!(guarded.orders()["utilization"], busy, "{report}");
    }
}

#[test]
fn as_much_capacity_is_wanted_as_a_service_says_it_needs() {
    let upstream = saying();
    let guarded = Guarded::before(&upstream, ONE, "");
    let wanted = || guarded.ask("/api/v1/capacity").json()["wanted_ratio"].as_f64().unwrap();
    assert!(wanted() < 0.1, "{}", wanted());
    let report = [("x-name", "endpoint-load-metrics"), ("x-say", "TEXT cpu_utilization=0.7")];
    assert_eq!(guarded.gateway.get("/", &report).status(), 200);
    assert!((0.7..0.8).contains(&wanted()), "{}", wanted());
}

#[test]
fn what_a_health_route_says_is_read_although_it_takes_no_place() {
    let upstream = saying();
    let guarded = Guarded::before(&upstream, ONE, "[[route]]\nname = 'health'\nexempt = true");
    let report = [("x-name", "endpoint-load-metrics"), ("x-say", "TEXT cpu_utilization=0.1")];
    assert_eq!(guarded.gateway.get("/", &report).status(), 200);
    assert_eq!(guarded.orders()["utilization"], 0.1);
}

#[test]
fn what_cannot_be_read_disturbs_nothing() {
    let upstream = saying();
    let guarded = Guarded::before(&upstream, ONE, "");
    let mut client = guarded.gateway.connect();
    let long = "a=1,".repeat(2_000);
    for (name, report) in [
        ("endpoint-load-metrics", "TEXT"),
        ("endpoint-load-metrics", "TEXT cpu_utilization="),
        ("endpoint-load-metrics", "TEXT cpu_utilization=-1"),
        ("endpoint-load-metrics", "TEXT cpu_utilization=inf"),
        ("endpoint-load-metrics", "JSON {\"cpu_utilization\": \"much\"}"),
        ("endpoint-load-metrics", "JSON ]"),
        ("endpoint-load-metrics", &long),
        ("endpoint-load-metrics-bin", "////////////"),
        ("endpoint-load-metrics-bin", "?"),
    ] {
        assert_eq!(client.get("/", &[("x-name", name), ("x-say", report)]).status(), 200, "{report}");
        assert_eq!(guarded.orders()["utilization"], serde_json::Value::Null, "{report}");
    }
    assert_eq!(guarded.orders()["in_flight"], 0);
}
