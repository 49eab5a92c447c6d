//! Whatever a file holds, it is a policy or it has problems; it is never the end of the process.

use proptest::prelude::*;
use tidegate_policy::problem::{json, render, summary};
use tidegate_policy::{Format, Severity, Source, callers_file, effective, read};

const FORMATS: [Format; 2] = [Format::Toml, Format::Yaml];

fn is_answered(text: &[u8]) {
    for format in FORMATS {
        let source = Source { name: "tidegate", text, format };
        for callers in [None, Some(source)] {
            let problems = match read(source, callers) {
                Ok((_, warnings)) => {
                    assert!(effective(source, callers).is_ok());
                    warnings
                }
                Err(problems) => {
                    assert!(problems.iter().any(|problem| problem.severity() == Severity::Error));
                    problems
                }
            };
            let shown = render(source, callers, &problems);
            assert_eq!(shown.is_empty(), problems.is_empty());
            assert_eq!(summary(&problems).is_empty(), problems.is_empty());
            assert_eq!(json(source, callers, &problems).as_array().map(Vec::len), Some(problems.len()));
            for span in problems.iter().filter_map(|problem| problem.span) {
                assert!(span.start <= span.end && span.start <= text.len(), "{span:?}");
            }
        }
        // Only that it comes back matters here.
        drop(callers_file(source));
    }
}

const VALID: [&str; 3] = [
    include_str!("examples/supported.toml"),
    include_str!("examples/supported.yaml"),
    include_str!("examples/complete.toml"),
];

/// A piece of a valid file is left out, doubled, or replaced.
fn mutated() -> impl Strategy<Value = Vec<u8>> {
    let edit =
        (any::<prop::sample::Index>(), 0_usize..12, prop::collection::vec(any::<u8>(), 0..6), any::<bool>());
    (prop::sample::select(&VALID[..]), prop::collection::vec(edit, 1..4)).prop_map(|(text, edits)| {
        let mut bytes = text.as_bytes().to_vec();
        for (at, length, new, is_doubled) in edits {
            let start = at.index(bytes.len());
            let end = (start + length).min(bytes.len());
            let piece = if is_doubled { bytes[start..end].repeat(2) } else { new };
            bytes.splice(start..end, piece);
        }
        bytes
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn any_bytes_are_a_policy_or_problems(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        is_answered(&bytes);
    }

    #[test]
    fn any_punctuation_is_a_policy_or_problems(text in r#"[\[\]{}=:.,"'#&*!|>%@`~?\-\\\n\t\r 0-9a-cé🦀]{0,120}"#) {
        is_answered(text.as_bytes());
    }

    #[test]
    fn mutated_policies_are_policies_or_have_problems(bytes in mutated()) {
        is_answered(&bytes);
    }
}

#[test]
fn what_is_nested_without_end_is_refused() {
    for piece in ["[", "{", "a.", "- ", "a: ", "{a: ", "[[", "{a=", "? ", "&a ", "'", "\"", "|\n ", "!!str "]
    {
        is_answered(piece.repeat(20_000).as_bytes());
        is_answered(format!("a = {}", piece.repeat(20_000)).as_bytes());
    }
    let lines: String = (1..3_000).map(|depth| format!("{}a:\n", " ".repeat(depth))).collect();
    is_answered(lines.as_bytes());
}

#[test]
fn what_is_too_large_is_refused() {
    let text = vec![b'#'; 17 * 1024 * 1024];
    let problems = read(Source::named("tidegate.toml", &text), None).unwrap_err();
    assert_eq!(problems[0].message, "the file has 17825792 bytes, more than the 16777216 that are read");
}
