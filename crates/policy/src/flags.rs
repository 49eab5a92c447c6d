//! A policy from the command line: the same language in fewer words.
//!
//! `per_key: 10/s burst 20 by header:x-api-key` is a name, a quota, and pairs of a word and a value. It is
//! turned into the text of a policy and read like any other, so that both say the same about what is wrong.

use std::fmt::Write;

use crate::effective::{key, quoted};

/// Words of the short form, the keys they stand for, and whether the value stands in quotes.
const WORDS: &[(&str, &str, bool)] = &[
    ("burst", "burst", false),
    ("by", "key", true),
    ("limit", "limit", false),
    ("algorithm", "algorithm", true),
    ("mode", "mode", true),
];

/// The text of a policy in TOML, from what `run` is told without a file.
///
/// ```
/// let text = tidegate_policy::from_flags(
///     Some("0.0.0.0:8080"),
///     Some("http://127.0.0.1:3000"),
///     &["per_key: 10/s burst 20 by header:x-api-key"],
/// )?;
/// assert!(text.ends_with("[rule.per_key]\nquota = \"10/s\"\nburst = 20\nkey = \"header:x-api-key\"\n"));
/// # Ok::<(), String>(())
/// ```
///
/// # Errors
/// With what to write instead, when a rule has no name or a word without a value.
pub fn from_flags(listen: Option<&str>, upstream: Option<&str>, rules: &[&str]) -> Result<String, String> {
    let mut text = String::new();
    for (key, value) in [("listen", listen), ("upstream", upstream)] {
        if let Some(value) = value {
            // Writing to a text cannot fail.
            let _ = writeln!(text, "{key} = {}", quoted(value));
        }
    }
    for rule in rules {
        text.push_str(&table(rule)?);
    }
    Ok(text)
}

fn table(rule: &str) -> Result<String, String> {
    let refused = |why: &str| {
        Err(format!("rule `{rule}` {why}: write it like `per_key: 10/s burst 20 by header:x-api-key`"))
    };
    let Some((name, rest)) = rule.split_once(':') else { return refused("has no name") };
    let mut text = format!("\n[rule.{}]\n", key(name.trim()));
    let mut parts = rest.split_whitespace().peekable();
    if let Some(quota) = parts.next_if(|first| !WORDS.iter().any(|(word, ..)| word == first)) {
        let _ = writeln!(text, "quota = {}", quoted(quota));
    }
    while let Some(word) = parts.next() {
        let Some((_, written, is_text)) = WORDS.iter().find(|(known, ..)| *known == word) else {
            return refused(&format!("has the unknown word `{word}`"));
        };
        let Some(value) = parts.next() else { return refused(&format!("has nothing after `{word}`")) };
        let sources: Vec<String> = value.split(',').map(quoted).collect();
        let value = match (is_text, sources.as_slice()) {
            (false, _) if value.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') => value.to_owned(),
            (true, [_, _, ..]) => format!("[{}]", sources.join(", ")),
            _ => quoted(value),
        };
        let _ = writeln!(text, "{written} = {value}");
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{KeySource, Limit};
    use crate::{Source, read};

    #[test]
    fn rules_on_the_command_line_are_rules() {
        let text = from_flags(None, None, &["a: 10/s by caller,path", "b: limit 20 mode shadow"]).unwrap();
        let (policy, _) = read(Source::named("command line", text.as_bytes()), None).unwrap();
        assert_eq!(policy.rules[0].key.0, [KeySource::Caller, KeySource::Path]);
        assert_eq!(policy.rules[1].limit, Limit::Concurrency(20));
    }

    #[test]
    fn what_is_no_rule_says_what_to_write() {
        for (rule, why) in [
            ("10 per second", "rule `10 per second` has no name: "),
            ("a: 10/s bust 20", "rule `a: 10/s bust 20` has the unknown word `bust`: "),
            ("a: 10/s burst", "rule `a: 10/s burst` has nothing after `burst`: "),
        ] {
            let problem = from_flags(None, None, &[rule]).unwrap_err();
            assert!(problem.starts_with(why), "{problem}");
        }
    }
}
