//! What operators order for single callers, and what is told of it afterwards.

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::gateway::support::{Gateway, H2Client, Upstream, refused_to_start};
use crate::operated::Operated;
use crate::published::assert_is;

const POLICY: &str = r#"
caller = { from = ["header:x-api-key", "client-ip"] }

[rule.quiet]
key   = "caller"
quota = "1000/s"
mode  = "disabled"

[rule.watched]
key   = "header:x-tenant"
quota = "1000/s"
mode  = "shadow"

[[route]]
name   = "health"
match  = { path = "/health" }
exempt = true

[[route]]
name  = "free"
match = { path = "/free" }
rules = []

[[route]]
name  = "watched"
match = { path = "/watched/**" }
rules = ["watched"]

[[route]]
name  = "quiet"
match = { path = "/**" }
rules = ["quiet"]
"#;

fn status(gateway: &Operated, path: &str, key: &str) -> u16 {
    gateway.gateway.get(path, &[("x-api-key", key)]).status()
}

#[track_caller]
fn told(gateway: &Operated, method: &str, path: &str, body: &str) -> Value {
    let answer = gateway.ask(method, path, body);
    assert_eq!(answer.status(), 200, "{method} {path}: {}", answer.text());
    answer.json()
}

#[test]
fn a_blocked_caller_is_kept_out_of_all_but_exempt_routes_whatever_the_modes() {
    let upstream = Upstream::ok();
    let gateway = Operated::before(&upstream, POLICY);
    assert_eq!(status(&gateway, "/", "ann"), 200);
    let block = told(&gateway, "PUT", "/api/v1/overrides/ann", r#"{"block": true, "ttl": "1h"}"#);
    assert_is("Override", &block);
    assert_eq!((&block["block"], &block["rule"]), (&json!(true), &Value::Null));
    for path in ["/", "/free", "/watched/1"] {
        assert_eq!((status(&gateway, path, "ann"), status(&gateway, path, "bob")), (403, 200), "{path}");
    }
    assert_eq!(status(&gateway, "/health", "ann"), 200, "health checks come by it");

    let refused = gateway.gateway.get("/", &[("x-api-key", "ann")]);
    let problem = refused.json();
    assert_eq!((&problem["type"], &problem["status"]), (&json!("about:blank"), &json!(403)));
    for field in ["ratelimit", "ratelimit-policy", "retry-after", "x-envoy-ratelimited"] {
        assert_eq!(refused.get(field), None, "{field}");
    }
    assert_eq!(refused.get("cache-control"), Some("no-store"));
    let twice = gateway.gateway.get("/free", &[("x-api-key", "bob"), ("x-api-key", "ann")]);
    assert_eq!(twice.status(), 400, "it could be either");

    let client = H2Client::connect(gateway.gateway.address());
    let uri = format!("http://{}/", gateway.gateway.address());
    assert_eq!(client.get(&uri, &[("x-api-key", "ann")]).head.status, 403);
    let call = [("x-api-key", "ann"), ("content-type", "application/grpc")];
    let answer = client.get(&uri, &call);
    assert_eq!((answer.head.status.as_u16(), answer.get("grpc-status")), (200, Some("7")));

    let decision = gateway.get("/api/v1/decisions?refused=1&n=1");
    assert_eq!(decision["decisions"][0]["reason"], "blocked");
    let metric = r#"tidegate_refusals_total{rule="operator:block",reason="blocked",criticality="critical"}"#;
    assert_eq!(gateway.metric(metric), 6);
    let asked = r#"{"path": "/free", "headers": {"x-api-key": "ann"}}"#;
    let explained = told(&gateway, "POST", "/api/v1/explain", asked);
    assert_is("Explanation", &explained);
    assert_eq!(
        (&explained["decision"], &explained["refused_by"]),
        (&"refused".into(), &"operator:block".into())
    );
    let text = explained["text"].as_str().unwrap();
    assert!(
        text.starts_with("GET /free would be refused: an operator keeps its caller out, for another "),
        "{text}"
    );
    let verdict = gateway.get("/api/v1/status")["verdict"].as_str().unwrap().to_owned();
    assert!(verdict.ends_with(" Ordered: 1 blocked caller."), "{verdict}");

    told(&gateway, "DELETE", "/api/v1/overrides/ann", "");
    assert_eq!(status(&gateway, "/", "ann"), 200);
}

#[test]
fn a_block_may_be_for_one_rule_and_by_the_key_of_that_rule() {
    let upstream = Upstream::ok();
    let gateway = Operated::before(&upstream, POLICY);
    let tenant = |path: &str| gateway.gateway.get(path, &[("x-tenant", "acme")]).status();
    assert_eq!((tenant("/watched/1"), tenant("/")), (200, 200));
    told(&gateway, "PUT", "/api/v1/overrides/acme", r#"{"block": true, "rule": "watched"}"#);
    assert_eq!((tenant("/watched/1"), tenant("/")), (403, 200));
    let metric = r#"tidegate_refusals_total{rule="watched",reason="blocked",criticality="critical"}"#;
    assert_eq!(gateway.metric(metric), 1);
    gateway.gateway.signal(Signal::HUP);
    gateway.says("tidegate: tidegate.toml is the policy in force; version 1 stays");
    assert_eq!(tenant("/watched/1"), 403);
    assert_eq!(gateway.ask("DELETE", "/api/v1/overrides/acme?rule=quiet", "").status(), 404);
    told(&gateway, "DELETE", "/api/v1/overrides/acme?rule=watched&block=1", "");
    assert_eq!(tenant("/watched/1"), 200);
    for (body, why) in [
        (r#"{"block": false}"#, "`block` is false, but must be true"),
        (r#"{"block": true, "quota": "1/s"}"#, "`quota` does nothing with `block`"),
        (r#"{"block": true, "rule": "other"}"#, "there is no rule `other`"),
        ("{}", "`rule` is missing"),
    ] {
        let answer = gateway.ask("PUT", "/api/v1/overrides/acme", body);
        assert!(answer.status() >= 400 && answer.text().contains(why), "{answer:?}");
    }
}

#[test]
fn callers_are_named_by_what_lists_show() {
    let upstream = Upstream::ok();
    let gateway = Operated::before(&upstream, &POLICY.replace("mode  = \"disabled\"", ""));
    let key = "sk_live_4eC39HqLyjWDarj";
    assert_eq!(status(&gateway, "/", key), 200);
    let listed = gateway.get("/api/v1/callers?sort=cost")["callers"][0].clone();
    assert_eq!(listed["caller"], "sk_live_…", "before anybody is refused");
    let fingerprint = listed["fingerprint"].as_str().unwrap();

    let counter = gateway.get(&format!("/api/v1/counters/quiet/{fingerprint}?by=fingerprint"));
    assert_eq!(counter["limit"], gateway.get(&format!("/api/v1/counters/quiet/{key}"))["limit"]);
    let order = r#"{"rule": "quiet", "quota": "1/day", "burst": 1, "ttl": "1h"}"#;
    let path = format!("/api/v1/overrides/{fingerprint}?by=fingerprint");
    let given = told(&gateway, "PUT", &path, order);
    assert_eq!((&given["caller"], &given["fingerprint"]), (&"sk_live_…".into(), &fingerprint.into()));
    assert_eq!([status(&gateway, "/", key), status(&gateway, "/", key)], [200, 429]);
    told(&gateway, "DELETE", &path, "");
    assert_eq!(status(&gateway, "/", key), 200);
    told(&gateway, "PUT", &path, r#"{"block": true}"#);
    assert_eq!(status(&gateway, "/", key), 403);
    let all = gateway.get("/api/v1/overrides");
    assert_is("Overrides", &all);
    assert_eq!(all["overrides"][0]["caller"], "sk_live_…");
    told(&gateway, "DELETE", &format!("/api/v1/overrides/{key}"), "");
    assert_eq!(status(&gateway, "/", key), 200, "it is the same caller");

    let tenant = || gateway.gateway.get("/watched/1", &[("x-tenant", "tenant_of_a_rule")]).status();
    assert_eq!(tenant(), 200);
    let listed = gateway.get("/api/v1/callers?sort=cost");
    let listed = listed["callers"].as_array().unwrap().iter();
    let found = listed.into_iter().find(|one| one["caller"] == "tenant_o…").expect("by the rule's own key");
    let path = format!("/api/v1/overrides/{}?by=fingerprint", found["fingerprint"].as_str().unwrap());
    told(&gateway, "PUT", &path, r#"{"block": true, "ttl": "1h"}"#);
    assert_eq!(tenant(), 403);
    let odd = gateway.ask("PUT", "/api/v1/overrides/sk_live?by=fingerprint", r#"{"block": true}"#);
    assert_eq!(odd.status(), 400, "{odd:?}");
}

#[test]
fn an_identity_that_was_never_seen_is_an_error_that_names_the_nearest() {
    let upstream = Upstream::ok();
    let gateway = Operated::before(&upstream, &POLICY.replace("mode  = \"disabled\"", ""));
    assert_eq!(status(&gateway, "/", "acct_1"), 200);
    let block = r#"{"block": true, "ttl": "1h"}"#;
    let never = gateway.ask("PUT", "/api/v1/overrides/acct_l", block);
    assert_eq!(never.status(), 404);
    let detail = never.json()["detail"].as_str().unwrap().to_owned();
    assert!(detail.contains("caller `acct_l` is in no table") && detail.contains("`acct_1` ("), "{detail}");
    assert_eq!(gateway.get("/api/v1/overrides")["overrides"], json!([]));
    told(&gateway, "PUT", "/api/v1/overrides/acct_l?new=1", block);
    told(&gateway, "PUT", "/api/v1/overrides/acct_l", block);
    assert_eq!(status(&gateway, "/", "acct_l"), 403);
    assert_eq!(gateway.ask("PUT", "/api/v1/overrides/0123456789abcdef?by=fingerprint", block).status(), 404);
}

#[test]
fn every_change_is_kept_with_who_and_what_and_said_in_the_log() {
    let upstream = Upstream::ok();
    let gateway = Operated::before(&upstream, POLICY);
    assert_eq!(status(&gateway, "/", "sk_live_4eC39HqLyjWDarj"), 200);
    let told = |method: &str, path: &str, body: &str| told(&gateway, method, path, body);
    told("PATCH", "/api/v1/rules/quiet", r#"{"mode": "shadow", "ttl": "10min"}"#);
    told("PUT", "/api/v1/overrides/sk_live_4eC39HqLyjWDarj?new=1", r#"{"block": true}"#);
    told("DELETE", "/api/v1/counters/quiet/sk_live_4eC39HqLyjWDarj", "");
    let next = crate::operated::policy(&upstream, &POLICY.replace("1000/s", "900/s"));
    assert_eq!(gateway.put(&next).status(), 200);
    gateway.rewrite(&crate::operated::policy(&upstream, &POLICY.replace("1000/s", "800/s")));
    gateway.says("tidegate: tidegate.toml in force as version 3");

    let log = gateway.gateway.errors();
    let changes = gateway.until("/api/v1/changes", |answer| answer.json()["changes"][4].is_object()).json();
    assert_is("Changes", &changes);
    let kept: Vec<[&str; 4]> = changes["changes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|change| ["by", "what", "was", "now"].map(|name| change[name].as_str().unwrap()))
        .collect();
    assert_eq!(kept[0], ["file tidegate.toml", "policy", "version 2 (sent)", "version 3 (tidegate.toml)"]);
    assert_eq!(kept[1], ["127.0.0.1", "policy", "version 1 (tidegate.toml)", "version 2 (sent)"]);
    assert!(kept[2][1].starts_with("counter of sk_live_… "), "{kept:?}");
    assert!(kept[3][1].starts_with("caller sk_live_… ("), "{kept:?}");
    assert_eq!(kept[3][2..], ["let in", "blocked"]);
    assert_eq!(kept[4], ["127.0.0.1", "mode of rule quiet", "disabled", "shadow"]);
    assert!(changes["changes"][4]["until"].is_string() && changes["changes"][3]["until"].is_null());
    let line = log.find(|line| line.contains("what=\"mode of rule quiet\"")).expect("it is said");
    assert!(line.contains(" by=127.0.0.1 ") && line.contains(" was=disabled now=shadow until="), "{line}");
    assert!(!log.so_far().iter().any(|line| line.contains("4eC39")), "keys may be secrets");
    let verdict = gateway.get("/api/v1/status")["verdict"].as_str().unwrap().to_owned();
    assert!(verdict.ends_with(" Ordered: rule quiet in mode shadow, 1 blocked caller."), "{verdict}");

    let refused = gateway.ask("PATCH", "/api/v1/rules/none", r#"{"mode": "shadow"}"#);
    assert_eq!(refused.status(), 404);
    assert_eq!(gateway.get("/api/v1/changes")["changes"].as_array().unwrap().len(), 5, "nothing changed");
}

#[test]
fn with_a_key_fingerprints_outlast_the_process_and_numbers_of_decisions_do_not_repeat() {
    let upstream = Upstream::ok();
    let seen = |key: &str| {
        let policy = POLICY.replace("mode  = \"disabled\"", "");
        let with_key = format!("{policy}\n[telemetry]\nfingerprint_key = {{ file = \"key\" }}\n");
        let policy = crate::operated::policy(&upstream, &with_key);
        let gateway = Operated::of(Gateway::start_with(&policy, &[("key", key)]));
        assert_eq!(status(&gateway, "/", "ann"), 200);
        let decision = gateway.get("/api/v1/decisions?n=1")["decisions"][0].clone();
        (decision["fingerprint"].as_str().unwrap().to_owned(), decision["id"].as_str().unwrap().to_owned())
    };
    let (one, again, other) =
        (seen("a-key-of-16-bytes\n"), seen("a-key-of-16-bytes"), seen("another-key-of-16"));
    assert_eq!(one.0, again.0);
    assert_ne!(one.0, other.0);
    assert_ne!(one.1, again.1);
    let short = "listen = \"127.0.0.1:0\"\nupstream = \"http://127.0.0.1:9\"\n[telemetry]\nfingerprint_key = { file = \"key\" }\n";
    let (code, said) = refused_to_start(short, &[("key", "short")]);
    assert_eq!(code, 78);
    assert!(said.contains("the key of fingerprints in key has fewer than 16 bytes"), "{said}");
}
