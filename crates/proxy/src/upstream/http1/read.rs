//! The head of an answer, and where its body will end (RFC 9112 §6.3).
//!
//! Everything that two readers could take for two different answers is refused: lengths that differ, codings we did
//! not ask for, folded lines, spaces before a colon.

use bytes::{Bytes, BytesMut};
use http::header::{self, HeaderMap};
use http::{HeaderName, Response, StatusCode, Version};
use hyper::ext::ReasonPhrase;

use super::Failure;
use crate::http1::Flaw;
use crate::http1::lines::{Ends, decimal, line, read_fields, words};

/// How many fields a head may have.
const MOST_FIELDS: usize = 100;

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

/// Takes a head out of what has been read, if it is there as a whole. Its fields take the place of those in `room`.
pub(super) fn take_head(
    buffer: &mut BytesMut,
    room: &mut HeaderMap,
    is_head_request: bool,
) -> Result<Option<Head>, Failure> {
    let begins = buffer.iter().zip(BEGIN).all(|(came, expected)| came == expected);
    if !begins {
        return Err(Failure::Malformed("the answer does not begin with HTTP/1"));
    }
    let mut ends = Ends::new();
    let end = ends.find(buffer, MOST_FIELDS + 1);
    match end.map_err(|_| Failure::Malformed("the answer has too many fields"))? {
        Some(end) if end <= MOST_HEAD => {
            parse(&buffer.split_to(end).freeze(), ends.all(), room, is_head_request).map(Some)
        }
        None if buffer.len() < MOST_HEAD => Ok(None),
        Some(_) | None => Err(Failure::Malformed("the answer's head is too long")),
    }
}

fn parse(head: &Bytes, ends: &[usize], room: &mut HeaderMap, is_head_request: bool) -> Result<Head, Failure> {
    let (first, fields) = ends.split_first().unwrap_or((&0, &[]));
    let (version, status, reason) = status_of(line(head, 0, *first))
        .ok_or(Failure::Malformed("the first line of the answer cannot be read"))?;
    let mut response = Response::new(());
    let mut meaning = Meaning::default();
    std::mem::swap(response.headers_mut(), room);
    response.headers_mut().clear();
    read_fields(head, first + 1, fields, |name, bytes, value| {
        meaning.note(&name, bytes)?;
        response.headers_mut().append(name, value);
        Ok(())
    })?;
    *response.status_mut() = status;
    *response.version_mut() = version;
    keep_reason(&mut response, reason)?;
    let ending = meaning.ending(&mut response, is_head_request)?;
    let is_kept = meaning.is_kept(&response, ending);
    Ok(Head { response, ending, is_kept })
}

/// The parts of the first line: `HTTP/1.1 200 OK`, of which the words may be missing.
fn status_of(line: &[u8]) -> Option<(Version, StatusCode, &[u8])> {
    let (minor, line) = line.strip_prefix(BEGIN)?.split_first()?;
    let version = match minor {
        b'0' => Version::HTTP_10,
        b'1' => Version::HTTP_11,
        _ => return None,
    };
    let (digits, words) = line.strip_prefix(b" ")?.split_at_checked(3)?;
    let status = StatusCode::from_bytes(digits).ok()?;
    Some((version, status, if words.is_empty() { words } else { words.strip_prefix(b" ")? }))
}

/// Keeps the words beside the status where they are the service's own.
fn keep_reason(response: &mut Response<()>, reason: &[u8]) -> Result<(), Failure> {
    let canonical = response.status().canonical_reason().unwrap_or_default();
    if reason.is_empty() || reason == canonical.as_bytes() {
        return Ok(());
    }
    let reason = ReasonPhrase::try_from(reason)
        .map_err(|_| Failure::Malformed("the words beside the answer's status cannot be read"))?;
    response.extensions_mut().insert(reason);
    Ok(())
}

/// What the fields say about the body and the connection.
#[derive(Debug, Default)]
struct Meaning {
    length: Option<u64>,
    lengths: usize,
    /// How often it was said to be chunked.
    chunked: usize,
    has_other_coding: bool,
    says_close: bool,
    says_keep: bool,
}

impl Meaning {
    fn note(&mut self, name: &HeaderName, value: &[u8]) -> Result<(), Flaw> {
        match *name {
            header::CONTENT_LENGTH => {
                for length in words(value) {
                    self.note_length(length)?;
                }
            }
            header::TRANSFER_ENCODING => {
                for coding in words(value) {
                    if coding.eq_ignore_ascii_case(b"chunked") {
                        self.chunked += 1;
                    } else {
                        self.has_other_coding = true;
                    }
                }
            }
            header::CONNECTION => {
                for option in words(value) {
                    self.says_close |= option.eq_ignore_ascii_case(b"close");
                    self.says_keep |= option.eq_ignore_ascii_case(b"keep-alive");
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn note_length(&mut self, digits: &[u8]) -> Result<(), Flaw> {
        let length = decimal(digits).ok_or("the answer's length is no number")?;
        if self.length.is_some_and(|before| before != length) {
            return Err("the answer has several lengths");
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
