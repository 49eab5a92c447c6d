//! Bodies in chunks (RFC 9112 §7.1).
//!
//! ```text
//! 5\r\nhello\r\n  0\r\n  trailer: x\r\n  \r\n
//! Size Data  Gap  Size   Trailers
//! ```
//!
//! What stands beside the data is thrown away, or kept until the message has ended. So it has a bound for the whole message,
//! however it is spread over chunks: [`MOST_BESIDE`].

use bytes::{Buf, Bytes, BytesMut};
use http::{HeaderMap, HeaderName, HeaderValue, header};

use super::Flaw;
use super::lines::{Ends, read_fields};
use crate::head::fields::is_ours_to_say;

/// How long the line with a chunk's size may be, extensions included. Nobody we know sends extensions.
const MOST_LINE: usize = 1024;

/// Sixteen digits are all that 64 bits can hold.
const MOST_DIGITS: usize = 16;

/// How many trailers may follow a body.
const MOST_FIELDS: usize = 100;

/// How long all extensions and trailers of a message may be together. Trailers are a checksum, a status and its text.
pub(crate) const MOST_BESIDE: usize = 4 * 1024;

const TOO_MUCH_BESIDE: Flaw = "the extensions of chunks and the trailers are too long";

const NO_CLEAR_END: Flaw = "a line behind the body ends without a carriage return";

/// How far a body has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Chunks {
    place: Place,
    /// How much has stood beside the data.
    beside: usize,
}

/// Where in the body the next byte belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// The line with a chunk's size.
    Size,
    /// A chunk, of which so much is left.
    Data(u64),
    /// The end of the line behind a chunk.
    Gap,
    /// What follows the last chunk.
    Trailers,
    /// Nothing follows.
    End,
}

/// What a step over the bytes found.
#[derive(Debug)]
pub(crate) enum Found {
    Data(Bytes),
    Trailers(HeaderMap),
    /// The body has ended.
    End,
    /// Nothing can be said before more is read.
    Nothing,
}

impl Chunks {
    /// From its first byte.
    pub(crate) const fn begin() -> Self {
        Self { place: Place::Size, beside: 0 }
    }

    /// How much is left of the chunk in hand.
    pub(crate) const fn known(&self) -> Option<u64> {
        if let Place::Data(left) = self.place { Some(left) } else { None }
    }

    /// So much stands beside the data.
    fn pass(&mut self, beside: usize) -> Result<(), Flaw> {
        self.beside += beside;
        if self.beside > MOST_BESIDE { Err(TOO_MUCH_BESIDE) } else { Ok(()) }
    }

    /// Goes on to the next thing that is worth to be told.
    pub(crate) fn step(&mut self, buffer: &mut BytesMut) -> Result<Found, Flaw> {
        loop {
            match self.place {
                Place::Size => {
                    let Some((size, extensions)) = take_size(buffer)? else { return Ok(Found::Nothing) };
                    self.pass(extensions)?;
                    self.place = if size == 0 { Place::Trailers } else { Place::Data(size) };
                }
                Place::Data(_) if buffer.is_empty() => return Ok(Found::Nothing),
                Place::Data(left) => {
                    let here = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
                    let left = left - here as u64;
                    self.place = if left == 0 { Place::Gap } else { Place::Data(left) };
                    return Ok(Found::Data(buffer.split_to(here).freeze()));
                }
                Place::Gap => match buffer.first_chunk() {
                    Some(b"\r\n") => {
                        buffer.advance(2);
                        self.place = Place::Size;
                    }
                    None if buffer.first().is_none_or(|first| *first == b'\r') => {
                        return Ok(Found::Nothing);
                    }
                    _ => return Err("a chunk is longer than it says"),
                },
                Place::Trailers => {
                    let room = MOST_BESIDE - self.beside;
                    let Some(trailers) = take_trailers(buffer, room)? else { return Ok(Found::Nothing) };
                    self.place = Place::End;
                    if !trailers.is_empty() {
                        return Ok(Found::Trailers(trailers));
                    }
                }
                Place::End => return Ok(Found::End),
            }
        }
    }

    /// Whether the body has ended, as far as can be told without reading more.
    pub(crate) fn has_ended(&mut self, buffer: &mut BytesMut) -> bool {
        if self.place == Place::Gap && buffer.starts_with(b"\r\n0\r\n\r\n") {
            buffer.advance(7);
            self.place = Place::End;
        }
        self.place == Place::End
    }
}

/// The size of the next chunk, and how much stands beside it.
fn take_size(buffer: &mut BytesMut) -> Result<Option<(u64, usize)>, Flaw> {
    const UNREADABLE: Flaw = "a chunk's size cannot be read";
    let begin = buffer.get(..buffer.len().min(MOST_LINE)).unwrap_or_default();
    let Some(end) = memchr::memchr(b'\n', begin) else {
        let is_sound = begin.first().is_none_or(u8::is_ascii_hexdigit) && begin.len() < MOST_LINE;
        return if is_sound { Ok(None) } else { Err(UNREADABLE) };
    };
    let line = begin.get(..end).and_then(|line| line.strip_suffix(b"\r")).ok_or(UNREADABLE)?;
    let count = line.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    let (digits, extensions) = line.split_at(count);
    if !(1..=MOST_DIGITS).contains(&count) || !is_extension(extensions) {
        return Err(UNREADABLE);
    }
    let size = digits.iter().fold(0, |size, digit| size << 4 | hex(*digit));
    let beside = extensions.len();
    buffer.advance(end + 1);
    Ok(Some((size, beside)))
}

/// Whether this may stand behind a size. What it means is not for us.
fn is_extension(bytes: &[u8]) -> bool {
    let is_text = bytes.iter().all(|byte| *byte == b'\t' || (*byte >= b' ' && *byte != 0x7f));
    is_text && bytes.trim_ascii_start().first().is_none_or(|first| *first == b';')
}

fn hex(digit: u8) -> u64 {
    char::from(digit).to_digit(16).unwrap_or_default().into()
}

/// What follows the last chunk, if it is no longer than there is room for; empty if nothing does.
fn take_trailers(buffer: &mut BytesMut, room: usize) -> Result<Option<HeaderMap>, Flaw> {
    let mut trailers = HeaderMap::new();
    if buffer.starts_with(b"\r\n") {
        buffer.advance(2);
        return Ok(Some(trailers));
    }
    if buffer.starts_with(b"\n") {
        return Err(NO_CLEAR_END);
    }
    let mut ends = Ends::new();
    let end = ends.find(buffer, MOST_FIELDS).map_err(|_| "the body has too many trailers")?;
    if !ends.have_returns(buffer, end) {
        return Err(NO_CLEAR_END);
    }
    match end {
        Some(end) if end <= room => {
            let bytes = buffer.split_to(end).freeze();
            read_fields(&bytes, 0, ends.all(), |name, _, value| {
                trailers.append(name, value);
                Ok(())
            })?;
            drop_forbidden(&mut trailers);
            Ok(Some(trailers))
        }
        None if buffer.len() < room => Ok(None),
        Some(_) | None => Err(TOO_MUCH_BESIDE),
    }
}

/// Takes away what must not come behind a body (RFC 9110 §6.5.1), because somebody may already have acted without it.
pub(crate) fn drop_forbidden(trailers: &mut HeaderMap) {
    drop_where(trailers, |name, _| is_forbidden(name));
}

/// Takes away the fields that are so.
pub(crate) fn drop_where(trailers: &mut HeaderMap, is_so: impl Fn(&HeaderName, &HeaderValue) -> bool) {
    let found = trailers.iter().filter(|(name, value)| is_so(name, value));
    // Nearly always empty, and then it takes no memory.
    let found: Vec<HeaderName> = found.map(|(name, _)| name.clone()).collect();
    for name in found {
        trailers.remove(name);
    }
}

/// Fields about framing, routing, authentication, caching and conditions, how a body is to be read, and the way a
/// message took.
pub(crate) fn is_forbidden(name: &HeaderName) -> bool {
    matches!(
        *name,
        header::AGE
            | header::AUTHORIZATION
            | header::CACHE_CONTROL
            | header::CONTENT_ENCODING
            | header::CONTENT_RANGE
            | header::CONTENT_TYPE
            | header::COOKIE
            | header::DATE
            | header::EXPECT
            | header::EXPIRES
            | header::IF_MATCH
            | header::IF_MODIFIED_SINCE
            | header::IF_NONE_MATCH
            | header::IF_RANGE
            | header::IF_UNMODIFIED_SINCE
            | header::LOCATION
            | header::MAX_FORWARDS
            | header::PRAGMA
            | header::PROXY_AUTHENTICATE
            | header::PROXY_AUTHORIZATION
            | header::RANGE
            | header::RETRY_AFTER
            | header::SET_COOKIE
            | header::TRAILER
            | header::VARY
            | header::WARNING
            | header::WWW_AUTHENTICATE
    ) || is_ours_to_say(name)
}
