//! What can be changed.

use std::time::Duration;

use tidegate::admin::{Stage, Station};

use crate::http::{ask, ask_with, get};
use crate::published::assert_is;
use crate::station::{POLICY, Running};

const TOML: &str = "content-type: application/toml\r\n";

#[test]
fn a_policy_is_replaced_only_by_those_who_know_it() {
    let running = Running::start();
    let address = running.address();
    let first = get(address, "/api/v1/policy");
    assert_eq!((first.status, first.body.as_str()), (200, POLICY));
    assert_eq!(first.field("content-type"), Some("application/toml"));
    assert_eq!(first.field("tidegate-policy-version"), Some("1"));
    let tag = first.field("etag").unwrap().to_owned();

    let put = |fields: &str, text: &str| ask_with(address, "PUT /api/v1/policy", fields, text);
    let other = POLICY.replace("10/min", "20/min");
    let taken = put(&format!("{TOML}if-match: {tag}\r\n"), &other);
    assert_eq!(taken.status, 200, "{taken:?}");
    assert_is("PolicyTaken", &taken.json());
    assert_eq!(taken.json()["policy_version"], 2);
    let second = get(address, "/api/v1/policy");
    assert_eq!((second.body.as_str(), second.field("etag")), (other.as_str(), taken.field("etag")));

    let late = put(&format!("{TOML}if-match: {tag}\r\n"), POLICY);
    assert_eq!(
        (late.status, late.detail().as_str()),
        (412, "the policy has changed: it is version 2 now; read it again")
    );
    assert_eq!(put(&format!("{TOML}if-match: *\r\n"), POLICY).status, 200);
    assert_eq!(put(TOML, POLICY).json()["policy_version"], 4);
    assert_eq!(running.station.gate().version(), 4);

    let yaml = "upstream: http://127.0.0.1:3000\nrule: { per_key: { quota: 10/s, key: client-ip } }\n";
    assert_eq!(put("content-type: application/yaml; charset=utf-8\r\n", yaml).status, 200);
    assert_eq!(get(address, "/api/v1/policy").field("content-type"), Some("application/yaml"));
}

#[test]
fn a_wrong_policy_is_told_with_all_its_problems_and_changes_nothing() {
    let running = Running::start();
    let address = running.address();
    let wrong = POLICY.replace("burst = 5", "brust = 5").replace("\"10/min\"", "\"10\"");
    let answer = ask_with(address, "PUT /api/v1/policy", TOML, &wrong);
    assert_eq!(answer.status, 422);
    assert_eq!(answer.detail(), "2 errors, 1 warning. The policy stays as it is.");
    assert_is("Problem", &answer.json());
    let codes: Vec<_> =
        answer.json()["problems"].as_array().unwrap().iter().map(|p| p["code"].clone()).collect();
    assert_eq!(codes, ["TG0324", "TG0110", "TG0102"]);
    assert!(answer.json()["text"].as_str().unwrap().contains("did you mean `burst`?"));
    assert_eq!(running.station.gate().version(), 1);

    let checked = ask_with(address, "POST /api/v1/policy/check", TOML, &wrong).json();
    assert_is("PolicyChecked", &checked);
    assert_eq!((&checked["ok"], &checked["summary"]), (&false.into(), &"2 errors, 1 warning.".into()));
    let checked = ask_with(address, "POST /api/v1/policy/check", TOML, POLICY).json();
    assert_is("PolicyChecked", &checked);
    assert_eq!(checked["ok"], true);

    let form = ask_with(address, "PUT /api/v1/policy", "content-type: text/plain\r\n", POLICY);
    assert_eq!(form.status, 415);
    assert!(
        form.detail()
            .starts_with("the content-type says `text/plain`; a policy's must be `application/toml`, ")
    );
    assert_eq!(ask_with(address, "POST /api/v1/policy/check", "", POLICY).status, 415);
}

#[test]
fn a_rule_is_switched_for_a_time_and_goes_back_by_itself() {
    let running = Running::start();
    let address = running.address();
    let rules = get(address, "/api/v1/rules").json();
    assert_is("Rules", &rules);
    let names: Vec<_> = rules["rules"].as_array().unwrap().iter().map(|rule| rule["rule"].clone()).collect();
    assert_eq!(names, ["per_key", "per_path", "places", "everybody", "worker_usage"]);
    assert_eq!(rules["rules"][4]["limit"]["target"], serde_json::json!({ "cpu": 0.85, "db_load": 0.5 }));

    let patch = |body: &str| ask(address, "PATCH /api/v1/rules/per_key", body);
    let shadow = patch(r#"{"mode": "shadow", "ttl": "10min"}"#).json();
    assert_is("Rule", &shadow);
    assert_eq!((&shadow["mode"], &shadow["switched"]), (&"shadow".into(), &true.into()));
    assert_eq!(shadow["until"], "2026-09-21T14:23:20Z");
    assert_eq!(running.station.requests("ann", 20).1, 20);
    running.station.advance(Duration::from_secs(600));
    assert_eq!(get(address, "/api/v1/rules").json()["rules"][0]["mode"], "enforce");
    assert_eq!(running.station.requests("bob", 20).1, 5);

    let disabled = patch(r#"{"mode": "disabled"}"#).json();
    assert_eq!((&disabled["switched"], &disabled["until"]), (&true.into(), &serde_json::Value::Null));
    let back = patch(r#"{"mode": null}"#).json();
    assert_eq!((&back["mode"], &back["switched"]), (&"enforce".into(), &false.into()));

    for (body, why) in [
        (
            r#"{}"#,
            "`mode` is missing; it must be `enforce`, `shadow` or `disabled`, or null to go by the policy",
        ),
        (r#"{"mode": "off"}"#, "`mode` is \"off\", but must be `enforce`, `shadow` or `disabled`, or null"),
        (r#"{"mode": null, "ttl": "1h"}"#, "`ttl` does nothing without a mode; remove it"),
        (
            r#"{"mode": "shadow", "ttl": "10"}"#,
            "`ttl`: `10` has no unit; write \"10ms\", \"10s\", \"10min\" or \"10h\"",
        ),
        (r#"{"mode": "shadow", "ttl": "0s"}"#, "`ttl` is no time at all; it must be above 0"),
        (r#"{"mode": "shadow", "tll": "1h"}"#, "unknown field `tll`; known are `mode` and `ttl`"),
    ] {
        let answer = patch(body);
        assert_eq!((answer.status, answer.detail().as_str()), (400, why));
    }
    let missing = ask(address, "PATCH /api/v1/rules/per_kye", r#"{"mode": "shadow"}"#);
    assert_eq!(missing.status, 404);
    assert_eq!(
        missing.detail(),
        "there is no rule `per_kye`; the rules are `per_key`, `per_path`, `places`, `everybody` and `worker_usage`"
    );
}

#[test]
fn a_caller_gets_a_limit_of_its_own_for_a_time() {
    let running = Running::start();
    let address = running.address();
    let put = |caller: &str, body: &str| ask(address, &format!("PUT /api/v1/overrides/{caller}?new=1"), body);
    let order = put("ann", r#"{"rule": "per_key", "quota": "50/s", "burst": 12, "ttl": "1h"}"#);
    assert_eq!(order.status, 200, "{order:?}");
    assert_is("Override", &order.json());
    assert_eq!(order.json()["limit"], serde_json::json!({ "quota": "50/s", "most": 12 }));
    let places = put("a%2Fb%20c", r#"{"rule": "places", "limit": 2, "ttl": "1h"}"#).json();
    assert_eq!((&places["caller"], &places["limit"]["limit"]), (&"a/b c".into(), &2.into()));
    assert_eq!(running.station.requests("ann", 20).1, 12);
    assert_eq!(running.station.requests("a/b c", 20).1, 2);
    let overrides = get(address, "/api/v1/overrides").json();
    assert_is("Overrides", &overrides);
    assert_eq!(overrides["overrides"].as_array().unwrap().len(), 2);

    let cleared = ask(address, "DELETE /api/v1/overrides/ann?rule=per_key", "").json();
    assert_is("OverridesCleared", &cleared);
    assert_eq!(cleared["cleared"], serde_json::json!(["per_key"]));
    let again = ask(address, "DELETE /api/v1/overrides/ann", "");
    assert_eq!((again.status, again.detail().as_str()), (404, "caller `ann` has no override"));
    running.station.advance(Duration::from_secs(3_600));
    assert_eq!(get(address, "/api/v1/overrides").json()["overrides"], serde_json::json!([]));
}

#[test]
fn an_override_that_makes_no_sense_is_refused_with_the_words_of_a_policy() {
    let running = Running::start();
    for (body, status, why) in [
        (r#"{"quota": "5/s", "ttl": "1h"}"#, 400, "`rule` is missing; it must be a rule's name"),
        (
            r#"{"rule": "per_key", "quota": "5/s"}"#,
            400,
            "`ttl` is missing; it must be a length of time such as \"1h\"",
        ),
        (
            r#"{"rule": "per_key", "quota": "5", "ttl": "1h"}"#,
            400,
            "`quota`: `5` has no unit; write \"5/s\", \"5/min\", \"5/hour\", \"5/day\" or \"5/month\"",
        ),
        (
            r#"{"rule": "per_key", "burst": "5", "ttl": "1h"}"#,
            400,
            "`burst` is \"5\", but must be a number such as 100",
        ),
        (
            r#"{"rule": "per_key", "ttl": "1h"}"#,
            400,
            "override `per_key` of caller `ann` has no numbers of its own: add some, or remove it",
        ),
        (
            r#"{"rule": "per_key", "limit": 5, "ttl": "1h"}"#,
            400,
            "`limit` belongs to concurrency rules and does nothing in override `per_key` of caller `ann`: remove it",
        ),
        (
            r#"{"rule": "places", "limit": 0, "ttl": "1h"}"#,
            400,
            "limit is 0, but must be from 1 to 4294967295: write a number in that range",
        ),
        (
            r#"{"rule": "everybody", "quota": "5/s", "ttl": "1h"}"#,
            409,
            "rule of an override is everybody, but must be one whose key tells callers apart",
        ),
    ] {
        let answer = ask(running.address(), "PUT /api/v1/overrides/ann?new=1", body);
        assert_eq!((answer.status, answer.detail().as_str()), (status, why));
    }
    let missing =
        ask(running.address(), "PUT /api/v1/overrides/ann", r#"{"rule": "x", "quota": "5/s", "ttl": "1h"}"#);
    assert_eq!(missing.status, 404);
}

#[test]
fn counters_are_read_and_forgotten() {
    let running = Running::start();
    let address = running.address();
    running.station.requests("ann", 3);
    let counter = get(address, "/api/v1/counters/per_key/ann").json();
    assert_is("Counter", &counter);
    assert_eq!((&counter["used"], &counter["limit"]), (&3.into(), &5.into()));
    // A path is a key with slashes, encoded or not.
    for key in ["ann%7C%2Fv1%2Forders", "ann|/v1/orders"] {
        let counter = get(address, &format!("/api/v1/counters/per_path/{key}")).json();
        assert_eq!((&counter["key"], &counter["used"]), (&"ann|/v1/orders".into(), &3.into()));
    }
    let forgotten = ask(address, "DELETE /api/v1/counters/per_key/ann", "").json();
    assert_is("Counter", &forgotten);
    assert_eq!(forgotten["used"], 0);
    assert_eq!(running.station.requests("ann", 9).1, 5);

    let parts = get(address, "/api/v1/counters/per_path/ann");
    assert_eq!(
        (parts.status, parts.detail().as_str()),
        (400, "the key of rule `per_path` has 2 parts, `caller|path`; write them with `|` between")
    );
    assert_eq!(get(address, "/api/v1/counters/nothing/ann").status, 404);
    let places = ask(address, "DELETE /api/v1/counters/places/ann", "");
    assert_eq!(
        (places.status, places.detail().as_str()),
        (409, "places in flight come back by themselves and cannot be forgotten")
    );
    assert_is("Counter", &get(address, "/api/v1/counters/places/ann").json());
}

#[test]
fn draining_is_begun_and_told() {
    let running = Running::start();
    let answer = ask(running.address(), "POST /api/v1/drain", "");
    assert_eq!(answer.status, 202);
    assert_is("Status", &answer.json());
    assert_eq!(answer.json()["verdict"], "Draining: 0 requests in flight.");
    assert_eq!(running.station.stage(), Stage::Draining);
    assert_eq!(ask(running.address(), "POST /api/v1/drain", "").status, 202);
}
