//! Writing Structured Fields (RFC 9651), as far as our fields need them.
//!
//! A field is a list of items, an item is a name with parameters, and a parameter's value is a string or an
//! integer:
//!
//! ```text
//! "per_key";q=20;w=2, "per_address";q=100;w=60
//! ```

use http::HeaderValue;

use super::sheet::{Blank, Sheet, Text};

/// The largest integer a structured field can hold: fifteen digits.
pub(crate) const LARGEST: u64 = 999_999_999_999_999;

/// A list of items that is being written on a sheet which is blank before.
#[derive(Debug)]
pub(crate) struct List<'a>(&'a mut Sheet);

impl<'a> List<'a> {
    /// No items yet.
    pub(crate) const fn on(sheet: &'a mut Sheet) -> Self {
        Self(sheet)
    }

    /// Begins the next item, which is a string.
    pub(crate) fn item(&mut self, name: &str) -> &mut Self {
        if !self.0.is_blank() {
            self.0.push(", ");
        }
        string(self.0, |text| _ = text.push(name));
        self
    }

    /// Gives the last item a parameter that is an integer. The key comes with its signs: `;q=`.
    pub(crate) fn integer(&mut self, key: &'static str, value: u64) -> &mut Self {
        self.0.push(key).integer(value.min(LARGEST));
        self
    }

    /// Gives the last item a parameter that is a string.
    pub(crate) fn string(&mut self, key: &'static str, value: &str) -> &mut Self {
        string(self.0.push(key), |text| _ = text.push(value));
        self
    }

    /// Gives the last item a parameter that is an integer and differs each time.
    pub(crate) fn blank(&mut self, key: &'static str, blank: Blank) -> &mut Self {
        self.0.push(key).blank(blank);
        self
    }

    /// The field's value with its blanks.
    pub(crate) fn finish_text(self) -> Text {
        self.0.cut_text()
    }

    /// The field's value, or nothing when it has no items: an empty list is not sent.
    pub(crate) fn finish(self) -> Option<HeaderValue> {
        self.0.cut_field()
    }
}

/// A quoted string of what `write` writes. It holds only what can be seen in ASCII; anything else becomes a
/// question mark, so that one odd name does not make the whole field unreadable.
pub(crate) fn string(sheet: &mut Sheet, write: impl FnOnce(&mut Sheet)) {
    sheet.push("\"").checked(write, is_plain, escape).push("\"");
}

/// Whether a byte stands for itself in a string.
const fn is_plain(byte: u8) -> bool {
    matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\\')
}

#[cold]
fn escape(sheet: &mut Sheet, text: &str) {
    for char in text.chars() {
        match char {
            '"' => sheet.push("\\\""),
            '\\' => sheet.push("\\\\"),
            ' '..='~' => sheet.push(char.encode_utf8(&mut [0; 4])),
            _ => sheet.push("?"),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_and_parameters_are_written_as_in_the_example() {
        let mut sheet = Sheet::with_room(0);
        let mut list = List::on(&mut sheet);
        list.item("per_key").integer(";q=", 20).integer(";w=", 2);
        list.item("per_address").integer(";q=", 100).integer(";w=", 60);
        assert_eq!(list.finish().unwrap(), r#""per_key";q=20;w=2, "per_address";q=100;w=60"#);
        assert_eq!(List::on(&mut sheet).finish(), None);
    }

    #[test]
    fn nothing_a_name_holds_breaks_the_field() {
        let mut sheet = Sheet::with_room(0);
        let mut list = List::on(&mut sheet);
        list.item("a\"b\\c").string(";qu=", "é\r\n").integer(";q=", u64::MAX);
        assert_eq!(list.finish().unwrap(), r#""a\"b\\c";qu="???";q=999999999999999"#);
    }
}
