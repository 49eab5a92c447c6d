//! The head of a request, and where its body will end (RFC 9112 §3, §6.3).
//!
//! A proxy must not be lenient here: the next server may be lenient in another way, and then a caller smuggles a
//! request past the rules. So whatever two servers could read in two ways is refused:
//!
//! | a head with                                     | some servers |
//! |-------------------------------------------------|--------------|
//! | both `Content-Length` and `Transfer-Encoding`   | look at the one, some at the other |
//! | lengths that differ, or are no number           | take the first, the last, or what there is of digits |
//! | other codings than `chunked`, or it twice       | look at the last |
//! | lines that end in a bare line feed              | read on |
//! | folded lines, a space before a colon            | make one field of it, or two |

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri, Version, header};

use super::scratch;
use crate::http1::Flaw;
use crate::http1::lines::{Ends, decimal, line, read_fields, words};
use crate::http1::rest::Rest;

/// The longest target that [`Uri`] can hold.
const LONGEST_TARGET: usize = 65_534;

const TWO_LENGTHS: Flaw = "the request has both Content-Length and Transfer-Encoding";
const OTHER_LENGTHS: Flaw = "the request has several lengths";
const OTHER_CODING: Flaw = "the request has a Transfer-Encoding other than chunked";
const OLD_CODING: Flaw = "a request of HTTP/1.0 has a Transfer-Encoding";
const UNCLEAR_LENGTH: Flaw = "the length of the request is no number";
const BARE_LINE_FEED: Flaw = "a line of the request ends without a carriage return";
const UNREADABLE: Flaw = "the first line of the request cannot be read";
const OTHER_VERSION: Flaw = "the request is of a version of HTTP that is not spoken here";

/// Why a request is not served that could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unserved {
    /// It could be read in two ways, or in none.
    Unclear(Flaw),
    /// Its head is too large, or has too many fields.
    TooLarge,
    /// Its target is too long.
    TooLong,
}

impl From<Flaw> for Unserved {
    fn from(flaw: Flaw) -> Self {
        Self::Unclear(flaw)
    }
}

/// How large a head may be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) max_header_bytes: usize,
    pub(crate) max_headers: usize,
}

/// What a request says about the way it is to be answered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Manner {
    pub(super) version: Version,
    /// Whether another request may follow on the same connection.
    pub(super) is_kept: bool,
    /// Whether it is a HEAD request, whose answer has no body.
    pub(super) is_bare: bool,
    pub(super) takes_trailers: bool,
    /// Whether its sender waits to be told before it sends the body.
    pub(super) expects_continue: bool,
}

impl Default for Manner {
    /// Of a request that could not be read.
    fn default() -> Self {
        Self {
            version: Version::HTTP_11,
            is_kept: false,
            is_bare: false,
            takes_trailers: false,
            expects_continue: false,
        }
    }
}

/// The head of a request.
#[derive(Debug)]
pub(super) struct Head {
    pub(super) request: Request<()>,
    pub(super) rest: Rest,
    pub(super) manner: Manner,
}

/// Reads the head at the beginning of some bytes, if it is there as a whole; it ends at the place that is given back.
pub(super) fn read_head(bytes: &[u8], limits: Limits) -> Result<Option<(Head, usize)>, Unserved> {
    // Some senders put an empty line behind a body.
    let mut before = 0;
    while bytes.get(before..).is_some_and(|rest| rest.starts_with(b"\r\n")) {
        before += 2;
    }
    let bytes = bytes.get(before..).unwrap_or_default();
    let mut ends = Ends::new();
    let end = ends.find(bytes, limits.max_headers + 1).map_err(|_| Unserved::TooLarge)?;
    if !ends.have_returns(bytes, end) {
        return Err(Unserved::Unclear(BARE_LINE_FEED));
    }
    match end {
        Some(end) if end <= limits.max_header_bytes => {
            let head = Bytes::copy_from_slice(bytes.get(..end).unwrap_or_default());
            Ok(Some((parse(&head, ends.all())?, before + end)))
        }
        None if before + bytes.len() < limits.max_header_bytes => Ok(None),
        Some(_) | None => Err(Unserved::TooLarge),
    }
}

fn parse(head: &Bytes, ends: &[usize]) -> Result<Head, Unserved> {
    let (first, fields) = ends.split_first().ok_or(UNREADABLE)?;
    let (method, target, version) = request_line(line(head, 0, *first))?;
    if target.len() > LONGEST_TARGET {
        return Err(Unserved::TooLong);
    }
    let uri = Uri::from_maybe_shared(head.slice_ref(target)).map_err(|_| UNREADABLE)?;
    let mut request = Request::new(());
    let headers = request.headers_mut();
    *headers = scratch::take_fields();
    headers.reserve(fields.len());
    let mut meaning = Meaning::default();
    read_fields(head, first + 1, fields, |name, bytes, value| meaning.take(headers, name, bytes, value))?;
    let rest = meaning.rest(version)?;
    let manner = Manner {
        version,
        is_kept: !meaning.says_close && (version == Version::HTTP_11 || meaning.says_keep),
        is_bare: method == Method::HEAD,
        takes_trailers: meaning.takes_trailers,
        expects_continue: meaning.expects_continue && version == Version::HTTP_11,
    };
    *request.method_mut() = method;
    *request.uri_mut() = uri;
    *request.version_mut() = version;
    Ok(Head { request, rest, manner })
}

/// The parts of the first line: `GET /path HTTP/1.1`.
fn request_line(line: &[u8]) -> Result<(Method, &[u8], Version), Flaw> {
    let space = line.iter().position(|byte| *byte == b' ').ok_or(UNREADABLE)?;
    let (method, rest) = line.split_at(space);
    let method = Method::from_bytes(method).map_err(|_| UNREADABLE)?;
    let (target, version) = rest.split_last_chunk::<9>().ok_or(UNREADABLE)?;
    let version = match version {
        b" HTTP/1.1" => Version::HTTP_11,
        b" HTTP/1.0" => Version::HTTP_10,
        [b' ', b'H', b'T', b'T', b'P', b'/', ..] => return Err(OTHER_VERSION),
        _ => return Err(UNREADABLE),
    };
    let target = target.strip_prefix(b" ").ok_or(UNREADABLE)?;
    if target.is_empty() || target.iter().any(|byte| *byte <= b' ' || *byte == 0x7f) {
        return Err(UNREADABLE);
    }
    Ok((method, target, version))
}

/// What the fields say about the body and the connection.
#[derive(Debug, Default)]
struct Meaning {
    length: Option<u64>,
    is_chunked: bool,
    says_close: bool,
    says_keep: bool,
    takes_trailers: bool,
    expects_continue: bool,
}

impl Meaning {
    /// Takes one more field.
    fn take(
        &mut self,
        headers: &mut HeaderMap,
        name: HeaderName,
        bytes: &[u8],
        value: HeaderValue,
    ) -> Result<(), Flaw> {
        let is = |word: &'static [u8]| move |one: &[u8]| one.eq_ignore_ascii_case(word);
        match name {
            header::CONTENT_LENGTH => {
                let length = decimal(bytes).ok_or(UNCLEAR_LENGTH)?;
                match self.length.replace(length) {
                    None => {}
                    // The same once more says nothing new, and is not sent on.
                    Some(before) if before == length => return Ok(()),
                    Some(_) => return Err(OTHER_LENGTHS),
                }
            }
            header::TRANSFER_ENCODING => {
                if self.is_chunked || !is(b"chunked")(bytes) {
                    return Err(OTHER_CODING);
                }
                self.is_chunked = true;
            }
            header::CONNECTION => {
                self.says_close |= words(bytes).any(is(b"close"));
                self.says_keep |= words(bytes).any(is(b"keep-alive"));
            }
            header::TE => self.takes_trailers |= words(bytes).any(is(b"trailers")),
            header::EXPECT => self.expects_continue = is(b"100-continue")(bytes),
            _ => {}
        }
        headers.append(name, value);
        Ok(())
    }

    /// Where the body ends.
    const fn rest(&self, version: Version) -> Result<Rest, Flaw> {
        match self.length {
            Some(_) if self.is_chunked => Err(TWO_LENGTHS),
            None if self.is_chunked && !matches!(version, Version::HTTP_11) => Err(OLD_CODING),
            None if self.is_chunked => Ok(Rest::chunks()),
            None => Ok(Rest::Nothing),
            Some(length) => Ok(Rest::length(length)),
        }
    }
}
