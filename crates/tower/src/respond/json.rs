//! Writing JSON objects whose members keep their order: people read a problem from its type to its id.

use std::fmt::{Display, Write};

/// An object that is being written.
#[derive(Debug)]
pub(crate) struct Object(String);

impl Object {
    pub(crate) fn new() -> Self {
        Self("{".to_owned())
    }

    /// A member that is a text.
    pub(crate) fn text(mut self, name: &'static str, value: &str) -> Self {
        self.begin(name);
        push_text(&mut self.0, value);
        self
    }

    /// A member that is written already: a number, or an array.
    pub(crate) fn raw(mut self, name: &'static str, value: impl Display) -> Self {
        self.begin(name);
        // Writing to a string cannot fail.
        let _written = write!(self.0, "{value}");
        self
    }

    pub(crate) fn finish(mut self) -> String {
        self.0.push('}');
        self.0
    }

    fn begin(&mut self, name: &'static str) {
        if self.0.len() > 1 {
            self.0.push(',');
        }
        push_text(&mut self.0, name);
        self.0.push(':');
    }
}

/// An array of what is written already.
pub(crate) fn array(values: impl IntoIterator<Item = String>) -> String {
    format!("[{}]", values.into_iter().collect::<Vec<_>>().join(","))
}

/// A text with its quotes.
pub(crate) fn text(value: &str) -> String {
    let mut text = String::with_capacity(value.len() + 2);
    push_text(&mut text, value);
    text
}

fn push_text(text: &mut String, value: &str) {
    text.push('"');
    for char in value.chars() {
        match char {
            '"' | '\\' => text.extend(['\\', char]),
            '\0'..='\x1f' => {
                let _written = write!(text, "\\u{:04x}", u32::from(char));
            }
            _ => text.push(char),
        }
    }
    text.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_text_survives_the_way_through_json() {
        let odd = "a\"b\\c\n\u{1}é\u{2028}";
        let written =
            Object::new().text("odd", odd).raw("list", array([text("x"), "2.5".to_owned()])).finish();
        let read: serde_json::Value = serde_json::from_str(&written).unwrap();
        assert_eq!(read["odd"], odd);
        assert_eq!(read["list"], serde_json::json!(["x", 2.5]));
        assert!(written.starts_with(r#"{"odd":"#));
    }
}
