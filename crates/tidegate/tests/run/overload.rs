//! Overload as operators meet it: limits, signals, cheaper answers, and an admin API that answers meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::gateway::support::{Gateway, Latch, PATIENCE, Upstream, request};
use crate::operated::Operated;
use crate::published::assert_is;

/// One request in flight, and nobody waits for long.
fn narrow(upstream: &Upstream) -> Operated {
    Operated::of(Gateway::start(&format!(
        "listen = \"127.0.0.1:0\"\nserver.admin = \"127.0.0.1:0\"\n[upstream.orders]\nendpoints = [\"{}\"]\n\
         concurrency = {{ algorithm = \"fixed\", max = 1, queue = {{ timeout = \"20ms\" }} }}\n",
        upstream.url()
    )))
}

#[test]
fn an_upstream_without_room_is_named_wherever_refusals_are_told() {
    let latch = Latch::default();
    let upstream = Upstream::holding(&latch);
    let gateway = narrow(&upstream);
    let mut first = gateway.gateway.connect();
    first.send(request("GET", "/held", &[], ""));
    upstream.wait_for(1);
    let refused = gateway.gateway.get("/", &[]);
    assert_eq!(refused.status(), 503, "{refused:?}");

    let upstreams = gateway.get("/api/v1/upstreams");
    assert_is("Upstreams", &upstreams);
    let concurrency = &upstreams["upstreams"][0]["concurrency"];
    assert_eq!((&concurrency["algorithm"], &concurrency["limit"]), (&"fixed".into(), &1.into()));
    assert_eq!(concurrency["in_flight"], 1, "{concurrency:#}");
    let counted =
        "tidegate_refusals_total{rule=\"upstream:orders\",reason=\"queue\",criticality=\"critical\"}";
    assert_eq!(gateway.metric(counted), 1);
    assert_eq!(gateway.metric("tidegate_concurrency_limit{upstream=\"orders\"}"), 1);
    let decision = &gateway.get("/api/v1/decisions?refused=1")["decisions"][0];
    assert_is("Record", decision);
    assert_eq!(decision["rule"], "upstream:orders", "{decision:#}");
    let capacity = gateway.get("/api/v1/capacity");
    assert_is("Capacity", &capacity);
    let reason = capacity["reason"].as_str().unwrap();
    assert!(reason.starts_with("upstream orders has 1 of 1 places taken"), "{reason}");
    latch.open();
    assert_eq!(first.response().status(), 200);
}

/// What the admin API says would happen to `GET /`.
fn explained(gateway: &Operated) -> serde_json::Value {
    let answer = gateway.ask("POST", "/api/v1/explain", r#"{"path": "/", "client": "127.0.0.1"}"#);
    let explanation = answer.json();
    assert_is("Explanation", &explanation);
    explanation
}

#[test]
fn what_is_explained_is_what_a_busy_upstream_does() {
    let latch = Latch::default();
    let upstream = Upstream::holding(&latch);
    let gateway = narrow(&upstream);
    assert_eq!(explained(&gateway)["upstream"]["answer"], "take");
    let mut first = gateway.gateway.connect();
    first.send(request("GET", "/held", &[], ""));
    upstream.wait_for(1);
    let text = explained(&gateway)["text"].as_str().unwrap().to_owned();
    let waits =
        "GET / would have to wait for a place at upstream `orders`: 1 of 1 in flight and 0 waiting.\n";
    assert!(text.starts_with(waits), "{text}");

    // Nobody is served, so the edge rises until it refuses whoever comes.
    let began = Instant::now();
    while explained(&gateway)["decision"] == "admitted" {
        assert!(began.elapsed() < PATIENCE, "the edge stays open");
        assert_eq!(gateway.gateway.get("/", &[]).status(), 503);
    }
    let refused = explained(&gateway);
    assert_eq!(refused["refused_by"], "upstream:orders", "{refused:#}");
    assert_eq!(refused["upstream"]["reason"], "shed");
    let begins = "GET / would be refused by upstream `orders`: it sheds ";
    assert!(refused["text"].as_str().unwrap().starts_with(begins), "{refused:#}");
    assert_eq!(gateway.gateway.get("/", &[]).status(), 503);
    let decision = &gateway.get("/api/v1/decisions?refused=1")["decisions"][0];
    assert_eq!(decision["reason"], "shed", "{decision:#}");
    latch.open();
    assert_eq!(first.response().status(), 200);
}

#[test]
fn places_in_use_are_told_smoothed() {
    let latch = Latch::default();
    let upstream = Upstream::holding(&latch);
    let gateway = narrow(&upstream);
    let reading = |signals: &serde_json::Value| {
        let known = signals["signals"].as_array().unwrap();
        known.iter().find(|signal| signal["signal"] == "in_flight").unwrap()["value"].as_f64().unwrap()
    };
    let mut first = gateway.gateway.connect();
    first.send(request("GET", "/held", &[], ""));
    upstream.wait_for(1);
    // The one place is taken at once; the signal is on its way there.
    gateway.until("/api/v1/signals", |signals| {
        let reading = reading(&signals.json());
        reading > 0.05 && reading < 0.95
    });
    gateway.until("/api/v1/signals", |signals| reading(&signals.json()) > 0.95);
    latch.open();
    assert_eq!(first.response().status(), 200);
}

/// Everything is sheddable, and is shed within a second or two when the signal says so.
const SHED: &str = "[criticality]\ndefault = \"sheddable\"\n[signal.db_load]\nfrom = \"api\"\n\
                    [rule.worker_usage]\nkind = \"shed\"\ntarget = { db_load = 0.5 }\norder = [\"sheddable\"]\n\
                    ramp = \"1s\"\n";

#[test]
fn a_signal_that_is_told_sheds_and_readiness_stays() {
    let upstream = Upstream::ok();
    let gateway = Operated::before(&upstream, SHED);
    let tell = |value: &str| gateway.ask("PUT", "/api/v1/signals/db_load", value);
    assert_eq!(tell(r#"{"value": 0.2}"#).status(), 200);
    assert_eq!(gateway.gateway.get("/", &[]).status(), 200);
    let signals = gateway.get("/api/v1/signals");
    assert_is("Signals", &signals);
    let known = signals["signals"].as_array().unwrap();
    let own = known.iter().find(|signal| signal["signal"] == "db_load").unwrap();
    assert_eq!((&own["from"], &own["value"]), (&"api".into(), &0.2.into()));
    let memory = known.iter().find(|signal| signal["signal"] == "memory").unwrap();
    assert!(memory["value"].is_number(), "the process tells its own: {signals:#}");

    let everything = |status: &serde_json::Value| status["shedding"]["shed"]["sheddable"] == 1.0;
    let is_shed = gateway.frames().any(|frame| {
        assert_eq!(tell(r#"{"value": 3}"#).status(), 200);
        assert_is("Status", &frame);
        everything(&frame)
    });
    assert!(is_shed);
    let status = gateway.get("/api/v1/status");
    let verdict = status["verdict"].as_str().unwrap();
    assert!(
        verdict.starts_with("Shedding: all of sheddable by rule worker_usage, since db_load is at "),
        "{verdict}"
    );
    let refused = gateway.gateway.get("/", &[]);
    assert_eq!(refused.status(), 503, "{refused:?}");
    assert_eq!(gateway.ask("GET", "/readyz", "").status(), 200, "shedding is no reason to be unready");
    assert_eq!(gateway.metric("tidegate_shed_ratio{criticality=\"sheddable\"}"), 1);
    let counted = "tidegate_refusals_total{rule=\"worker_usage\",reason=\"shed\",criticality=\"sheddable\"}";
    assert_eq!(gateway.metric(counted), 1);
    let own = gateway.ask("PUT", "/api/v1/signals/cpu", r#"{"value": 1}"#);
    assert_eq!(own.status(), 409, "{own:?}");
}

#[test]
fn an_operator_gives_everybody_the_cheaper_answer_for_a_time() {
    let upstream = Upstream::ok();
    let gateway = Operated::before(
        &upstream,
        "[[route]]\nname = \"catalogue\"\nmatch = { path = \"/**\" }\n\
         degrade = { when = \"switched\", status = 200, body = \"[]\" }\n",
    );
    let text = || gateway.gateway.get("/", &[]).text().to_owned();
    let before = text();
    let switch = |body: &str| gateway.ask("PATCH", "/api/v1/routes/catalogue", body);
    let on = switch(r#"{"degrade": "on", "ttl": "1h"}"#);
    assert_eq!(on.status(), 200, "{on:?}");
    assert_is("Route", &on.json());
    assert_eq!(on.json()["degrade"]["given_to"], "all");
    assert_eq!(text(), "[]");
    assert!(
        gateway.get("/api/v1/status")["verdict"].as_str().unwrap().starts_with("Degraded: route catalogue")
    );
    assert_eq!(switch(r#"{"degrade": "auto"}"#).json()["degrade"]["given_to"], "nobody");
    assert_eq!(text(), before);
    // For a moment only.
    switch(r#"{"degrade": "on", "ttl": "1ms"}"#);
    gateway.until("/api/v1/routes", |routes| routes.json()["routes"][0]["degrade"]["given_to"] == "nobody");
    assert_eq!(text(), before);
}

/// What an answer of the admin API may take during a flood.
const PROMPT: Duration = Duration::from_millis(100);

#[test]
fn operators_are_answered_while_a_flood_is_refused() {
    let upstream = Upstream::ok();
    let rule = "[rule.everybody]\nalgorithm = \"fixed_window\"\nquota = \"1/day\"\n";
    let gateway = Operated::before(&upstream, rule);
    let (is_over, refused) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let flood = (0..8).map(|_| {
        let (mut client, is_over, refused) =
            (gateway.gateway.connect(), Arc::clone(&is_over), Arc::clone(&refused));
        std::thread::spawn(move || {
            while !is_over.load(Ordering::Relaxed) {
                let is_refused = client.get("/", &[]).status() == 429;
                refused.fetch_add(is_refused.into(), Ordering::Relaxed);
            }
        })
    });
    let flood: Vec<_> = flood.collect();
    let (mut took, began): (Vec<(Duration, &str)>, _) = (Vec::new(), Instant::now());
    while took.len() < 100 || refused.load(Ordering::Relaxed) < 2_000 {
        assert!(began.elapsed() < PATIENCE, "{refused:?} were refused");
        for path in ["/livez", "/readyz", "/api/v1/status", "/api/v1/upstreams", "/metrics"] {
            let begun = Instant::now();
            assert_eq!(gateway.ask("GET", path, "").status(), 200, "{path}");
            took.push((begun.elapsed(), path));
        }
    }
    is_over.store(true, Ordering::Relaxed);
    for caller in flood {
        caller.join().unwrap();
    }
    took.sort();
    let (median, slowest) = (took[took.len() / 2].0, took[took.len() - 1]);
    eprintln!(
        "{refused:?} refused meanwhile; half of the answers within {median:?}, the slowest {slowest:?}"
    );
    // The machine has other work during tests, so one in ten may be late.
    let tenth = took[took.len() * 9 / 10];
    assert!(tenth.0 < PROMPT, "{tenth:?}, the slowest {slowest:?}");
}
