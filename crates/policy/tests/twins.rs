//! One model, two spellings: the same document means the same in TOML, in YAML and in JSON.

use std::collections::BTreeSet;
use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Map, Value};
use tidegate_policy::policy::{Line, Policy};
use tidegate_policy::{Format, Source, read};

/// A policy without its lines, or what is wrong with it.
fn meaning(name: &str, text: &str, callers: Option<&str>) -> Result<Policy, BTreeSet<(String, String)>> {
    let callers = callers.map(|text| Source::named("callers.toml", text.as_bytes()));
    let read = read(Source { name, text: text.as_bytes(), format: Format::of(name) }, callers);
    let problems = |problem: tidegate_policy::Problem| (problem.path, problem.message);
    let (mut policy, _) = read.map_err(|all| all.into_iter().map(problems).collect::<BTreeSet<_>>())?;
    for rule in &mut policy.rules {
        Arc::make_mut(rule).line = Line(0);
    }
    for route in &mut policy.routes {
        route.line = Line(0);
    }
    Ok(policy)
}

#[test]
fn the_example_is_the_same_in_both_spellings() {
    let callers = Some(include_str!("examples/callers.toml"));
    let toml = meaning("supported.toml", include_str!("examples/supported.toml"), callers);
    let yaml = meaning("supported.yaml", include_str!("examples/supported.yaml"), callers);
    assert!(toml.is_ok());
    assert_eq!(toml, yaml);
}

/// A value on one line of TOML.
fn toml(value: &Value) -> String {
    match value {
        Value::Array(items) => format!("[{}]", items.iter().map(toml).collect::<Vec<_>>().join(", ")),
        Value::Object(fields) => {
            let pairs =
                fields.iter().map(|(key, value)| format!("{} = {}", Value::from(key.as_str()), toml(value)));
            format!("{{ {} }}", pairs.collect::<Vec<_>>().join(", "))
        }
        // Texts are escaped alike; numbers and booleans are the same.
        single => single.to_string(),
    }
}

/// A document in TOML, one line a key.
fn toml_document(document: &Map<String, Value>) -> String {
    document.iter().map(|(key, value)| format!("{} = {}\n", Value::from(key.as_str()), toml(value))).collect()
}

/// A document in YAML, by indentation where that is possible.
fn yaml(value: &Value, indent: usize) -> String {
    let start = " ".repeat(indent);
    match value {
        Value::Object(fields) if !fields.is_empty() => fields
            .iter()
            .map(|(key, value)| match value {
                Value::Object(inner) if !inner.is_empty() => {
                    format!("{start}{}:\n{}", Value::from(key.as_str()), yaml(value, indent + 2))
                }
                other => format!("{start}{}: {other}\n", Value::from(key.as_str())),
            })
            .collect(),
        other => format!("{start}{other}\n"),
    }
}

const WORDS: &[&str] = &[
    "version",
    "listen",
    "upstream",
    "server",
    "admin",
    "listener",
    "name",
    "bind",
    "caller",
    "from",
    "table",
    "max_keys",
    "criticality",
    "default",
    "assign",
    "match",
    "as",
    "path",
    "method",
    "host",
    "header",
    "rule",
    "kind",
    "key",
    "quota",
    "burst",
    "algorithm",
    "buckets",
    "delay",
    "nodelay",
    "limit",
    "plans",
    "shadow",
    "mode",
    "cost",
    "estimate",
    "settle",
    "route",
    "rules",
    "exempt",
    "endpoints",
    "store",
    "telemetry",
    "brust",
    "x y",
    "gold",
    "per_key",
    "reserve",
    "capacity",
    "target",
    "order",
    "ramp",
    "cpu",
    "queue_delay",
    "signal",
    "degrade",
    "when",
    "status",
    "concurrency",
    "min",
    "max",
    "1",
];

const TEXTS: &[&str] = &[
    "10/s",
    "10",
    "5000/day",
    "250ms",
    "20%",
    "64KiB",
    "0.0.0.0:8080",
    "http://127.0.0.1:3000",
    "header:x-api-key",
    "caller",
    "global",
    "token_bucket",
    "leaky_bucket",
    "fixed_window",
    "smooth",
    "warm_up",
    "enforce",
    "off",
    "critical",
    "/v1/**",
    "/v1*",
    "POST",
    "post",
    "orders",
    "upstream:orders",
    "reserve",
    "shed",
    "sheddable",
    "shedding",
    "api",
    "per_key",
    "",
    "on",
    "no",
    "true",
    "null",
    "~",
    "é ü 🦀",
    "a: b # c",
    "\"'\\",
];

fn any_value() -> impl Strategy<Value = Value> {
    let single = prop_oneof![
        4 => prop::sample::select(TEXTS).prop_map(Value::from),
        2 => (-5_i64..500).prop_map(Value::from),
        1 => prop::sample::select(&[0.5_f64, 2.5, 0.01][..]).prop_map(Value::from),
        1 => any::<bool>().prop_map(Value::from),
    ];
    single.prop_recursive(5, 40, 5, |inner| {
        let key = prop::sample::select(WORDS).prop_map(str::to_owned);
        prop_oneof![
            1 => prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            3 => prop::collection::btree_map(key, inner, 0..5)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

/// A rule that is mostly right.
fn any_rule() -> impl Strategy<Value = Value> {
    let key = prop::sample::select(&["caller", "client-ip", "global", "header:x-api-key"][..]);
    let algorithm = prop::sample::select(
        &[
            "token_bucket",
            "leaky_bucket",
            "fixed_window",
            "sliding_window",
            "sliding_log",
            "smooth",
            "warm_up",
        ][..],
    );
    let quota = (1_u32..1000, prop::sample::select(&["s", "30s", "min", "day", "month"][..]));
    let mode = prop::sample::select(&["enforce", "shadow", "disabled"][..]);
    let burst = prop::option::of(0_u32..2000);
    (key, algorithm, quota, mode, burst).prop_map(|(key, algorithm, (amount, window), mode, burst)| {
        let mut rule = serde_json::json!({
            "key": key, "algorithm": algorithm, "quota": format!("{amount}/{window}"), "mode": mode,
        });
        if let Some(burst) = burst {
            rule["burst"] = Value::from(burst);
        }
        rule
    })
}

fn any_document() -> impl Strategy<Value = Map<String, Value>> {
    let key = prop::sample::select(WORDS).prop_map(str::to_owned);
    let wild = prop::collection::btree_map(key, any_value(), 0..6);
    let names = prop::sample::select(&["per_key", "all", "each"][..]).prop_map(str::to_owned);
    let rules = prop::collection::btree_map(names, any_rule(), 1..4);
    prop_oneof![
        wild.prop_map(|fields| fields.into_iter().collect()),
        rules.prop_map(|rules| Map::from_iter([(
            "rule".to_owned(),
            Value::Object(rules.into_iter().collect())
        )])),
    ]
}

proptest! {
    #[test]
    fn a_document_means_the_same_in_every_spelling(document in any_document()) {
        let from_toml = meaning("policy.toml", &toml_document(&document), None);
        let document = Value::Object(document);
        prop_assert_eq!(&from_toml, &meaning("policy.json", &document.to_string(), None));
        prop_assert_eq!(&from_toml, &meaning("policy.yaml", &yaml(&document, 0), None));
    }
}
