//! The smallest useful policy, mistyped in a dozen plausible ways: each message must lead to the right file.

#![expect(clippy::disallowed_methods, reason = "what is expected is in files")]

use std::fs;
use std::path::Path;
use std::sync::Arc;

use tidegate_policy::policy::{Endpoint, Listener, Upstream};
use tidegate_policy::problem::{render, summary};
use tidegate_policy::{Source, read};

const RIGHT: &str = include_str!("mistyped/right.toml");

/// What was mistyped, and what came of it. The expected text is `tests/mistyped/<name>.txt`.
const SLIPS: &[(&str, &str, &str)] = &[
    ("key_of_burst", "burst = 20", "brust = 20"),
    ("key_of_listen", "listen   =", "lisen    ="),
    ("table_of_rules", "[rule.per_key]", "[rules.per_key]"),
    ("rule_without_name", "[rule.per_key]", "[rule]"),
    ("quota_without_unit", "\"10/s\"", "10"),
    ("quota_without_quotes", "\"10/s\"", "10/s"),
    ("quota_in_words", "\"10/s\"", "\"10 per second\""),
    ("burst_in_quotes", "burst = 20", "burst = \"20\""),
    ("key_without_header", "\"header:x-api-key\"", "\"x-api-key\""),
    ("upstream_without_scheme", "\"http://127.0.0.1:3000\"", "\"127.0.0.1:3000\""),
    ("listen_without_address", "\"0.0.0.0:8080\"", "\":8080\""),
    ("upstream_in_two_ways", "[rule.per_key]", "[upstream.default.concurrency]\nmax = 100\n\n[rule.per_key]"),
    ("limit_for_quota", "quota =", "limit ="),
];

#[test]
fn mistyped_files_lead_to_the_right_one() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mistyped");
    for (name, right, wrong) in SLIPS {
        assert_eq!(RIGHT.matches(right).count(), 1, "{right}");
        let text = RIGHT.replace(right, wrong);
        let source = Source::named("tidegate.toml", text.as_bytes());
        let problems = read(source, None).unwrap_err();
        let shown = format!("{}{}\n", render(source, None, &problems), summary(&problems));
        let expected = directory.join(name).with_extension("txt");
        if std::env::var_os("BLESS").is_some() {
            fs::write(&expected, &shown).unwrap();
        }
        assert_eq!(
            shown,
            fs::read_to_string(&expected).unwrap_or_default(),
            "{name}: BLESS=1 writes it anew"
        );
    }
}

#[test]
fn the_right_file_is_a_policy_with_one_warning() {
    let source = Source::named("tidegate.toml", RIGHT.as_bytes());
    let (policy, warnings) = read(source, None).unwrap();
    assert_eq!(policy.listeners, [Listener::new("default", "0.0.0.0:8080".parse().unwrap())]);
    let endpoint = Endpoint::new(false, "127.0.0.1", Some(3000));
    assert_eq!(policy.upstreams, [Arc::new(Upstream::new("default", vec![endpoint]))]);
    assert_eq!(policy.routes[0].name, "default");
    assert_eq!(policy.routes[0].rules, [0]);
    let expected = "\
warning: requests without `x-api-key` share one counter of rule `per_key`      TG0312
 --> tidegate.toml:5:9   to count them by address, write `key = \"caller\"` here and `from = [\"header:x-api-key\", \"client-ip\"]` in `caller`
";
    assert_eq!(render(source, None, &warnings), expected);
}
