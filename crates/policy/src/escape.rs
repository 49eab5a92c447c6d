//! Texts of strangers, made harmless for terminals and for those who read them.
//!
//! A path or a key may hold characters that are never seen as themselves: control characters, which a terminal carries
//! out (C1 too: U+009B begins a command as ESC `[` does), ends of lines, which forge a second line of a log, and
//! directional marks, which show a text in another order than it is compared in. Logs, lists and tables write them as
//! `\u` and four hexadecimal digits: in JSON that is the same text, elsewhere it is plain to see.

use std::borrow::Cow;
use std::fmt;

/// Whether a character is written as `\u….`: controls, ends of lines and directional marks.
#[must_use]
pub const fn is_hidden(character: char) -> bool {
    matches!(character,
        '\0'..='\x1f' | '\x7f'..='\u{9f}'
        | '\u{2028}' | '\u{2029}'
        | '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// A text on one line, with every hidden character as `\u….`
#[derive(Clone, Copy, Debug)]
pub struct Escaped<'a>(pub &'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write(self.0, is_hidden, f)
    }
}

/// The same as a text; what hides nothing is not copied.
#[must_use]
pub fn escaped(text: &str) -> Cow<'_, str> {
    if text.chars().any(is_hidden) { Escaped(text).to_string().into() } else { text.into() }
}

/// JSON in which no hidden character is left but the ends of its own lines. It is the same JSON: outside of texts there
/// are no others, and in texts those of ASCII are escaped already, all but DEL.
#[must_use]
pub fn escaped_json(json: String) -> String {
    let is_left = |character| character != '\n' && is_hidden(character);
    if !json.chars().any(is_left) {
        return json;
    }
    let mut out = String::with_capacity(json.len() + 16);
    write(&json, is_left, &mut out).unwrap_or_default();
    out
}

fn write(text: &str, is_hidden: impl Fn(char) -> bool, out: &mut impl fmt::Write) -> fmt::Result {
    let mut rest = text;
    while let Some((at, character)) = rest.char_indices().find(|(_, character)| is_hidden(*character)) {
        out.write_str(&rest[..at])?;
        write!(out, "\\u{:04x}", u32::from(character))?;
        rest = &rest[at + character.len_utf8()..];
    }
    out.write_str(rest)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn controls_line_ends_and_directional_marks_are_written_out() {
        let odd = "a\u{1b}[2J\u{9b}2J\r\n\u{7f}\u{85}\u{2028}\u{202e}txt.\u{2066}ü…";
        let plain = r"a\u001b[2J\u009b2J\u000d\u000a\u007f\u0085\u2028\u202etxt.\u2066ü…";
        assert_eq!(escaped(odd), plain);
        assert!(matches!(escaped("sk_live_…"), Cow::Borrowed("sk_live_…")));
    }

    proptest! {
        #[test]
        fn escaped_json_is_the_same_json_without_anything_hidden(text in "(\\PC|\\p{C}){0,20}") {
            let value = json!({ "a": [text] });
            let escaped = escaped_json(format!("{value:#}\n"));
            prop_assert!(!escaped.replace('\n', "").chars().any(is_hidden), "{}", escaped);
            prop_assert_eq!(serde_json::from_str::<Value>(&escaped).unwrap(), value);
        }
    }
}
