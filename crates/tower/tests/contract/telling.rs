//! What callers are told beside the answer, and when.

use tidegate_core::{Reason, Refusal, Retry};
use tidegate_tower::Respond;
use tidegate_tower::respond::{LegacyReset, RatelimitFields, Speech};
use tower::Layer;

use crate::policies::PER_KEY;
use crate::support::{Inner, answer, field, layer, request};

#[tokio::test(start_paused = true)]
async fn fields_of_the_service_stay_above_ours() {
    let mut inner = Inner::default();
    inner.head.insert("ratelimit", "\"origin\";r=3;t=9".parse().unwrap());
    inner.head.insert("ratelimit-policy", "\"origin\";q=9;w=9".parse().unwrap());
    let service = layer([PER_KEY]).layer(inner);
    let response = answer(&service, request("alice")).await;
    assert_eq!(field(response.headers(), "ratelimit"), r#""origin";r=3;t=9 | "per_key";r=19;t=1"#);
    assert_eq!(field(response.headers(), "ratelimit-policy"), r#""origin";q=9;w=9 | "per_key";q=20;w=2"#);
}

#[tokio::test(start_paused = true)]
async fn fields_are_sent_as_chosen() {
    for (fields, on_admitted, on_refused) in [
        (RatelimitFields::Always, true, true),
        (RatelimitFields::Refused, false, true),
        (RatelimitFields::Never, false, false),
    ] {
        let respond = Respond::default().ratelimit_fields(fields);
        let service = layer([PER_KEY]).respond(respond).layer(Inner::default());
        let admitted = answer(&service, request("alice")).await;
        for _ in 0..19 {
            answer(&service, request("alice")).await;
        }
        let refused = answer(&service, request("alice")).await;
        for name in ["ratelimit", "ratelimit-policy"] {
            assert_eq!(admitted.headers().contains_key(name), on_admitted, "{fields:?}");
            assert_eq!(refused.headers().contains_key(name), on_refused, "{fields:?}");
        }
        assert_eq!((refused.status().as_u16(), field(refused.headers(), "retry-after")), (429, "1".into()));
    }
}

#[tokio::test(start_paused = true)]
async fn older_fields_are_sent_when_asked_for() {
    for (reset, seconds) in [(LegacyReset::Seconds, "1"), (LegacyReset::UnixTime, "101")] {
        let respond =
            Respond::default().ratelimit_fields(RatelimitFields::Never).legacy_ratelimit_fields(reset);
        let service = layer([PER_KEY]).respond(respond).layer(Inner::default());
        tokio::time::advance(std::time::Duration::from_secs(100)).await;
        let response = answer(&service, request("alice")).await;
        let told = ["limit", "remaining", "reset"]
            .map(|name| field(response.headers(), &format!("x-ratelimit-{name}")));
        assert_eq!(told, ["20", "19", seconds]);
    }
}

#[tokio::test(start_paused = true)]
async fn older_fields_are_of_the_rule_that_refused() {
    let heavy = "[rule.heavy]\nkey = \"global\"\nquota = \"8/s\"\ncost = { estimate = 5 }\n";
    let light = "[rule.light]\nkey = \"global\"\nquota = \"2/s\"\n";
    let respond = Respond::default().legacy_ratelimit_fields(LegacyReset::Seconds);
    let service = layer([heavy, light]).respond(respond).layer(Inner::default());
    // The light rule has less left, but the heavy one is in the way.
    for (status, limit, remaining) in [(200, "2", "1"), (429, "8", "3")] {
        let response = answer(&service, request("alice")).await;
        assert_eq!(response.status(), status);
        assert_eq!(field(response.headers(), "x-ratelimit-limit"), limit);
        assert_eq!(field(response.headers(), "x-ratelimit-remaining"), remaining);
    }
}

#[tokio::test(start_paused = true)]
async fn units_are_rounded_down_and_seconds_up() {
    let odd = "[rule.odd]\nkey = \"global\"\nquota = \"3/s\"\nburst = 4.5\n";
    let short = "[rule.short]\nkey = \"global\"\nquota = \"10/s\"\nburst = 1\n";
    let service = layer([odd, short]).layer(Inner::default());
    let response = answer(&service, request("alice")).await;
    assert_eq!(field(response.headers(), "ratelimit-policy"), r#""odd";q=4;w=2, "short";q=1;w=1"#);
    assert_eq!(field(response.headers(), "ratelimit"), r#""odd";r=3;t=1, "short";r=0;t=1"#);
}

#[tokio::test(start_paused = true)]
async fn decisions_are_named_when_asked_for() {
    let silent = layer([PER_KEY]).layer(Inner::default());
    assert!(!answer(&silent, request("alice")).await.headers().contains_key("tidegate-decision"));
    let service = layer([PER_KEY]).respond(Respond::default().debug_headers()).layer(Inner::default());
    let admitted = answer(&service, request("alice")).await;
    assert!(field(admitted.headers(), "tidegate-decision").starts_with("admitted; id=\""));
    for _ in 0..19 {
        answer(&service, request("alice")).await;
    }
    let refused = answer(&service, request("alice")).await;
    let decision = field(refused.headers(), "tidegate-decision");
    let id = decision.strip_prefix("refused; rule=\"per_key\"; id=\"").unwrap().strip_suffix('"').unwrap();
    let body = String::from_utf8(refused.body().to_vec()).unwrap();
    assert!(body.contains(&format!("urn:tidegate:decision:{id}")));
}

#[test]
fn refusals_without_a_rule_name_no_numbers() {
    let refusal = |reason, retry| Respond::default().without_rule(Refusal { reason, retry }, Speech::Http);
    let soon = Retry::After(std::time::Duration::from_millis(1_200));

    let shed = refusal(Reason::Shed, soon);
    assert_eq!((shed.status().as_u16(), field(shed.headers(), "retry-after")), (503, "2".into()));
    assert_eq!(field(shed.headers(), "x-envoy-overloaded"), "true");
    assert_eq!(field(shed.headers(), "proxy-status"), "tidegate;error=destination_unavailable");
    let problem: serde_json::Value = serde_json::from_slice(shed.body()).unwrap();
    assert_eq!(
        problem,
        serde_json::json!({
            "type": "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity",
            "title": "Temporary reduced capacity",
            "status": 503,
            "detail": "too busy for this request at the moment",
        })
    );

    let throttled = refusal(Reason::Throttled, soon);
    assert_eq!(field(throttled.headers(), "tidegate-refused-by"), "throttle");
    assert!(!throttled.headers().contains_key("retry-after"));

    let late = refusal(Reason::DeadlinePassed, Retry::Never);
    assert_eq!((late.status().as_u16(), field(late.headers(), "tidegate-retry")), (504, "never".into()));
}
