//! What can be looked at.

use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

use tidegate::admin::{Stage, Station};
use tidegate_core::Ratio;

use crate::http::{ask, ask_with, get};
use crate::published::assert_is;
use crate::station::{Running, attributes};
use crate::streaming::Frames;

#[test]
fn health_says_whether_it_lives_and_wants_traffic() {
    let running = Running::start();
    let health = |path| {
        let answer = get(running.address(), path);
        (answer.status, answer.body)
    };
    assert_eq!(health("/livez"), (200, "ok\n".to_owned()));
    assert_eq!(health("/readyz"), (200, "ready\n".to_owned()));
    running.station.set_stage(Stage::Starting);
    assert_eq!(health("/readyz"), (503, "starting\n".to_owned()));
    running.station.set_stage(Stage::Draining);
    assert_eq!(health("/readyz"), (503, "draining\n".to_owned()));
    assert_eq!(health("/livez"), (200, "ok\n".to_owned()));
}

#[test]
fn the_status_tells_the_rates_of_the_last_seconds_in_one_sentence() {
    let running = Running::start();
    let status = get(running.address(), "/api/v1/status").json();
    assert_is("Status", &status);
    assert_eq!(status["verdict"], "Healthy: no requests in the last seconds.");

    let mut frames = Frames::open(running.address());
    frames.next();
    running.station.requests("ann", 5);
    running.station.requests("bob", 15);
    running.station.advance(Duration::from_secs(1));
    let is_counted = |status: &serde_json::Value| status["rates"]["over_ms"] == 1000;
    let status = std::iter::from_fn(|| frames.next()).find(is_counted).unwrap();
    assert_is("Status", &status);
    assert_eq!(status["verdict"], "Refusing: 20 requests a second, 50 % refused, all by rule per_key.");
    assert_eq!(status["health"], "yellow");
    assert_eq!(status["totals"], serde_json::json!({ "admitted": 10, "refused": 10 }));
    assert_eq!(status["rates"]["p99_ms"], 1);

    running.station.fail("1 error.");
    let status = get(running.address(), "/api/v1/status").json();
    assert_is("Status", &status);
    assert_eq!(status["health"], "red");
    let verdict = status["verdict"].as_str().unwrap();
    assert!(verdict.starts_with("Red: the policy on disk is wrong since 2026-09-21T"), "{verdict}");
    assert!(verdict.ends_with("(1 error); version 1 stays."), "{verdict}");
}

#[test]
fn metrics_are_what_prometheus_wants_and_have_the_agreed_names() {
    let running = Running::start();
    running.station.requests("ann", 7);
    running.station.fail("1 error.");
    running.station.strain(|strain| {
        strain.concurrency.shed = [1.0, 0.4, 0.0, 0.0].map(|share| Ratio::new(share).unwrap())
    });
    let twice = vec![("x-api-key".to_owned(), "a".to_owned()), ("x-api-key".to_owned(), "b".to_owned())];
    drop(running.station.gate().decide(running.station.now(), &attributes(&twice)));
    let answer = get(running.address(), "/metrics");
    assert_eq!(answer.field("content-type"), Some("text/plain; version=0.0.4; charset=utf-8"));
    for line in [
        r#"tidegate_requests_total{listener="default",route="all",criticality="critical",decision="admitted"} 5"#,
        r#"tidegate_requests_total{listener="default",route="all",criticality="critical",decision="refused"} 3"#,
        r#"tidegate_refusals_total{rule="per_key",reason="quota",criticality="critical"} 2"#,
        r#"tidegate_refusals_total{rule="per_key",reason="ambiguous_key",criticality="critical"} 1"#,
        r#"tidegate_refusals_total{rule="places",reason="concurrency",criticality="sheddable"} 0"#,
        r#"tidegate_shadow_refusals_total{rule="per_key",reason="quota"} 0"#,
        r#"tidegate_request_duration_seconds_bucket{route="all",status_class="2xx",le="0.001"} 5"#,
        r#"tidegate_overhead_seconds_count{phase="decide"} 8"#,
        r#"tidegate_in_flight{route="all"} 0"#,
        r#"tidegate_rule_keys{rule="per_key"} 1"#,
        r#"tidegate_rule_overflow_total{rule="per_key"} 0"#,
        r#"tidegate_upstream_attempts_total{upstream="default",outcome="ok"} 5"#,
        r#"tidegate_refusals_total{rule="upstream:default",reason="queue",criticality="sheddable"} 0"#,
        r#"tidegate_concurrency_limit{upstream="default"} 64"#,
        r#"tidegate_upstream_in_flight{upstream="default"} 64"#,
        r#"tidegate_upstream_wanted_ratio{upstream="default"} 1.25"#,
        r#"tidegate_waiting{upstream="default"} 12"#,
        r#"tidegate_queue_delay_seconds{upstream="default"} 0.01825"#,
        r#"tidegate_shed_ratio{criticality="sheddable_plus"} 0.4"#,
        r#"tidegate_shed_ratio{criticality="critical"} 0"#,
        r#"tidegate_signal_ratio{name="cpu"} 0.42"#,
        r#"tidegate_signal_seconds{name="queue_delay"} 0.01825"#,
        r#"tidegate_signal{name="backlog"} 12"#,
        r#"answer{to="everything"} 42"#,
        "tidegate_capacity_wanted_ratio 1.25",
        "tidegate_policy_version 1",
        "tidegate_policy_load_failures_total 1",
        concat!(r#"tidegate_build_info{version=""#, env!("CARGO_PKG_VERSION"), r#""} 1"#),
    ] {
        assert!(answer.body.lines().any(|known| known == line), "{line}\n{}", answer.body);
    }
    assert!(!answer.body.contains("ann"), "callers are in no label");
    assert!(!answer.body.contains("memory_pressure"), "a signal that is not known is left out");

    let page = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("metrics.txt");
    fs::write(&page, &answer.body).unwrap();
    let mut promtool = Command::new("promtool");
    promtool.args(["check", "metrics"]).stdin(Stdio::from(fs::File::open(&page).unwrap()));
    let checked = promtool.output().expect("promtool is there; `cargo xtask test` installs it");
    assert!(checked.status.success() && checked.stderr.is_empty(), "{checked:?}");
}

#[test]
fn callers_are_ranked_and_bad_questions_are_told() {
    let running = Running::start();
    running.station.requests("ann", 25);
    running.station.requests("bob", 15);
    let callers = get(running.address(), "/api/v1/callers?sort=refused&n=1").json();
    assert_is("Callers", &callers);
    assert_eq!(callers["callers"].as_array().unwrap().len(), 1);
    assert_eq!(
        (&callers["callers"][0]["caller"], &callers["callers"][0]["weight"]),
        (&"ann".into(), &20.into())
    );
    for path in ["/api/v1/callers", "/api/v1/callers?sort=cost", "/api/v1/callers?sort=shadow&n=32"] {
        assert_is("Callers", &get(running.address(), path).json());
    }
    for (query, why) in [
        ("sort=names", "`sort` is `names`, but must be `refused`, `cost` or `shadow`"),
        ("n=33", "`n` is `33`, but must be from 1 to 32"),
        ("top=3", "unknown parameter `top`; known are `sort` and `n`"),
    ] {
        let answer = get(running.address(), &format!("/api/v1/callers?{query}"));
        assert_eq!((answer.status, answer.detail().as_str()), (400, why));
    }
}

#[test]
fn upstreams_are_told_with_what_was_asked_of_them() {
    let running = Running::start();
    running.station.requests("ann", 2);
    let upstreams = get(running.address(), "/api/v1/upstreams").json();
    assert_is("Upstreams", &upstreams);
    assert_eq!(upstreams["upstreams"][0]["attempts"], serde_json::json!({ "ok": 2 }));
    assert_eq!(upstreams["upstreams"][0]["endpoints"][0]["failures"], 1);
}

#[test]
fn decisions_are_found_by_their_number() {
    let running = Running::start();
    let (ids, _) = running.station.requests("ann", 7);
    let all = get(running.address(), "/api/v1/decisions").json();
    assert_is("Decisions", &all);
    assert_eq!(all["decisions"].as_array().unwrap().len(), 7);
    let refused = get(running.address(), "/api/v1/decisions?refused=1&n=1").json();
    assert_is("Decisions", &refused);
    assert_eq!(refused["decisions"].as_array().unwrap().len(), 1);
    assert_eq!(refused["decisions"][0]["reason"], "quota_spent");

    let one = get(running.address(), &format!("/api/v1/decisions/{}", ids[6])).json();
    assert_is("Record", &one);
    assert_eq!((&one["decision"], &one["rule"]), (&"refused".into(), &"per_key".into()));
    let missing = get(running.address(), "/api/v1/decisions/0123456789abcdef");
    assert_eq!(missing.status, 404);
    assert!(missing.detail().starts_with("decision 0123456789abcdef is not kept any more"));
    let bad = get(running.address(), "/api/v1/decisions/seven");
    assert_eq!(
        (bad.status, bad.detail().as_str()),
        (400, "decision is seven, but must be sixteen hexadecimal digits")
    );
    assert_eq!(get(running.address(), "/api/v1/decisions?refused=yes").status, 400);
}

#[test]
fn an_explanation_is_the_gates_own_in_json_or_in_words() {
    let running = Running::start();
    running.station.requests("acct_1", 5);
    let body = r#"{"method": "GET", "path": "/v1/orders?x=1", "headers": {"X-Api-Key": "acct_1"}}"#;
    let explained = ask(running.address(), "POST /api/v1/explain", body).json();
    assert_is("Explanation", &explained);
    let headers = vec![("x-api-key".to_owned(), "acct_1".to_owned())];
    let expected = running.station.gate().explain(running.station.now(), &attributes(&headers));
    assert_eq!(explained, expected.to_json());
    assert_eq!(explained["refused_by"], "per_key");

    let words = ask_with(
        running.address(),
        "POST /api/v1/explain",
        "accept: text/plain\r\ncontent-type: application/json\r\n",
        body,
    );
    assert_eq!(words.body, expected.to_string());
    let twice = r#"{"path": "/", "headers": {"x-api-key": ["a", "b"]}, "client": "192.0.2.1"}"#;
    let twice = ask(running.address(), "POST /api/v1/explain", twice).json();
    assert_is("Explanation", &twice);
    assert_eq!(twice["rules"][0]["reason"], "ambiguous_key");
    let sent_by = |client: &str| {
        let body = format!(
            r#"{{"path": "/", "headers": {{"x-forwarded-for": "203.0.113.7"}}, "client": "{client}"}}"#
        );
        ask(running.address(), "POST /api/v1/explain", &body).json()["caller"]["shown"].clone()
    };
    assert_eq!(sent_by("10.0.0.1"), "203.0.113.7", "a trusted proxy sends for others");
    assert_eq!(sent_by("192.0.2.1"), "192.0.2.1", "anybody else speaks for itself");

    for (body, why) in [
        ("", "the body is not JSON: EOF while parsing a value at line 1 column 0"),
        ("[]", "the body must be a JSON object with `method`, `path`, `headers` and `client`"),
        (r#"{"method": "GET"}"#, "`path` is missing; it must be a path such as \"/v1/charges\""),
        (r#"{"path": 3}"#, "`path` is 3, but must be a path such as \"/v1/charges\""),
        (r#"{"path": "x"}"#, "the path `x` does not begin with a slash; write 'GET /x'"),
        (r#"{"path": "/", "method": "get"}"#, "`get` is not a method; write it like GET or POST"),
        (r#"{"path": "/", "client": "me"}"#, "`client` is `me`, but must be an address"),
        (r#"{"path": "/", "headers": {"a": 1}}"#, "header `a` must be a text, or a list of texts"),
        (r#"{"path": "/", "headers": []}"#, "`headers` must be an object such as {\"x-api-key\": \"a\"}"),
        (r#"{"pth": "/"}"#, "unknown field `pth`; known are `method`, `path`, `headers` and `client`"),
    ] {
        let answer = ask(running.address(), "POST /api/v1/explain", body);
        assert_eq!((answer.status, answer.detail().as_str()), (400, why));
    }
}

#[test]
fn the_description_is_served_as_it_is_published() {
    let running = Running::start();
    let answer = get(running.address(), "/api/v1/openapi.json");
    assert_eq!(answer.field("content-type"), Some("application/json"));
    assert_eq!(answer.body, tidegate::admin::OPENAPI);
}
