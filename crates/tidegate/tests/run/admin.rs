//! The admin API in front of the gateway itself.

use crate::gateway::support::{Answer, Upstream};
use crate::operated::Operated;
use crate::published::assert_is;

const RULE: &str = "server.debug_headers = true\n\
                    [caller]\nfrom = [\"header:x-api-key\"]\n\
                    [rule.per_key]\nkey = \"caller\"\nalgorithm = \"fixed_window\"\nquota = \"3/day\"\n";

fn statuses(gateway: &Operated, count: usize, key: &str) -> Vec<u16> {
    gateway.gateway.statuses(count, "/v1/items", &[("x-api-key", key)])
}

#[test]
fn the_status_says_in_one_sentence_how_it_goes() {
    let upstream = Upstream::ok();
    let gateway = Operated::before(&upstream, RULE);
    assert_eq!(gateway.get("/api/v1/status")["verdict"], "Healthy: no requests in the last seconds.");
    assert_eq!(statuses(&gateway, 10, "ann").iter().filter(|status| **status == 429).count(), 7);
    let refuses =
        |picture: &serde_json::Value| picture["verdict"].as_str().unwrap().starts_with("Refusing: ");
    let picture = gateway.frames().find(refuses).unwrap();
    assert_is("Status", &picture);
    let verdict = picture["verdict"].as_str().unwrap();
    assert!(verdict.ends_with("70 % refused, all by rule per_key."), "{verdict}");
    assert_eq!((&picture["totals"]["admitted"], &picture["totals"]["refused"]), (&3.into(), &7.into()));
    assert_eq!(picture["connections"][0]["accepted"], 1);
    assert_eq!(picture["policy"]["name"], "tidegate.toml");
    assert_eq!(gateway.ask("GET", "/readyz", "").status(), 200, "refusing is no reason to be unready");
}

#[test]
fn a_rule_that_does_nothing_names_the_callers_of_its_routes() {
    const CALLERS: &str = "[caller]\nfrom = [\"header:x-api-key\"]\n";
    const PAGE: &str = include_str!("../../../../docs/how-to/read-an-incident.md");
    let rule = PAGE.split("```").find_map(|block| Some(block.split_once("[rule.names_callers]")?.1)).unwrap();
    let upstream = Upstream::ok();
    for (rule, caller) in [(String::new(), None), (format!("[rule.names_callers]{rule}"), Some("ann"))] {
        let gateway = Operated::before(&upstream, &format!("{CALLERS}{rule}"));
        assert_eq!(statuses(&gateway, 20, "ann"), [200; 20]);
        let decision = &gateway.get("/api/v1/decisions?n=1")["decisions"][0];
        assert_eq!(decision["caller"].as_str(), caller, "{decision:#}");
        let callers = gateway.get("/api/v1/callers?sort=cost");
        assert_eq!(callers["callers"][0]["caller"].as_str(), caller, "{callers:#}");
    }
}

#[test]
fn the_stream_has_a_frame_at_once_and_one_a_second() {
    let upstream = Upstream::ok();
    let gateway = Operated::before(&upstream, RULE);
    let frames: Vec<_> = gateway.frames().take(3).collect();
    assert_eq!(frames.len(), 3);
    frames.iter().for_each(|frame| assert_is("Status", frame));
    assert_ne!(frames[1]["time"], frames[2]["time"]);
}

#[test]
fn an_upstream_that_fails_is_named() {
    let upstream = Upstream::answering(|_| Answer::raw("HTTP/1.1 500 Oh No\r\nContent-Length: 0\r\n\r\n"));
    let gateway = Operated::before(&upstream, "");
    assert_eq!(gateway.gateway.statuses(25, "/", &[]), [500; 25]);
    let picture = gateway.frames().find(|picture| picture["health"] == "red").unwrap();
    assert_eq!(picture["verdict"], "Red: upstream default fails all of its attempts.");
    let upstreams = gateway.get("/api/v1/upstreams");
    assert_is("Upstreams", &upstreams);
    let upstream = &upstreams["upstreams"][0];
    assert_eq!((&upstream["upstream"], &upstream["attempts"]["error"]), (&"default".into(), &25.into()));
}

#[test]
fn a_rule_in_shadow_lets_pass_what_it_would_refuse() {
    let upstream = Upstream::ok();
    let gateway = Operated::before(&upstream, RULE);
    assert_eq!(statuses(&gateway, 4, "ann"), [200, 200, 200, 429]);
    let switched = gateway.ask("PATCH", "/api/v1/rules/per_key", r#"{"mode": "shadow", "ttl": "1h"}"#);
    assert_eq!(switched.status(), 200, "{switched:?}");
    assert_is("Rule", &switched.json());
    assert_eq!(statuses(&gateway, 3, "ann"), [200; 3]);
    assert_eq!(gateway.get("/api/v1/rules")["rules"][0]["shadow_refused"], 3);
    let back = gateway.ask("PATCH", "/api/v1/rules/per_key", r#"{"mode": null}"#);
    assert_eq!(back.json()["mode"], "enforce");
    assert_eq!(statuses(&gateway, 1, "ann"), [429]);
    // For a moment only.
    gateway.ask("PATCH", "/api/v1/rules/per_key", r#"{"mode": "shadow", "ttl": "1ms"}"#);
    gateway.until("/api/v1/rules", |rules| rules.json()["rules"][0]["mode"] == "enforce");
    assert_eq!(statuses(&gateway, 1, "ann"), [429]);
}

#[test]
fn a_caller_gets_a_limit_of_its_own_and_a_counter_begins_anew() {
    let upstream = Upstream::ok();
    let gateway = Operated::before(&upstream, RULE);
    assert_eq!(statuses(&gateway, 4, "ann"), [200, 200, 200, 429]);
    let body = r#"{"rule": "per_key", "quota": "5/day", "ttl": "1h"}"#;
    let put = gateway.ask("PUT", "/api/v1/overrides/ann", body);
    assert_eq!(put.status(), 200, "{put:?}");
    assert_eq!(statuses(&gateway, 1, "ann"), [200], "five are more than three");
    assert_is("Overrides", &gateway.get("/api/v1/overrides"));
    let counter = gateway.get("/api/v1/counters/per_key/ann");
    assert_is("Counter", &counter);
    assert_eq!(counter["limit"], 5, "{counter:#}");
    let anew = gateway.ask("DELETE", "/api/v1/counters/per_key/ann", "");
    assert_eq!((anew.status(), &anew.json()["used"]), (200, &0.into()), "{anew:?}");
    assert_eq!(statuses(&gateway, 6, "ann"), [200, 200, 200, 200, 200, 429]);
    assert_eq!(gateway.ask("DELETE", "/api/v1/overrides/ann", "").status(), 200);
    assert_eq!(gateway.get("/api/v1/counters/per_key/ann")["limit"], 3);
    let callers = gateway.get("/api/v1/callers?sort=refused&n=5");
    assert_is("Callers", &callers);
    assert_eq!(callers["callers"].as_array().unwrap().len(), 1, "{callers:#}");
}

#[test]
fn a_refused_caller_can_ask_why() {
    let upstream = Upstream::ok();
    let gateway = Operated::before(&upstream, RULE);
    assert_eq!(statuses(&gateway, 3, "ann"), [200; 3]);
    let refused = gateway.gateway.get("/v1/items", &[("x-api-key", "ann")]);
    let told = refused.get("tidegate-decision").expect("debug headers are on");
    let id = told.split_once("id=\"").unwrap().1.trim_end_matches('"').to_owned();
    let decision = gateway.get(&format!("/api/v1/decisions/{id}"));
    assert_is("Record", &decision);
    assert_eq!((&decision["decision"], &decision["rule"]), (&"refused".into(), &"per_key".into()));
    assert_eq!(decision["path"], "/v1/items");
    let listed = gateway.get("/api/v1/decisions?refused=1&n=20");
    assert_eq!(listed["decisions"][0]["id"], id.as_str());

    let request = r#"{"path": "/v1/items", "headers": {"x-api-key": "ann"}}"#;
    let words = [("accept", "text/plain"), ("content-type", "application/json")];
    let explained = gateway.ask_with("POST", "/api/v1/explain", &words, request);
    assert!(
        explained.text().starts_with("GET /v1/items would be refused by rule `per_key`"),
        "{explained:?}"
    );
    assert_eq!(gateway.get("/api/v1/counters/per_key/ann")["used"], 3, "asking costs nothing");
}

#[test]
fn a_policy_is_checked_with_the_table_it_names() {
    let upstream = Upstream::ok();
    let gateway = Operated::before(&upstream, RULE);
    let check = |text: &str| {
        let fields = [("content-type", "application/toml")];
        gateway.ask_with("POST", "/api/v1/policy/check", &fields, text).json()
    };
    let served = "listen = \"127.0.0.1:0\"\nupstream = \"http://127.0.0.1:3000\"\n";
    assert_eq!(check(served)["ok"], true);
    assert_eq!(check("upstream = \"http://127.0.0.1:3000\"\n")["problems"][0]["code"], "TG0401");
    let wrong = check("upstream = 3\n");
    assert_is("PolicyChecked", &wrong);
    assert_eq!(wrong["ok"], false);
    let nameless = check(&format!("{served}[caller]\ntable = \"missing.toml\"\n"));
    assert_is("PolicyChecked", &nameless);
    assert_eq!(nameless["ok"], false);
    let said = nameless["problems"][0]["message"].as_str().unwrap();
    assert!(said.starts_with("the table of callers `missing.toml` cannot be read: "), "{nameless}");
    assert_eq!(gateway.policy_version(), 1);
}
