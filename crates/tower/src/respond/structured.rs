//! Writing Structured Fields (RFC 9651), as far as our fields need them.
//!
//! A field is a list of items, an item is a name with parameters, and a parameter's value is a string or an
//! integer:
//!
//! ```text
//! "per_key";q=20;w=2, "per_address";q=100;w=60
//! ```

use std::fmt::Write;

/// The largest integer a structured field can hold: fifteen digits.
const LARGEST: u64 = 999_999_999_999_999;

/// A list of items that is being written.
#[derive(Debug, Default)]
pub(crate) struct List(String);

impl List {
    /// Begins the next item, which is a string.
    pub(crate) fn item(&mut self, name: &str) -> &mut Self {
        if !self.0.is_empty() {
            self.0.push_str(", ");
        }
        push_string(&mut self.0, name);
        self
    }

    /// Begins the next item, which is a token: a word that needs no quotes.
    pub(crate) fn token(&mut self, word: &'static str) -> &mut Self {
        if !self.0.is_empty() {
            self.0.push_str(", ");
        }
        self.0.push_str(word);
        self
    }

    /// Gives the last item a parameter that is an integer.
    pub(crate) fn integer(&mut self, key: &'static str, value: u64) -> &mut Self {
        // Writing to a string cannot fail.
        let _written = write!(self.0, ";{key}={}", value.min(LARGEST));
        self
    }

    /// Gives the last item a parameter that is a string.
    pub(crate) fn string(&mut self, key: &'static str, value: &str) -> &mut Self {
        self.begin(key);
        push_string(&mut self.0, value);
        self
    }

    /// Gives the last item a parameter that is a token.
    pub(crate) fn word(&mut self, key: &'static str, value: &'static str) -> &mut Self {
        self.begin(key);
        self.0.push_str(value);
        self
    }

    fn begin(&mut self, key: &'static str) {
        self.0.push(';');
        self.0.push_str(key);
        self.0.push('=');
    }

    /// The field's value, or nothing when it has no items: an empty list is not sent.
    pub(crate) fn finish(self) -> Option<String> {
        (!self.0.is_empty()).then_some(self.0)
    }
}

/// A quoted string. It holds only what can be seen in ASCII; anything else becomes a question mark, so that
/// one odd name does not make the whole field unreadable.
pub(crate) fn push_string(text: &mut String, value: &str) {
    text.push('"');
    for char in value.chars() {
        match char {
            '"' | '\\' => text.extend(['\\', char]),
            ' '..='~' => text.push(char),
            _ => text.push('?'),
        }
    }
    text.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_and_parameters_are_written_as_in_the_example() {
        let mut list = List::default();
        list.item("per_key").integer("q", 20).integer("w", 2);
        list.item("per_address").integer("q", 100).integer("w", 60);
        assert_eq!(list.finish().unwrap(), r#""per_key";q=20;w=2, "per_address";q=100;w=60"#);
        assert_eq!(List::default().finish(), None);
    }

    #[test]
    fn nothing_a_name_holds_breaks_the_field() {
        let mut list = List::default();
        list.item("a\"b\\c").string("qu", "é\r\n").integer("q", u64::MAX);
        assert_eq!(list.finish().unwrap(), r#""a\"b\\c";qu="???";q=999999999999999"#);
    }
}
