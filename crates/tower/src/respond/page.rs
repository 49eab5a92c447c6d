//! An answer of ours as it goes over the wire.

use std::cell::Cell;
use std::mem;

use bytes::BytesMut;
use http::StatusCode;

use super::REFUSAL_BYTES;

/// Larger ones are not kept.
const MOST_KEPT: usize = 8 * REFUSAL_BYTES;

thread_local! {
    /// The memory of the last page, for the next one: a page is gone before its thread writes another.
    static ROOM: Cell<Option<BytesMut>> = const { Cell::new(None) };
}

/// Room for a page.
pub(crate) fn room() -> BytesMut {
    // A thread that is about to end has none.
    let kept = ROOM.try_with(Cell::take).ok().flatten();
    kept.unwrap_or_else(|| BytesMut::with_capacity(REFUSAL_BYTES))
}

/// A status, the lines of the fields, and a body, one behind the other in one piece of memory.
///
/// ```text
/// content-type: application/problem+json␍␊retry-after: 1␍␊{"type":"https://…
/// ╰───────────────────── lines ──────────────────────────╯╰───── body ─────
/// ```
#[derive(Debug)]
pub struct Page {
    status: StatusCode,
    text: BytesMut,
    body_at: usize,
}

impl Page {
    /// A page whose body begins at a place in the text.
    pub(crate) const fn new(status: StatusCode, text: BytesMut, body_at: usize) -> Self {
        Self { status, text, body_at }
    }

    /// The status.
    #[must_use]
    pub const fn status(&self) -> StatusCode {
        self.status
    }

    /// The fields, each as `name: value` and the end of its line. How long the body is does not stand there.
    #[must_use]
    pub fn lines(&self) -> &[u8] {
        self.text.get(..self.body_at).unwrap_or_default()
    }

    /// The body.
    #[must_use]
    pub fn body(&self) -> &[u8] {
        self.text.get(self.body_at..).unwrap_or_default()
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        let mut room = mem::take(&mut self.text);
        if room.capacity() <= MOST_KEPT {
            room.clear();
            _ = ROOM.try_with(|kept| kept.set(Some(room)));
        }
    }
}
