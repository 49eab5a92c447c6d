//! What of a policy the layer carries out, and what it refuses.

use tidegate_policy::{Gate, Purpose, Reading, Source};
use tidegate_tower::{GateLayer, NoLayer};
use tower::Layer;

use crate::policies::{PER_KEY, policy};
use crate::support::{Inner, TokioClock, answer, field, request};

/// Everything that only a gateway does, each part with the keys that lead to it.
const PARTS: [(&str, &[&str]); 13] = [
    ("listen = \"0.0.0.0:8080\"\n", &["listen"]),
    ("[[listener]]\nbind = \"0.0.0.0:8080\"\n", &["listen"]),
    ("upstream = \"http://127.0.0.1:3000\"\n", &["upstream"]),
    ("server.admin = \"127.0.0.1:9900\"\n", &["server.admin"]),
    ("server.workers = 3\n", &["server.workers"]),
    ("server.drain = \"3s\"\n", &["server.drain"]),
    ("server.drain_delay = \"3s\"\n", &["server.drain_delay"]),
    ("server.trusted_proxies = [\"10.0.0.0/8\"]\n", &["server.trusted_proxies"]),
    ("telemetry.access_log = { to = \"stderr\" }\n", &["telemetry.access_log"]),
    ("signal.db_load = { from = \"api\" }\n", &["signal"]),
    ("rule.busy = { kind = \"shed\", target = { cpu = \"85%\" } }\n", &["rule.busy"]),
    ("[[route]]\nupgrade = [\"websocket\"]\n", &["route[0].upgrade"]),
    ("[[route]]\nname = \"a\"\ndegrade = { status = 200, body = \"[]\" }\n", &["route[0].degrade"]),
];

fn paths(refused: Result<GateLayer, NoLayer>) -> Vec<String> {
    let Err(NoLayer::Beyond(parts)) = refused else { return Vec::new() };
    parts.into_iter().map(|part| part.path).collect()
}

#[test]
fn what_the_layer_does_not_do_is_refused_by_name_and_so_by_the_reader_for_libraries() {
    for (text, expected) in PARTS {
        let found = paths(GateLayer::for_policy(policy([text]), TokioClock::new()));
        assert_eq!(found, expected, "{text}");
        let source = Source::named("policy.toml", text.as_bytes());
        let reading = Reading { policy: source, callers: None, purpose: Purpose::Library };
        let problems = reading.read().unwrap_err();
        let errors = problems.iter().filter(|problem| problem.code.to_string() == "TG0403");
        let errors: Vec<_> = errors.map(|problem| (problem.path.as_str(), problem.span.is_some())).collect();
        assert_eq!(errors, expected.iter().map(|path| (*path, true)).collect::<Vec<_>>(), "{text}");
    }
    let all = "listen = \"0.0.0.0:8080\"\nserver.workers = 3\n";
    let refused = GateLayer::for_policy(policy([all]), TokioClock::new()).unwrap_err();
    assert_eq!(refused.to_string(), "the library does not carry out `listen`, `server.workers`");
}

#[tokio::test(start_paused = true)]
async fn answers_are_as_the_policy_says() {
    let server = "server = { ratelimit_fields = \"never\", legacy_ratelimit_fields = \"seconds\", debug_headers = true }\n";
    let layer = GateLayer::for_policy(policy([server, PER_KEY]), TokioClock::new()).unwrap();
    let answered = answer(&layer.layer(Inner::default()), request("alice")).await;
    assert!(!answered.headers().contains_key("ratelimit"), "{answered:?}");
    assert_eq!(field(answered.headers(), "x-ratelimit-remaining"), "19");
    assert!(answered.headers().contains_key("tidegate-decision"), "{answered:?}");
}

#[test]
fn whoever_measures_makes_the_layer_of_a_gate() {
    let busy = "rule.busy = { kind = \"shed\", target = { cpu = \"85%\" } }\n";
    let gate = Gate::new(policy([busy]), 1, tidegate_policy::Now::default()).unwrap();
    assert_eq!(GateLayer::new(std::sync::Arc::new(gate)).gate().policy().rules.len(), 1);
}
