use super::Span;

/// Line and column, both counted from one; columns count characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The line.
    pub line: u32,
    /// The column.
    pub column: u32,
}

/// Finds lines and columns in a text. Bytes that are no text count as a character each run.
#[derive(Debug)]
pub struct Positions<'a> {
    text: &'a [u8],
    /// Where each line begins.
    starts: Vec<usize>,
}

impl<'a> Positions<'a> {
    /// Of a text.
    #[must_use]
    pub fn new(text: &'a [u8]) -> Self {
        let breaks = text.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1);
        // A byte order mark is no character of the first line.
        let first = if text.starts_with("\u{feff}".as_bytes()) { '\u{feff}'.len_utf8() } else { 0 };
        Self { text, starts: std::iter::once(first).chain(breaks).collect() }
    }

    /// Where a byte stands; at the end when there is no such byte.
    #[must_use]
    pub fn of(&self, byte: usize) -> Position {
        let byte = byte.min(self.text.len());
        let index = self.index(byte);
        let before = String::from_utf8_lossy(&self.text[self.starts[index].min(byte)..byte]).chars().count();
        Position { line: number(index), column: number(before) }
    }

    /// The line in which `span` begins, and the characters of it that the span covers, at least one.
    pub(crate) fn line(&self, span: Span) -> (String, std::ops::Range<usize>) {
        let start = span.start.min(self.text.len());
        let index = self.index(start);
        let end = self.starts.get(index + 1).map_or(self.text.len(), |next| next - 1);
        let end = end.max(start);
        let line = String::from_utf8_lossy(&self.text[self.starts[index].min(end)..end]);
        let line = line.trim_end_matches('\r').to_owned();
        let from = usize::try_from(self.of(start).column - 1).unwrap_or(0);
        let until = span.end.clamp(start, end);
        let covered = String::from_utf8_lossy(&self.text[start..until]).trim_end().chars().count();
        (line, from..from + covered.max(1))
    }

    fn index(&self, byte: usize) -> usize {
        self.starts.partition_point(|start| *start <= byte).saturating_sub(1)
    }
}

fn number(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX - 1) + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_columns_count_characters_from_one() {
        let text = "\u{feff}é = 1\r\nquota = 10\n";
        let positions = Positions::new(text.as_bytes());
        let at = |needle: &str| positions.of(text.find(needle).unwrap());
        assert_eq!(at("é"), Position { line: 1, column: 1 });
        assert_eq!(at("1\r"), Position { line: 1, column: 5 });
        assert_eq!(at("10"), Position { line: 2, column: 9 });
        assert_eq!(positions.of(0), Position { line: 1, column: 1 });
        assert_eq!(positions.of(usize::MAX), Position { line: 3, column: 1 });
        let start = text.find("1\r").unwrap();
        assert_eq!(positions.line(Span { start, end: start + 1 }), ("é = 1".to_owned(), 4..5));
        let start = text.find("10").unwrap();
        assert_eq!(positions.line(Span { start, end: text.len() }), ("quota = 10".to_owned(), 8..10));
    }
}
