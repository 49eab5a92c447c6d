//! The head of a request, and where its body will end (RFC 9112 §3, §6.3).
//!
//! A head is checked where it lies. Most that come in a flood are refused, and whoever refuses looks at a field or two,
//! so only what goes on becomes a [`Request`], with a map of its fields: that takes as long as all the rest.
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
//! | a target that is neither a path nor a URL       | put a slash before it, or take it for a host |
//! | a fragment, a backslash, letters beyond ASCII in a target | cut it off, take it for a slash, escape them |
//! | a `Connection` field that is no list of names   | read on behind what they cannot read, or stop there |

use std::mem;

use bytes::Bytes;
use http::{Method, Request, Uri, Version, header};
use tidegate_policy::{Field, Headers};

use super::scratch;
use crate::http1::Flaw;
use crate::http1::lines::{
    Ends, UNREADABLE_FIELD, decimal, field, is_name, line, read_fields, value_of, words,
};
use crate::http1::rest::Rest;

/// The longest target that [`Uri`] can hold.
const LONGEST_TARGET: usize = 65_534;

const TWO_LENGTHS: Flaw = "the request has both Content-Length and Transfer-Encoding";
const OTHER_LENGTHS: Flaw = "the request has several lengths";
const OTHER_CODING: Flaw = "the request has a Transfer-Encoding other than chunked";
const OLD_CODING: Flaw = "a request of HTTP/1.0 has a Transfer-Encoding";
const UNCLEAR_LENGTH: Flaw = "the length of the request is no number";
const BARE_LINE_FEED: Flaw = "a line of the request ends without a carriage return";
const UNREADABLE_CONNECTION: Flaw = "the Connection field cannot be read";
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

/// Where a head lies in what was read.
#[derive(Debug)]
pub(super) struct Span {
    begin: usize,
    /// The place behind it.
    pub(super) end: usize,
    ends: Ends,
}

/// Finds the head at the beginning of some bytes, if it is there as a whole.
pub(super) fn find_head(bytes: &[u8], limits: Limits) -> Result<Option<Span>, Unserved> {
    // Some senders put an empty line behind a body.
    let mut begin = 0;
    while bytes.get(begin..).is_some_and(|rest| rest.starts_with(b"\r\n")) {
        begin += 2;
    }
    let bytes = bytes.get(begin..).unwrap_or_default();
    let mut ends = Ends::new();
    let end = ends.find(bytes, limits.max_headers + 1).map_err(|_| Unserved::TooLarge)?;
    if !ends.have_returns(bytes, end) {
        return Err(Unserved::Unclear(BARE_LINE_FEED));
    }
    match end {
        Some(end) if end <= limits.max_header_bytes => Ok(Some(Span { begin, end: begin + end, ends })),
        None if begin + bytes.len() < limits.max_header_bytes => Ok(None),
        Some(_) | None => Err(Unserved::TooLarge),
    }
}

/// The head of a request that can be read in one way only.
#[derive(Debug)]
pub(crate) struct Head<'a> {
    method: Method,
    uri: Uri,
    host: Option<Field<'a>>,
    content_type: Option<&'a [u8]>,
    /// Whether `Connection` names other fields.
    names_fields: bool,
    fields: Fields<'a>,
    pub(super) rest: Rest,
    pub(super) manner: Manner,
}

/// The lines of a head, of which all but the first are fields.
#[derive(Debug)]
pub(crate) struct Fields<'a> {
    bytes: &'a [u8],
    ends: Ends,
}

impl<'a> Head<'a> {
    /// Reads the head that was found in these bytes.
    pub(super) fn read(bytes: &'a [u8], Span { begin, end, ends }: Span) -> Result<Self, Unserved> {
        let fields = Fields { bytes: bytes.get(begin..end).unwrap_or_default(), ends };
        let first = *fields.ends.all().first().ok_or(UNREADABLE)?;
        let (method, target, version) = request_line(line(fields.bytes, 0, first))?;
        if target.len() > LONGEST_TARGET {
            return Err(Unserved::TooLong);
        }
        check_target(&method, target)?;
        let uri = Uri::try_from(target).map_err(|_| UNREADABLE)?;
        let mut meaning = Meaning::default();
        for line in fields.lines() {
            let (name, value) = field(line).ok_or(UNREADABLE_FIELD)?;
            meaning.take(name, value)?;
        }
        let Meaning { host, content_type, names_fields, .. } = meaning;
        let rest = meaning.rest(version)?;
        let manner = Manner {
            version,
            is_kept: !meaning.says_close && (version == Version::HTTP_11 || meaning.says_keep),
            is_bare: method == Method::HEAD,
            takes_trailers: meaning.takes_trailers,
            expects_continue: meaning.expects_continue && version == Version::HTTP_11,
        };
        Ok(Self { method, uri, host, content_type, names_fields, fields, rest, manner })
    }

    /// Whether `Connection` says that this field is for us alone.
    pub(crate) fn ends(&self, name: &str) -> bool {
        let is_it = |word: &[u8]| word.eq_ignore_ascii_case(name.as_bytes());
        let mut lines = self.fields.lines().filter_map(|line| value_of(line, b"connection"));
        self.names_fields && may_be_ended(name.as_bytes()) && lines.any(|line| words(line).any(is_it))
    }

    /// Has another path than it came with.
    pub(crate) fn set_uri(&mut self, uri: Uri) {
        self.uri = uri;
    }

    pub(crate) const fn method(&self) -> &Method {
        &self.method
    }

    pub(crate) const fn uri(&self) -> &Uri {
        &self.uri
    }

    pub(crate) const fn version(&self) -> Version {
        self.manner.version
    }

    /// The field `Host`.
    pub(crate) const fn host(&self) -> Option<Field<'a>> {
        self.host
    }

    /// The first value of the field `Content-Type`.
    pub(crate) const fn content_type(&self) -> Option<&'a [u8]> {
        self.content_type
    }

    pub(crate) const fn fields(&self) -> &Fields<'a> {
        &self.fields
    }

    /// The request, with memory of its own; nothing of its first line is left behind. What [`Self::read`] has read can
    /// be read here too.
    pub(super) fn request<B>(&mut self, body: B) -> Result<Request<B>, Flaw> {
        let bytes = Bytes::copy_from_slice(self.fields.bytes);
        let (first, ends) = self.fields.ends.all().split_first().ok_or(UNREADABLE)?;
        let mut headers = scratch::take_fields();
        headers.reserve(ends.len());
        let mut lengths = 0;
        read_fields(&bytes, first + 1, ends, |name, _, value| {
            lengths += usize::from(name == header::CONTENT_LENGTH);
            // The same length once more says nothing new, and is not sent on.
            if name != header::CONTENT_LENGTH || lengths == 1 {
                headers.append(name, value);
            }
            Ok(())
        })?;
        let mut request = Request::new(body);
        *request.method_mut() = mem::take(&mut self.method);
        *request.uri_mut() = mem::take(&mut self.uri);
        *request.version_mut() = self.manner.version;
        *request.headers_mut() = headers;
        Ok(request)
    }
}

impl<'a> Fields<'a> {
    pub(crate) fn count(&self) -> usize {
        self.ends.all().len() - 1
    }

    /// One after another, without the ends of the lines.
    fn lines(&self) -> impl Iterator<Item = &'a [u8]> {
        let (bytes, ends) = (self.bytes, self.ends.all());
        // A carriage return stands before each line feed.
        ends.windows(2).map(move |ends| bytes.get(ends[0] + 1..ends[1] - 1).unwrap_or_default())
    }
}

impl Headers for Fields<'_> {
    fn find(&self, name: &str) -> Option<Field<'_>> {
        Field::of_lines(self.lines().filter_map(|line| value_of(line, name.as_bytes())))
    }
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

/// Whether a target is a path, a URL, or the whole service, and is written so that everybody reads it alike.
fn check_target(method: &Method, target: &[u8]) -> Result<(), Flaw> {
    let is_url =
        |scheme: &[u8]| target.get(..scheme.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(scheme));
    match target {
        b"*" if *method != Method::OPTIONS => return Err(STAR),
        // That no tunnels are opened is said later.
        [b'/', ..] | b"*" => {}
        _ if *method == Method::CONNECT || is_url(b"http://") || is_url(b"https://") => {}
        _ => return Err("the target of the request is neither a path nor a URL"),
    }
    check_signs(target)
}

/// What is said where the whole service is asked for anything but its options.
pub(crate) const STAR: Flaw = "only OPTIONS may have the target *";

/// Looks for signs that services cut off, turn around or escape.
pub(crate) fn check_signs(target: &[u8]) -> Result<(), Flaw> {
    let mut is_query = false;
    for byte in target {
        match byte {
            b'?' => is_query = true,
            b'#' => return Err("the target of the request has a fragment"),
            b'\\' if !is_query => return Err("the path has a backslash"),
            0x80.. if !is_query => return Err("the path has letters that must be escaped"),
            _ => {}
        }
    }
    Ok(())
}

/// Whether `Connection` has a say over a field: what every message needs is not for one hop, and naming it there is an
/// attempt to have it taken away.
pub(crate) fn may_be_ended(name: &[u8]) -> bool {
    let usual: [&[u8]; 6] = [b"keep-alive", b"close", b"upgrade", b"te", b"host", b"content-length"];
    !usual.iter().any(|usual| name.eq_ignore_ascii_case(usual))
}

/// What the fields say about the body and the connection, and what everybody looks at.
#[derive(Debug, Default)]
struct Meaning<'a> {
    host: Option<Field<'a>>,
    content_type: Option<&'a [u8]>,
    length: Option<u64>,
    is_chunked: bool,
    names_fields: bool,
    says_close: bool,
    says_keep: bool,
    takes_trailers: bool,
    expects_continue: bool,
}

impl<'a> Meaning<'a> {
    /// Takes one more field.
    fn take(&mut self, name: &[u8], value: &'a [u8]) -> Result<(), Flaw> {
        let is = |word: &'static [u8]| move |one: &[u8]| one.eq_ignore_ascii_case(word);
        let is_named = |word: &'static [u8]| is(word)(name);
        // By their length first: most fields are none of these.
        match name.len() {
            4 if is_named(b"host") => {
                let before = self.host.map(|host| host.first);
                self.host = Some(Field { first: before.unwrap_or(value), is_repeated: before.is_some() });
            }
            12 if is_named(b"content-type") => _ = self.content_type.get_or_insert(value),
            14 if is_named(b"content-length") => {
                let length = decimal(value).ok_or(UNCLEAR_LENGTH)?;
                if self.length.replace(length).is_some_and(|before| before != length) {
                    return Err(OTHER_LENGTHS);
                }
            }
            17 if is_named(b"transfer-encoding") => {
                if self.is_chunked || !is(b"chunked")(value) {
                    return Err(OTHER_CODING);
                }
                self.is_chunked = true;
            }
            10 if is_named(b"connection") => {
                for word in words(value).filter(|word| !word.is_empty()) {
                    if !is_name(word) {
                        return Err(UNREADABLE_CONNECTION);
                    }
                    self.says_close |= is(b"close")(word);
                    self.says_keep |= is(b"keep-alive")(word);
                    self.names_fields |= may_be_ended(word);
                }
            }
            2 if is_named(b"te") => self.takes_trailers |= words(value).any(is(b"trailers")),
            6 if is_named(b"expect") => self.expects_continue = is(b"100-continue")(value),
            _ => {}
        }
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
