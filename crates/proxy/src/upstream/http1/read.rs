//! The head of an answer, and where its body will end (RFC 9112 §6.3).
//!
//! Everything that two readers could take for two different answers is refused: lengths that differ, codings we did
//! not ask for, folded lines, spaces before a colon.

use std::mem::MaybeUninit;

use bytes::{Bytes, BytesMut};
use http::header::{self, HeaderMap};
use http::{HeaderName, HeaderValue, Response, StatusCode, Version};
use hyper::ext::ReasonPhrase;

use super::Failure;

/// How many fields a head may have, and how many trailers may follow a body.
pub(super) const MOST_FIELDS: usize = 100;

/// How long a head may be.
pub(super) const MOST_HEAD: usize = 64 * 1024;

/// What every answer begins with.
const BEGIN: &[u8] = b"HTTP/1.";

/// Where the body of an answer ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// With the head.
    Head,
    /// After so many bytes.
    Length(u64),
    /// With the last chunk.
    Chunks,
    /// With the connection.
    Close,
}

/// The head of an answer.
#[derive(Debug)]
pub(super) struct Head {
    pub(super) response: Response<()>,
    pub(super) ending: Ending,
    /// Whether another answer may follow on the same connection.
    pub(super) is_kept: bool,
}

/// Takes a head out of what has been read, if it is there as a whole. The first `seen` bytes are known not to have
/// its end.
pub(super) fn take_head(
    buffer: &mut BytesMut,
    seen: usize,
    is_head_request: bool,
) -> Result<Option<Head>, Failure> {
    let begins = buffer.iter().zip(BEGIN).all(|(came, expected)| came == expected);
    if !begins {
        return Err(Failure::Malformed("the answer does not begin with HTTP/1"));
    }
    match end_of_fields(buffer, seen) {
        Some(end) if end <= MOST_HEAD => parse(&buffer.split_to(end).freeze(), is_head_request).map(Some),
        None if buffer.len() < MOST_HEAD => Ok(None),
        Some(_) | None => Err(Failure::Malformed("the answer's head is too long")),
    }
}

/// The first place behind an empty line.
pub(super) fn end_of_fields(bytes: &[u8], seen: usize) -> Option<usize> {
    let begin = seen.saturating_sub(3);
    let lines = memchr::memchr_iter(b'\n', bytes.get(begin..)?);
    lines.map(|place| begin + place + 1).find_map(|next| match bytes.get(next..)? {
        [b'\n', ..] => Some(next + 1),
        [b'\r', b'\n', ..] => Some(next + 2),
        _ => None,
    })
}

fn parse(head: &Bytes, is_head_request: bool) -> Result<Head, Failure> {
    let mut fields = [const { MaybeUninit::uninit() }; MOST_FIELDS];
    let mut parsed = httparse::Response::new(&mut []);
    let config = httparse::ParserConfig::default();
    match config.parse_response_with_uninit_headers(&mut parsed, head, &mut fields) {
        Ok(httparse::Status::Complete(end)) if end == head.len() => {}
        Ok(_) => return Err(Failure::Malformed("the answer's head has no clear end")),
        Err(httparse::Error::TooManyHeaders) => {
            return Err(Failure::Malformed("the answer has too many fields"));
        }
        Err(_) => return Err(Failure::Malformed("the answer's head cannot be read")),
    }
    let status = parsed.code.and_then(|code| StatusCode::from_u16(code).ok());
    let status = status.ok_or(Failure::Malformed("the answer has no status"))?;
    let version = if parsed.version == Some(0) { Version::HTTP_10 } else { Version::HTTP_11 };
    let mut response = Response::new(());
    let mut meaning = Meaning::default();
    *response.headers_mut() = read_fields(head, parsed.headers, &mut meaning)?;
    *response.status_mut() = status;
    *response.version_mut() = version;
    keep_reason(&mut response, parsed.reason.unwrap_or_default());
    let ending = meaning.ending(&mut response, is_head_request)?;
    let is_kept = meaning.is_kept(&response, ending);
    Ok(Head { response, ending, is_kept })
}

/// The fields, as slices of what was read.
pub(super) fn read_fields(
    bytes: &Bytes,
    fields: &[httparse::Header<'_>],
    meaning: &mut Meaning,
) -> Result<HeaderMap, Failure> {
    const UNREADABLE: Failure = Failure::Malformed("a field of the answer cannot be read");
    let mut headers = HeaderMap::with_capacity(fields.len());
    for field in fields {
        let name = HeaderName::from_bytes(field.name.as_bytes()).map_err(|_| UNREADABLE)?;
        let value = HeaderValue::from_maybe_shared(bytes.slice_ref(field.value)).map_err(|_| UNREADABLE)?;
        meaning.note(&name, field.value)?;
        headers.append(name, value);
    }
    Ok(headers)
}

/// Keeps the words beside the status where they are the service's own.
fn keep_reason(response: &mut Response<()>, reason: &str) {
    if reason.is_empty() || response.status().canonical_reason() == Some(reason) {
        return;
    }
    if let Ok(reason) = ReasonPhrase::try_from(reason.as_bytes()) {
        response.extensions_mut().insert(reason);
    }
}

/// What the fields say about the body and the connection.
#[derive(Debug, Default)]
pub(super) struct Meaning {
    length: Option<u64>,
    lengths: usize,
    /// How often it was said to be chunked.
    chunked: usize,
    has_other_coding: bool,
    says_close: bool,
    says_keep: bool,
}

impl Meaning {
    fn note(&mut self, name: &HeaderName, value: &[u8]) -> Result<(), Failure> {
        match *name {
            header::CONTENT_LENGTH => {
                for length in value.split(|byte| *byte == b',') {
                    self.note_length(length.trim_ascii())?;
                }
            }
            header::TRANSFER_ENCODING => {
                for coding in value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii) {
                    if coding.eq_ignore_ascii_case(b"chunked") {
                        self.chunked += 1;
                    } else {
                        self.has_other_coding = true;
                    }
                }
            }
            header::CONNECTION => {
                for option in value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii) {
                    self.says_close |= option.eq_ignore_ascii_case(b"close");
                    self.says_keep |= option.eq_ignore_ascii_case(b"keep-alive");
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn note_length(&mut self, digits: &[u8]) -> Result<(), Failure> {
        let length = decimal(digits).ok_or(Failure::Malformed("the answer's length is no number"))?;
        if self.length.is_some_and(|before| before != length) {
            return Err(Failure::Malformed("the answer has several lengths"));
        }
        self.length = Some(length);
        self.lengths += 1;
        Ok(())
    }

    fn is_coded(&self) -> bool {
        self.chunked > 0 || self.has_other_coding
    }

    /// Where the body ends; what is sent on says it in one way only.
    fn ending(&self, response: &mut Response<()>, is_head_request: bool) -> Result<Ending, Failure> {
        if self.lengths > 1 {
            response.headers_mut().insert(header::CONTENT_LENGTH, self.length.unwrap_or_default().into());
        }
        let status = response.status();
        let is_coded = self.is_coded();
        if is_coded {
            // A length beside a coding is how one answer is made to look like two.
            response.headers_mut().remove(header::CONTENT_LENGTH);
        }
        if is_head_request || status.is_informational() || is_bare(status) {
            return Ok(Ending::Head);
        }
        if is_coded {
            return if response.version() == Version::HTTP_10 {
                Err(Failure::Malformed("an answer of HTTP/1.0 has a transfer coding"))
            } else if self.has_other_coding || self.chunked > 1 {
                Err(Failure::Malformed("the answer has a transfer coding that was not asked for"))
            } else {
                Ok(Ending::Chunks)
            };
        }
        Ok(self.length.map_or(Ending::Close, Ending::Length))
    }

    fn is_kept(&self, response: &Response<()>, ending: Ending) -> bool {
        let is_wanted = if response.version() == Version::HTTP_10 { self.says_keep } else { true };
        let is_contradictory = self.is_coded() && self.length.is_some();
        let has_no_room = response.status() == StatusCode::NO_CONTENT
            && (self.is_coded() || self.length.is_some_and(|length| length > 0));
        is_wanted && !self.says_close && !is_contradictory && !has_no_room && ending != Ending::Close
    }
}

/// Whether answers of this status have no body, whatever they say.
fn is_bare(status: StatusCode) -> bool {
    matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED)
}

/// A number in digits and nothing else.
fn decimal(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0_u64, |number, byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        number.checked_mul(10)?.checked_add(digit)
    })
}
