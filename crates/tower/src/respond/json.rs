//! Writing JSON texts. Objects are written as they look, for people read a problem from its type to its id.

use std::fmt::Write;

use super::sheet::Sheet;

/// A text with its quotes, which is what `write` writes.
pub(crate) fn text(sheet: &mut Sheet, write: impl FnOnce(&mut Sheet)) {
    sheet.push("\"").checked(write, is_plain, escape).push("\"");
}

/// Whether a byte needs no escape.
const fn is_plain(byte: u8) -> bool {
    !matches!(byte, b'"' | b'\\' | ..=0x1f)
}

#[cold]
fn escape(sheet: &mut Sheet, text: &str) {
    for char in text.chars() {
        // Writing on a sheet cannot fail.
        let _written = match char {
            '"' | '\\' => write!(sheet, "\\{char}"),
            '\0'..='\x1f' => write!(sheet, "\\u{:04x}", u32::from(char)),
            _ => sheet.write_char(char),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_text_survives_the_way_through_json() {
        for odd in ["", "plain", "a\"b\\c\n\u{1}é\u{2028}", "\u{7f}é"] {
            let mut sheet = Sheet::with_room(0);
            text(&mut sheet, |sheet| _ = sheet.push(odd));
            let read: serde_json::Value = serde_json::from_slice(&sheet.cut()).unwrap();
            assert_eq!(read, odd);
        }
    }
}
