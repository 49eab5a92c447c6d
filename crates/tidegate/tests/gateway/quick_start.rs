//! From nothing to a refused request, as the documents say.

use serde_json::json;

use crate::support::{Gateway, Message, Upstream};

/// Everything a caller is told with its first refusal.
fn is_told_why(refused: &Message) {
    assert_eq!(refused.head.first_line, "HTTP/1.1 429 Too Many Requests");
    assert_eq!(refused.get("content-type"), Some("application/problem+json"));
    assert_eq!(refused.get("cache-control"), Some("no-store"));
    assert_eq!(refused.get("retry-after"), Some("1"));
    assert_eq!(refused.get("ratelimit-policy"), Some("\"per_key\";q=20;w=2"));
    assert_eq!(refused.get("ratelimit"), Some("\"per_key\";r=0;t=1"));
    assert_eq!(refused.get("tidegate-decision"), None, "nobody asked for it");
    let problem = refused.json();
    assert_eq!(problem["type"], "https://iana.org/assignments/http-problem-types#quota-exceeded");
    assert_eq!((&problem["title"], &problem["status"]), (&json!("Quota exceeded"), &json!(429)));
    assert_eq!(problem["detail"], "10 requests per second, burst 20, for this API key");
    assert_eq!(problem["violated-policies"], json!(["per_key"]));
    let quota = &problem["quota"][0];
    assert_eq!(
        (&quota["rule"], &quota["limit"], &quota["window_seconds"]),
        (&json!("per_key"), &json!(20), &json!(2))
    );
    let retry = quota["retry_after"].as_f64().unwrap();
    assert!(0.0 < retry && retry <= 0.1, "{retry}");
    assert!(problem["instance"].as_str().unwrap().starts_with("urn:tidegate:decision:"));
}

fn refuses_the_twenty_first(gateway: &Gateway, upstream: &Upstream) {
    let mut client = gateway.connect();
    let key = [("x-api-key", "alice")];
    let mut refused = None;
    let mut served = 0;
    while refused.is_none() {
        let answer = client.get("/", &key);
        match answer.status() {
            200 => served += 1,
            _ => refused = Some(answer),
        }
        assert!(served < 100, "nothing is refused");
    }
    // A few more may pass while the burst is spent: ten come back each second.
    assert!((20..=40).contains(&served), "{served}");
    is_told_why(&refused.unwrap());
    assert_eq!(client.get("/", &[("x-api-key", "bob")]).status(), 200, "others have their own quota");
    assert_eq!(upstream.requests().len(), served + 1, "what is refused is not sent on");
}

#[test]
fn the_seven_line_file_refuses_the_twenty_first_request_of_a_key() {
    let upstream = Upstream::ok();
    let gateway = Gateway::start(&format!(
        "listen   = \"127.0.0.1:0\"\n\
         upstream = \"{}\"\n\
         \n\
         [rule.per_key]\n\
         key   = \"header:x-api-key\"\n\
         quota = \"10/s\"\n\
         burst = 20\n",
        upstream.url()
    ));
    refuses_the_twenty_first(&gateway, &upstream);
}

#[test]
fn flags_say_the_same_without_a_file() {
    let upstream = Upstream::ok();
    let rule = "per_key: 10/s burst 20 by header:x-api-key";
    let gateway =
        Gateway::start_by_flags(&["--listen", "127.0.0.1:0", "--upstream", &upstream.url(), "--rule", rule]);
    refuses_the_twenty_first(&gateway, &upstream);
}
