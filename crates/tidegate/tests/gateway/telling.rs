//! What callers are told about rules, and what they are not.

use std::time::SystemTime;

use crate::support::{Answer, Gateway, Message, Upstream};

const RULE: &str = "[rule.shared]\nquota = '2/h'";

/// An admitted answer and a refused one.
fn answers(server: &str) -> (Message, Message) {
    let upstream = Upstream::ok();
    let gateway = Gateway::before(&upstream, &format!("[server]\n{server}\n{RULE}"));
    let mut client = gateway.connect();
    let admitted = client.get("/", &[]);
    client.get("/", &[]);
    let refused = client.get("/", &[]);
    assert_eq!([admitted.status(), refused.status()], [200, 429]);
    (admitted, refused)
}

fn fields(answer: &Message, names: [&str; 2]) -> [Option<String>; 2] {
    names.map(|name| answer.get(name).map(str::to_owned))
}

const FIELDS: [&str; 2] = ["ratelimit-policy", "ratelimit"];

#[test]
fn quotas_are_told_on_every_answer() {
    let (admitted, refused) = answers("");
    assert_eq!(admitted.get("ratelimit-policy"), Some("\"shared\";q=2;w=3600"));
    assert_eq!(admitted.get("ratelimit"), Some("\"shared\";r=1;t=1800"));
    assert_eq!(refused.get("ratelimit-policy"), Some("\"shared\";q=2;w=3600"));
    let retry = refused.get("retry-after").unwrap();
    assert_eq!(refused.get("ratelimit"), Some(format!("\"shared\";r=0;t={retry}").as_str()));
    assert_eq!(
        refused.get("proxy-status"),
        Some("tidegate;error=http_request_denied;details=\"rule=shared\"")
    );
    assert_eq!(refused.get("x-envoy-ratelimited"), Some("true"));
}

#[test]
fn quotas_are_told_on_refusals_only_or_never() {
    let (admitted, refused) = answers("ratelimit_fields = 'refused'");
    assert_eq!(fields(&admitted, FIELDS), [None, None]);
    assert!(fields(&refused, FIELDS).iter().all(Option::is_some));
    let (admitted, refused) = answers("ratelimit_fields = 'never'");
    assert_eq!((fields(&admitted, FIELDS), fields(&refused, FIELDS)), ([None, None], [None, None]));
    assert!(refused.get("retry-after").is_some());
}

#[test]
fn older_fields_are_told_where_the_policy_names_their_reset() {
    let (admitted, refused) = answers("legacy_ratelimit_fields = 'seconds'");
    let names = ["x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"];
    assert_eq!(names.map(|name| admitted.get(name)), [Some("2"), Some("1"), Some("1800")]);
    assert_eq!(refused.get("x-ratelimit-reset"), refused.get("retry-after"));
    let (admitted, _) = answers("legacy_ratelimit_fields = 'epoch'");
    let reset: u64 = admitted.get("x-ratelimit-reset").unwrap().parse().unwrap();
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
    assert!(reset.abs_diff(now + 1800) <= 10, "{reset} at {now}");
    assert_eq!(answers("").0.get("x-ratelimit-limit"), None, "nobody asked for them");
}

#[test]
fn decisions_are_named_where_the_policy_says_so() {
    let (admitted, refused) = answers("debug_headers = true");
    let admitted = admitted.get("tidegate-decision").unwrap();
    assert!(admitted.starts_with("admitted; id=\""), "{admitted}");
    let decision = refused.get("tidegate-decision").unwrap();
    let id = decision.strip_prefix("refused; rule=\"shared\"; id=\"").unwrap().trim_end_matches('"');
    assert_eq!(refused.json()["instance"], format!("urn:tidegate:decision:{id}"));
}

#[test]
fn fields_of_the_service_stay_before_ours() {
    let upstream = Upstream::answering(|_| {
        Answer::with(
            &[("RateLimit-Policy", "\"inner\";q=5;w=1"), ("RateLimit", "\"inner\";r=4;t=1")],
            "hello",
        )
    });
    let answer = Gateway::before(&upstream, RULE).get("/", &[]);
    assert_eq!(answer.all("ratelimit-policy"), ["\"inner\";q=5;w=1", "\"shared\";q=2;w=3600"]);
    assert_eq!(answer.all("ratelimit"), ["\"inner\";r=4;t=1", "\"shared\";r=1;t=1800"]);
}

/// Everything a gateway sends for some requests, but for the date.
fn bytes(gateway: &Gateway) -> String {
    let mut client = gateway.connect();
    for target in ["/a", "/b", "/c"] {
        client.send(format!("GET {target} HTTP/1.1\r\nHost: a\r\nX-Api-Key: alice\r\n\r\n"));
    }
    client.send("GET /d HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    let all = String::from_utf8(client.rest()).unwrap();
    let is_date = |line: &&str| line.to_ascii_lowercase().starts_with("date:");
    all.split_inclusive("\r\n").filter(|line| !is_date(line)).collect()
}

#[test]
fn a_rule_in_shadow_leaves_no_byte() {
    let upstream = Upstream::ok();
    let without = bytes(&Gateway::before(&upstream, ""));
    assert_eq!(without.matches("HTTP/1.1 200 OK").count(), 4, "{without}");
    for rule in [
        "[rule.dark]\nquota = '1/h'\nmode = 'shadow'",
        "[rule.dark]\nkey = 'header:x-api-key'\nquota = '1/h'\nmode = 'shadow'",
        "[rule.dark]\nquota = '1/h'\nalgorithm = 'leaky_bucket'\nmode = 'shadow'",
        "[rule.dark]\nquota = '1/h'\nalgorithm = 'sliding_log'\nmode = 'shadow'",
        "[rule.dark]\nlimit = 1\nmode = 'shadow'",
        "[rule.dark]\nquota = '1/h'\nmode = 'disabled'",
    ] {
        assert_eq!(bytes(&Gateway::before(&upstream, rule)), without, "{rule}");
    }
}

#[test]
fn the_next_value_in_shadow_leaves_no_byte() {
    let upstream = Upstream::ok();
    let rule = "[rule.shared]\nquota = '10/h'";
    let shadow = format!("{rule}\nshadow = {{ quota = '1/h' }}");
    assert_eq!(bytes(&Gateway::before(&upstream, &shadow)), bytes(&Gateway::before(&upstream, rule)));
}
