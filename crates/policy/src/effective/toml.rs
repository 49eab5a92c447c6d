//! Writing values as TOML.

use std::fmt::Write;

use crate::text::{Node, Value};

/// A value on one line.
pub(super) fn inline(node: &Node) -> String {
    match &node.value {
        Value::Text(text) => quoted(text),
        Value::Number(number) => number.clone(),
        Value::Boolean(value) => value.to_string(),
        Value::List(items) => format!("[{}]", items.iter().map(inline).collect::<Vec<_>>().join(", ")),
        Value::Table(entries) => {
            let pairs = entries.iter().map(|entry| format!("{} = {}", key(&entry.key), inline(&entry.value)));
            format!("{{ {} }}", pairs.collect::<Vec<_>>().join(", "))
        }
        // Nothing of this sort is in a policy that was read without errors.
        Value::Other(_) => "\"\"".to_owned(),
    }
}

/// The path in a header: `rule.per_key`.
pub(super) fn header(path: &[&str]) -> String {
    path.iter().map(|part| key(part)).collect::<Vec<_>>().join(".")
}

pub(crate) fn key(name: &str) -> String {
    let is_bare = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    if !name.is_empty() && name.bytes().all(is_bare) { name.to_owned() } else { quoted(name) }
}

/// A text in quotes.
pub(crate) fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            control if control.is_control() => {
                // Writing to a text cannot fail.
                let _ = write!(out, "\\u{:04X}", u32::from(control));
            }
            other => out.push(other),
        }
    }
    out.push('"');
    out
}
