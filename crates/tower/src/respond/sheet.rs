//! What the texts of one answer are written on.
//!
//! An answer is a body and a few fields, all of them short. In memory of its own each would cost as much to
//! allocate as to write. So they are written one after another on one sheet, and whatever is finished is cut off:
//! a part of the same memory, which goes when the last of its parts goes.
//!
//! ```text
//! {"type":"https://…","status":429,…}1tidegate;error=http_request_denied…"per_key";q=20;w=2…
//! ╰─────────────── body ────────────╯│╰──────── Proxy-Status ────────╯
//!                               Retry-After
//! ```
//!
//! Refusing must stay cheaper than serving, so numbers are written digit by digit: a formatter takes 1000 instructions
//! for the id alone, the whole answer takes 2300 without one.

use std::fmt::{self, Write};

use bytes::{Bytes, BytesMut};
use http::{HeaderValue, StatusCode};
use tidegate_core::Cost;
use tidegate_policy::DecisionId;

use super::page::Page;

/// Texts that are being written.
#[derive(Debug)]
pub(crate) struct Sheet {
    bytes: BytesMut,
    /// What stands before each blank of the text that is being written.
    pieces: Vec<(Bytes, Blank)>,
}

/// A text with blanks.
#[derive(Debug, Default)]
pub(crate) struct Text {
    pieces: Vec<(Bytes, Blank)>,
    end: Bytes,
}

/// What is to be written where: of a rule's standing by its number, or of the decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Blank {
    /// What is used.
    Used(u8),
    /// When a violated rule lets the request pass.
    Retry(u8),
    /// What is left.
    Remaining(u8),
    /// When everything is back, or when to come back.
    Until(u8),
    /// When to come back, in whole seconds.
    After,
    /// The decision's number.
    Id,
}

impl Text {
    /// Writes it, with what `write` writes in its blanks.
    #[inline]
    pub(crate) fn fill(&self, sheet: &mut Sheet, write: impl Fn(&mut Sheet, Blank)) {
        for (piece, blank) in &self.pieces {
            sheet.bytes.extend_from_slice(piece);
            write(sheet, *blank);
        }
        sheet.bytes.extend_from_slice(&self.end);
    }
}

impl Sheet {
    /// One with room for so many bytes; where they are not enough, it gets more.
    pub(crate) fn with_room(bytes: usize) -> Self {
        Self::on(BytesMut::with_capacity(bytes))
    }

    /// One that is written in this room.
    pub(crate) const fn on(room: BytesMut) -> Self {
        Self { bytes: room, pieces: Vec::new() }
    }

    /// Whether nothing was written since the last cut.
    pub(crate) fn is_blank(&self) -> bool {
        self.bytes.is_empty() && self.pieces.is_empty()
    }

    /// A text as it is.
    #[inline]
    pub(crate) fn push(&mut self, text: &str) -> &mut Self {
        self.bytes.extend_from_slice(text.as_bytes());
        self
    }

    /// A text with its blanks.
    pub(crate) fn text(&mut self, text: &Text) -> &mut Self {
        for (piece, blank) in &text.pieces {
            self.bytes.extend_from_slice(piece);
            self.blank(*blank);
        }
        self.bytes.extend_from_slice(&text.end);
        self
    }

    /// A field's value.
    pub(crate) fn value(&mut self, value: &HeaderValue) -> &mut Self {
        self.bytes.extend_from_slice(value.as_bytes());
        self
    }

    /// A whole number.
    #[inline]
    pub(crate) fn integer(&mut self, value: u64) -> &mut Self {
        if value < 10 {
            self.bytes.extend_from_slice(&[digit(value)]);
            return self;
        }
        self.long_integer(value)
    }

    fn long_integer(&mut self, value: u64) -> &mut Self {
        const MOST_DIGITS: usize = 20;
        let (mut digits, mut first, mut rest) = ([0; MOST_DIGITS], MOST_DIGITS, value);
        loop {
            first -= 1;
            digits[first] = digit(rest % 10);
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        self.bytes.extend_from_slice(&digits[first..]);
        self
    }

    /// A cost, as its `Display` writes it: `12`, `0.01`.
    pub(crate) fn decimal(&mut self, value: Cost) -> &mut Self {
        self.integer(value.whole());
        let micros = value.micros() % 1_000_000;
        if micros == 0 {
            return self;
        }
        let mut text = *b".000000";
        // In pairs, of which none waits for the one before it.
        let pairs = [micros / 10_000, micros / 100 % 100, micros % 100];
        for (place, pair) in text[1..].chunks_exact_mut(2).zip(pairs) {
            place.copy_from_slice(&[digit(pair / 10), digit(pair)]);
        }
        let zeros = text.iter().rev().take_while(|digit| **digit == b'0').count();
        self.bytes.extend_from_slice(&text[..text.len() - zeros]);
        self
    }

    /// A decision's number.
    pub(crate) fn id(&mut self, id: DecisionId) -> &mut Self {
        self.bytes.extend_from_slice(&id.digits());
        self
    }

    /// A blank, which is filled in later.
    pub(crate) fn blank(&mut self, blank: Blank) -> &mut Self {
        let piece = self.cut();
        self.pieces.push((piece, blank));
        self
    }

    /// What `write` writes, but if some bytes of it cannot stay as they are, `rewrite` writes it once more.
    #[inline]
    pub(crate) fn checked(
        &mut self,
        write: impl FnOnce(&mut Self),
        is_plain: impl Fn(u8) -> bool,
        rewrite: impl FnOnce(&mut Self, &str),
    ) -> &mut Self {
        let start = self.bytes.len();
        write(self);
        // Without an early return, so that the loop looks at many bytes at once.
        if !self.bytes[start..].iter().fold(true, |are_plain, byte| are_plain & is_plain(*byte)) {
            let text = String::from_utf8_lossy(&self.bytes[start..]).into_owned();
            self.bytes.truncate(start);
            rewrite(self, &text);
        }
        self
    }

    /// What was written since the last cut: the lines of fields, and behind them from `body_at` on a body.
    pub(crate) fn into_page(self, status: StatusCode, body_at: usize) -> Page {
        Page::new(status, self.bytes, body_at)
    }

    /// How much was written since the last cut.
    pub(crate) fn length(&self) -> usize {
        self.bytes.len()
    }

    /// What was written since the last cut.
    pub(crate) fn cut(&mut self) -> Bytes {
        self.bytes.split().freeze()
    }

    /// The same with its blanks.
    pub(crate) fn cut_text(&mut self) -> Text {
        Text { pieces: std::mem::take(&mut self.pieces), end: self.cut() }
    }

    /// The same as a field's value; none if nothing was written, or what no field can hold.
    pub(crate) fn cut_field(&mut self) -> Option<HeaderValue> {
        if self.is_blank() { None } else { HeaderValue::from_maybe_shared(self.cut()).ok() }
    }
}

impl Write for Sheet {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.push(text);
        Ok(())
    }
}

const fn digit(value: u64) -> u8 {
    b'0' + (value % 10) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl FnOnce(&mut Sheet)) -> Bytes {
        let mut sheet = Sheet::with_room(0);
        write(&mut sheet);
        sheet.cut()
    }

    #[test]
    fn numbers_are_written_as_elsewhere() {
        for number in [0, 9, 10, 99, 100, 1_234_567_890, u64::MAX] {
            assert_eq!(written(|sheet| _ = sheet.integer(number)), number.to_string());
            let cost = Cost::from_micros(number);
            assert_eq!(written(|sheet| _ = sheet.decimal(cost)), cost.to_string());
        }
        for micros in [1, 10_000, 2_500_000, 999_999, 1_000_000, 12_345_678, 20_000_000] {
            let cost = Cost::from_micros(micros);
            assert_eq!(written(|sheet| _ = sheet.decimal(cost)), cost.to_string());
        }
    }

    #[test]
    fn parts_are_cut_off_one_by_one_and_stay() {
        let mut sheet = Sheet::with_room(4);
        let first = sheet.push("first").cut();
        let second = sheet.push("and a ").push("second").cut_field();
        assert!(sheet.is_blank());
        assert_eq!(sheet.cut_field(), None);
        assert_eq!(sheet.push("a\nb").cut_field(), None, "fields have one line");
        drop(sheet);
        assert_eq!((first.as_ref(), second.unwrap().as_bytes()), (&b"first"[..], &b"and a second"[..]));
    }
}
