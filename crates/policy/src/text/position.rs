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
        Self { text, starts: std::iter::once(0).chain(breaks).collect() }
    }

    /// Where a byte stands; at the end when there is no such byte.
    #[must_use]
    pub fn of(&self, byte: usize) -> Position {
        let byte = byte.min(self.text.len());
        let index = self.index(byte);
        let before = String::from_utf8_lossy(&self.text[self.starts[index]..byte]).chars().count();
        Position { line: number(index), column: number(before) }
    }

    /// The line in which `span` begins, and the characters of it that the span covers, at least one.
    pub(crate) fn line(&self, span: Span) -> (String, std::ops::Range<usize>) {
        let start = span.start.min(self.text.len());
        let index = self.index(start);
        let end = self.starts.get(index + 1).map_or(self.text.len(), |next| next - 1);
        let line = String::from_utf8_lossy(&self.text[self.starts[index]..end.max(start)]);
        let line = line.strip_prefix('\u{feff}').unwrap_or(&line).trim_end_matches('\r').to_owned();
        let from = usize::try_from(self.of(start).column - 1).unwrap_or(0);
        let until = span.end.clamp(start, end.max(start));
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
