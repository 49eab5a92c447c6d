//! What is told of overload, and what can be done about it.

use std::time::Duration;

use serde_json::json;
use tidegate::admin::Station;
use tidegate_core::Ratio;
use tidegate_policy::gate::Readings;
use tidegate_policy::policy::SignalName;

use crate::http::{ask, get};
use crate::published::assert_is;
use crate::station::Running;

fn share(value: f64) -> Ratio {
    Ratio::new(value).unwrap()
}

/// Everything of the lowest level and some of the next.
const SHED: [f64; 4] = [1.0, 0.4, 0.0, 0.0];

#[test]
fn an_incident_is_told_in_one_sentence_and_readiness_stays() {
    let running = Running::start();
    running.station.strain(|strain| {
        strain.concurrency.shed = SHED.map(share);
        strain.concurrency.wanted_ratio = 1.8;
    });
    let status = get(running.address(), "/api/v1/status").json();
    assert_is("Status", &status);
    assert_eq!(
        status["verdict"],
        "Shedding: all of sheddable and 40 % of sheddable_plus for upstream default, which holds its limit of 64 \
         (queueing); 1.8 times its capacity is wanted."
    );
    assert_eq!(status["health"], "yellow");
    let shares = json!({ "critical_plus": 0.0, "critical": 0.0, "sheddable_plus": 0.4, "sheddable": 1.0 });
    assert_eq!(status["shedding"]["shed"], shares);
    assert_eq!(status["shedding"]["degraded"], json!(["catalogue"]));
    assert_eq!(status["shedding"]["wanted_ratio"], 1.8);
    assert_eq!(status["upstreams"][0]["limit"], 64);
    assert_eq!(status["upstreams"][0]["waiting"], 12);
    assert_eq!(status["signals"][1], json!({ "signal": "queue_delay", "unit": "seconds", "value": 0.01825 }));
    let everything = [1.0; 4];
    running.station.strain(|strain| strain.concurrency.shed = everything.map(share));
    for path in ["/readyz", "/livez"] {
        assert_eq!(get(running.address(), path).status, 200, "{path}: shedding is no reason to be unready");
    }
}

#[test]
fn a_rule_that_sheds_is_named_with_its_signal() {
    let running = Running::start();
    let readings = Readings { signals: vec![(SignalName::Cpu, 0.95)], ..Readings::default() };
    for _ in 0..160 {
        running.station.advance(Duration::from_millis(500));
        running.station.gate().steer(running.station.now(), &readings);
    }
    let status = get(running.address(), "/api/v1/status").json();
    assert_is("Status", &status);
    let verdict = status["verdict"].as_str().unwrap();
    assert!(
        verdict.starts_with("Shedding: ") && verdict.contains(" % of sheddable by rule worker_usage, "),
        "{verdict}"
    );
    assert!(verdict.ends_with("since cpu is at 95 %, target 85 %."), "{verdict}");
    assert_eq!(status["shedding"]["rules"][0]["rule"], "worker_usage");
    assert_eq!(status["shedding"]["degraded"], json!(["catalogue"]), "its requests meet the rule");
    ask(running.address(), "PATCH /api/v1/rules/worker_usage", r#"{"mode": "shadow"}"#);
    let status = get(running.address(), "/api/v1/status").json();
    let sentence = "Healthy: no requests in the last seconds. Ordered: rule worker_usage in mode shadow.";
    assert_eq!(status["verdict"], sentence, "in shadow nobody is refused");
}

#[test]
fn a_rule_that_sheds_is_explained_and_has_no_counters() {
    let running = Running::start();
    let body = r#"{"path": "/v1/catalogue/7", "headers": {"x-api-key": "ann"}}"#;
    let explained = ask(running.address(), "POST /api/v1/explain", body).json();
    assert_is("Explanation", &explained);
    let rules = explained["rules"].as_array().unwrap();
    assert!(rules.iter().any(|rule| rule["kind"] == "shed" && rule["refused_ratio"] == 0.0), "{explained:#}");
    for method in ["GET", "DELETE"] {
        let answer = ask(running.address(), &format!("{method} /api/v1/counters/worker_usage/ann"), "");
        let why = "rule `worker_usage` is of kind shed and counts nothing; see /api/v1/signals";
        assert_eq!((answer.status, answer.detail().as_str()), (409, why));
    }
    let order = r#"{"rule": "worker_usage", "quota": "5/s", "ttl": "1h"}"#;
    let answer = ask(running.address(), "PUT /api/v1/overrides/ann", order);
    assert_eq!(answer.status, 400);
    assert!(answer.detail().contains("the rule is the same for everybody"), "{answer:?}");
}

#[test]
fn limits_are_told_with_their_last_changes_in_words() {
    let running = Running::start();
    let upstreams = get(running.address(), "/api/v1/upstreams").json();
    assert_is("Upstreams", &upstreams);
    let concurrency = &upstreams["upstreams"][0]["concurrency"];
    assert_eq!(
        (&concurrency["limit"], &concurrency["in_flight"], &concurrency["waiting"]),
        (&64.into(), &64.into(), &12.into())
    );
    assert_eq!(concurrency["waiting_by_criticality"]["sheddable_plus"], 3);
    assert_eq!((&concurrency["queue_delay_ms"], &concurrency["baseline_ms"]), (&18.25.into(), &10.into()));
    assert_eq!(
        concurrency["changes"],
        json!([{
            "time": "2026-09-21T14:13:15Z",
            "from": 80,
            "to": 64,
            "why": "queueing",
            "because": "requests wait inside the upstream: they take longer than without load",
        }])
    );
    running.station.strain(|strain| {
        (strain.concurrency.last, strain.concurrency.baseline) = (None, None);
        strain.concurrency.changes.clear();
        strain.concurrency.utilization = Some(0.731);
    });
    let upstreams = get(running.address(), "/api/v1/upstreams").json();
    assert_is("Upstreams", &upstreams);
    assert_eq!(upstreams["upstreams"][0]["concurrency"]["utilization"], 0.731);
}

#[test]
fn an_autoscaler_reads_what_is_wanted_and_people_read_why() {
    let running = Running::start();
    running.station.strain(|strain| strain.concurrency.wanted_ratio = 1.437_2);
    let capacity = get(running.address(), "/api/v1/capacity").json();
    assert_is("Capacity", &capacity);
    assert_eq!(
        capacity,
        json!({
            "v": 1,
            "wanted_ratio": 1.437,
            "upstreams": { "default": 1.437 },
            "reason": "upstream default has 64 of 64 places taken and 12 waiting",
        })
    );
    running.station.strain(|strain| strain.concurrency.shed = SHED.map(share));
    let capacity = get(running.address(), "/api/v1/capacity").json();
    let reason = capacity["reason"].as_str().unwrap();
    assert!(
        reason.ends_with("12 waiting, and all of sheddable and 40 % of sheddable_plus is shed"),
        "{reason}"
    );
}

#[test]
fn signals_are_read_and_those_of_the_api_are_told() {
    let running = Running::start();
    let address = running.address();
    let signals = get(address, "/api/v1/signals").json();
    assert_is("Signals", &signals);
    let told: Vec<_> =
        signals["signals"].as_array().unwrap().iter().map(|signal| signal["from"].clone()).collect();
    assert_eq!(told, ["gateway", "gateway", "gateway", "api", "response_header:x-backlog"]);
    assert_eq!(signals["signals"][3]["value"], serde_json::Value::Null);
    let target = json!([{ "rule": "worker_usage", "target": 0.85, "is_above": false }]);
    assert_eq!(signals["signals"][0]["targets"], target);

    let put = |name: &str, body: &str| ask(address, &format!("PUT /api/v1/signals/{name}"), body);
    let answer = put("db_load", r#"{"value": 0.7}"#);
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_is("SignalTold", &answer.json());
    assert_eq!(answer.json(), json!({ "v": 1, "signal": "db_load", "told": 0.7 }));
    let signal = get(address, "/api/v1/signals").json()["signals"][3].clone();
    assert_eq!((&signal["value"], &signal["targets"][0]["is_above"]), (&0.7.into(), &true.into()));
    assert_eq!(put("db_load", r#"{"value": 3}"#).status, 200);

    for (name, body, status, why) in [
        ("db_load", "{}", 400, "`value` is missing; it must be a number such as 0.7"),
        ("db_load", r#"{"value": "70%"}"#, 400, "`value` is \"70%\", but must be a number such as 0.7"),
        ("db_load", r#"{"value": null}"#, 400, "`value` is null, but must be a number such as 0.7"),
        ("db_load", r#"{"level": 1}"#, 400, "unknown field `level`; known are `value`"),
        ("db_load", "0.7", 400, "the body must be a JSON object with `value`"),
        (
            "db_laod",
            r#"{"value": 1}"#,
            404,
            "there is no signal `db_laod`; those that can be told are `db_load`",
        ),
        (
            "cpu",
            r#"{"value": 1}"#,
            409,
            "signal `cpu` is measured by the gateway itself; only signals with `from = \"api\"` can be told",
        ),
        (
            "backlog",
            r#"{"value": 1}"#,
            409,
            "signal `backlog` comes from the response field `x-backlog`; only signals with `from = \"api\"` can be told",
        ),
    ] {
        let answer = put(name, body);
        assert_eq!((answer.status, answer.detail().as_str()), (status, why));
    }
    let huge = put("db_load", r#"{"value": 1e999}"#);
    assert_eq!(huge.status, 400, "{huge:?}");
}

#[test]
fn a_route_gives_its_cheaper_answer_when_an_operator_says_so() {
    let running = Running::start();
    let address = running.address();
    let routes = get(address, "/api/v1/routes").json();
    assert_is("Routes", &routes);
    assert_eq!(routes["routes"][0]["degrade"]["given_to"], "nobody");
    assert_eq!(routes["routes"][1]["degrade"], serde_json::Value::Null);

    let patch = |body: &str| ask(address, "PATCH /api/v1/routes/catalogue", body);
    let on = patch(r#"{"degrade": "on", "ttl": "10min"}"#).json();
    assert_is("Route", &on);
    assert_eq!(on["degrade"]["given_to"], "all");
    assert_eq!(on["degrade"]["until"], "2026-09-21T14:23:20Z");
    let status = get(address, "/api/v1/status").json();
    assert_is("Status", &status);
    let verdict = "Degraded: route catalogue gives its cheaper answer, as an operator wants.";
    assert_eq!(status["verdict"], verdict);
    running.station.advance(Duration::from_secs(600));
    assert_eq!(get(address, "/api/v1/routes").json()["routes"][0]["degrade"]["given_to"], "nobody");

    assert_eq!(patch(r#"{"degrade": "on"}"#).json()["degrade"]["until"], serde_json::Value::Null);
    assert_eq!(patch(r#"{"degrade": "auto"}"#).json()["degrade"]["given_to"], "nobody");
    running.station.strain(|strain| strain.concurrency.shed = SHED.map(share));
    assert_eq!(get(address, "/api/v1/routes").json()["routes"][0]["degrade"]["given_to"], "shed");
    for (body, why) in [
        ("{}", "`degrade` is missing; it must be `on` or `auto`"),
        (r#"{"degrade": "off"}"#, "`degrade` is \"off\", but must be `on` or `auto`"),
        (r#"{"degrade": true}"#, "`degrade` is true, but must be `on` or `auto`"),
        (r#"{"degrade": "auto", "ttl": "1h"}"#, "`ttl` does nothing with `auto`; remove it"),
        (
            r#"{"degrade": "on", "ttl": "10"}"#,
            "`ttl`: `10` has no unit; write \"10ms\", \"10s\", \"10min\" or \"10h\"",
        ),
    ] {
        let answer = patch(body);
        assert_eq!((answer.status, answer.detail().as_str()), (400, why));
    }
    let plain = ask(address, "PATCH /api/v1/routes/all", r#"{"degrade": "on"}"#);
    assert_eq!(plain.status, 409);
    assert_eq!(
        plain.detail(),
        "route `all` has no cheaper answer to give: add `degrade` to it; routes with one are `catalogue`"
    );
    let missing = ask(address, "PATCH /api/v1/routes/al", r#"{"degrade": "on"}"#);
    assert_eq!(missing.status, 404);
    assert_eq!(missing.detail(), "there is no route `al`; the routes are `catalogue` and `all`");
}
