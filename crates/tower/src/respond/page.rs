//! An answer of ours as it goes over the wire.

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};

use super::MOST_FIELDS;

/// A status, the lines of the fields, and a body, one behind the other in one piece of memory.
///
/// Over HTTP/1 they are sent as they are. Whoever wants a map of the fields has them read:
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

    /// The same with its fields in a map.
    #[must_use]
    pub fn into_response(self) -> Response<Bytes> {
        let mut body = self.text.freeze();
        let lines = body.split_to(self.body_at.min(body.len()));
        let mut headers = HeaderMap::with_capacity(MOST_FIELDS);
        for line in lines.split(|byte| *byte == b'\n') {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            let colon = line.iter().position(|byte| *byte == b':').unwrap_or(line.len());
            let (name, value) = line.split_at(colon);
            let value = lines.slice_ref(value.strip_prefix(b": ").unwrap_or_default());
            if let (Ok(name), Ok(value)) =
                (HeaderName::from_bytes(name), HeaderValue::from_maybe_shared(value))
            {
                headers.append(name, value);
            }
        }
        let mut response = Response::new(body);
        *response.status_mut() = self.status;
        *response.headers_mut() = headers;
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_into_a_map_and_the_body_stays() {
        let text = "a: 1\r\nb: x: y\r\na: 2\r\n{\"c: \r\n\"}";
        let page = Page::new(StatusCode::NOT_FOUND, text.as_bytes().into(), text.find('{').unwrap());
        assert_eq!((page.lines(), page.body()), (&b"a: 1\r\nb: x: y\r\na: 2\r\n"[..], &b"{\"c: \r\n\"}"[..]));
        let response = page.into_response();
        assert_eq!((response.status(), response.headers().len()), (StatusCode::NOT_FOUND, 3));
        let values = |name| -> Vec<_> { response.headers().get_all(name).iter().collect() };
        assert_eq!(values("a"), ["1", "2"]);
        assert_eq!(values("b"), ["x: y"]);
        assert_eq!(response.body(), "{\"c: \r\n\"}");
    }
}
