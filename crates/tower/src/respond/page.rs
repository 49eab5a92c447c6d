//! An answer of ours as it goes over the wire.

use bytes::BytesMut;
use http::StatusCode;

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
