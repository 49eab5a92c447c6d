//! What of a message is still to come.

use bytes::BytesMut;
use http_body::SizeHint;

use super::Flaw;
use super::chunks::{Chunks, Found};

/// What of a message's body is still to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rest {
    Nothing,
    Length(u64),
    Chunks(Chunks),
    UntilClose,
}

impl Rest {
    /// So many bytes.
    pub(crate) const fn length(length: u64) -> Self {
        if length == 0 { Self::Nothing } else { Self::Length(length) }
    }

    /// A body in chunks, from its first byte.
    pub(crate) const fn chunks() -> Self {
        Self::Chunks(Chunks::begin())
    }

    /// Takes the next piece out of what has been read.
    pub(crate) fn take(&mut self, buffer: &mut BytesMut) -> Result<Found, Flaw> {
        let found = match self {
            Self::Nothing => return Ok(Found::End),
            Self::Chunks(chunks) => chunks.step(buffer)?,
            Self::Length(_) | Self::UntilClose if buffer.is_empty() => Found::Nothing,
            Self::UntilClose => Found::Data(buffer.split().freeze()),
            Self::Length(left) => {
                let here = usize::try_from(*left).unwrap_or(usize::MAX).min(buffer.len());
                *left -= here as u64;
                Found::Data(buffer.split_to(here).freeze())
            }
        };
        self.note_end(buffer);
        Ok(found)
    }

    /// Sees the end of a body as soon as it can be seen, so that nobody has to ask once more.
    fn note_end(&mut self, buffer: &mut BytesMut) {
        let has_ended = match self {
            Self::Length(left) => *left == 0,
            Self::Chunks(chunks) => chunks.has_ended(buffer),
            Self::Nothing | Self::UntilClose => false,
        };
        if has_ended {
            *self = Self::Nothing;
        }
    }

    /// How much is left until the next thing that is not data, if it is known.
    pub(crate) const fn known(&self) -> Option<u64> {
        match self {
            Self::Length(left) => Some(*left),
            Self::Chunks(chunks) => chunks.known(),
            Self::Nothing | Self::UntilClose => None,
        }
    }

    pub(crate) fn size_hint(&self) -> SizeHint {
        match self {
            Self::Nothing => SizeHint::with_exact(0),
            Self::Length(left) => SizeHint::with_exact(*left),
            Self::Chunks(_) | Self::UntilClose => SizeHint::default(),
        }
    }
}
