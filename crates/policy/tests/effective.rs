//! What `--effective` prints is the same policy, with nothing left to guess.

#![expect(clippy::disallowed_methods, reason = "what is expected is in a file")]

use std::sync::Arc;

use tidegate_policy::policy::{Line, Policy};
use tidegate_policy::{Source, effective, read};

/// The policy without its lines, which are those of another text.
fn without_lines(mut policy: Policy) -> Policy {
    for rule in &mut policy.rules {
        Arc::make_mut(rule).line = Line(0);
    }
    for route in &mut policy.routes {
        route.line = Line(0);
    }
    policy
}

fn same_when_read_again(name: &str, text: &str, callers: Option<&str>) -> String {
    let source = Source::named(name, text.as_bytes());
    let callers = callers.map(|text| Source::named("callers.toml", text.as_bytes()));
    let printed = effective(source, callers).expect("the example has no errors");
    let (before, _) = read(source, callers).expect("the example has no errors");
    let again = read(Source::named("effective.toml", printed.as_bytes()), callers);
    let (after, _) = again.expect("what is printed can be read again");
    assert_eq!(without_lines(after), without_lines(before), "{printed}");
    printed
}

#[test]
fn the_smallest_policy_has_all_its_defaults_with_reasons() {
    let printed = same_when_read_again("tidegate.toml", include_str!("mistyped/right.toml"), None);
    let expected = include_str!("effective/smallest.toml");
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/effective/smallest.toml"), &printed)
            .unwrap();
    }
    assert_eq!(printed, expected);
}

#[test]
fn a_large_policy_is_the_same_when_read_again() {
    let callers = include_str!("examples/callers.toml");
    same_when_read_again("supported.toml", include_str!("examples/supported.toml"), Some(callers));
    same_when_read_again("supported.yaml", include_str!("examples/supported.yaml"), Some(callers));
}
