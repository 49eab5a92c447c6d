//! The lines of a head: where they end, and the fields in them.
//!
//! What a name and a value may be made of is what [`HeaderName`] and [`HeaderValue`] take. [`field`] looks at that
//! without making them, for heads that may go nowhere.

use std::cell::Cell;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, header};

use super::Flaw;

thread_local! {
    /// Room for one list of ends; each reader takes it and puts it back.
    static ENDS: Cell<Vec<usize>> = const { Cell::new(Vec::new()) };
}

/// Where the lines before an empty one end, their line feeds not included. A head has one line more than fields.
#[derive(Debug)]
pub(crate) struct Ends {
    places: Vec<usize>,
}

/// There are more lines than there may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooMany;

impl Ends {
    pub(crate) fn new() -> Self {
        let mut places = ENDS.take();
        places.clear();
        Self { places }
    }

    /// Finds them, up to so many; the place behind the empty line, if it is there.
    pub(crate) fn find(&mut self, bytes: &[u8], most: usize) -> Result<Option<usize>, TooMany> {
        let mut begin = 0;
        for place in memchr::memchr_iter(b'\n', bytes) {
            if place == begin || (place == begin + 1 && bytes.get(begin) == Some(&b'\r')) {
                return Ok(Some(place + 1));
            }
            if self.places.len() == most {
                return Err(TooMany);
            }
            self.places.push(place);
            begin = place + 1;
        }
        Ok(None)
    }

    pub(crate) fn all(&self) -> &[usize] {
        &self.places
    }

    /// Whether a carriage return stands before each line feed that was found, the one that ends the head included.
    pub(crate) fn have_returns(&self, bytes: &[u8], end: Option<usize>) -> bool {
        let has_return = |place: usize| place > 0 && bytes.get(place - 1) == Some(&b'\r');
        self.places.iter().all(|place| has_return(*place)) && end.is_none_or(|end| has_return(end - 1))
    }
}

impl Drop for Ends {
    fn drop(&mut self) {
        ENDS.set(std::mem::take(&mut self.places));
    }
}

/// What is between two places, without the end of its line.
pub(crate) fn line(bytes: &[u8], begin: usize, end: usize) -> &[u8] {
    let line = bytes.get(begin..end).unwrap_or_default();
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// What is wrong with a line that is no field.
pub(crate) const UNREADABLE_FIELD: Flaw = "a header field cannot be read";

/// The longest name that [`HeaderName`] can hold.
const LONGEST_NAME: usize = 65_535;

/// What may stand in a name (RFC 9110 §5.6.2).
const IN_NAMES: [bool; 256] =
    members(b"!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz");

/// Which bytes are among these, by byte. A look at such a table takes half as long as a comparison with each.
pub(crate) const fn members(bytes: &[u8]) -> [bool; 256] {
    let (mut are_members, mut place) = ([false; 256], 0);
    while place < bytes.len() {
        are_members[bytes[place] as usize] = true;
        place += 1;
    }
    are_members
}

/// Whether this could be the name of a field.
pub(crate) fn is_name(text: &[u8]) -> bool {
    !text.is_empty() && text.iter().all(|byte| IN_NAMES[usize::from(*byte)])
}

/// The name and the value of the field on this line, if it is one.
pub(crate) fn field(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let colon = line.iter().position(|byte| !IN_NAMES[usize::from(*byte)])?;
    let (name, rest) = line.split_at(colon);
    let value = trim(rest.strip_prefix(b":")?);
    // Without an early return, so that the loop looks at many bytes at once.
    let is_plain =
        value.iter().fold(true, |is, byte| is & (*byte >= b' ' && *byte != 0x7f || *byte == b'\t'));
    ((1..=LONGEST_NAME).contains(&colon) && is_plain).then_some((name, value))
}

/// The value of the field on this line, if the field has this name.
#[inline]
pub(crate) fn value_of<'a>(line: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    // Nearly all others have something else at the place of the colon.
    if line.get(name.len()) != Some(&b':') {
        return None;
    }
    let (written, value) = line.split_at(name.len());
    let is_it = written == name || written.eq_ignore_ascii_case(name);
    is_it.then(|| trim(value.get(1..).unwrap_or_default()))
}

/// Gives on the fields whose lines end at these places: names, and values as bytes and as slices of what was read.
pub(crate) fn read_fields(
    bytes: &Bytes,
    mut begin: usize,
    ends: &[usize],
    mut take: impl FnMut(HeaderName, &[u8], HeaderValue) -> Result<(), Flaw>,
) -> Result<(), Flaw> {
    for end in ends {
        let line = line(bytes, begin, *end);
        let colon = line.iter().position(|byte| *byte == b':').ok_or(UNREADABLE_FIELD)?;
        let (name, value) = line.split_at(colon);
        let name = match usual(name) {
            Some(name) => name,
            None => HeaderName::from_bytes(name).map_err(|_| UNREADABLE_FIELD)?,
        };
        let value = trim(value.get(1..).unwrap_or_default());
        let shared = HeaderValue::from_maybe_shared(bytes.slice_ref(value)).map_err(|_| UNREADABLE_FIELD)?;
        take(name, value, shared)?;
        begin = end + 1;
    }
    Ok(())
}

/// The fields that nearly every message has, as most write them. To find one here costs a fifth of what it costs to
/// check a name letter by letter.
const fn usual(name: &[u8]) -> Option<HeaderName> {
    Some(match name {
        b"Host" | b"host" => header::HOST,
        b"Date" | b"date" => header::DATE,
        b"ETag" | b"etag" => header::ETAG,
        b"Accept" | b"accept" => header::ACCEPT,
        b"Cookie" | b"cookie" => header::COOKIE,
        b"Server" | b"server" => header::SERVER,
        b"Connection" | b"connection" => header::CONNECTION,
        b"User-Agent" | b"user-agent" => header::USER_AGENT,
        b"Content-Type" | b"content-type" => header::CONTENT_TYPE,
        b"Authorization" | b"authorization" => header::AUTHORIZATION,
        b"Cache-Control" | b"cache-control" => header::CACHE_CONTROL,
        b"Content-Length" | b"content-length" => header::CONTENT_LENGTH,
        b"Accept-Encoding" | b"accept-encoding" => header::ACCEPT_ENCODING,
        _ => return None,
    })
}

/// Without the spaces and tabs around it.
fn trim(mut value: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] = value {
        value = rest;
    }
    while let [rest @ .., b' ' | b'\t'] = value {
        value = rest;
    }
    value
}

/// The words of a list, as they stand between commas.
pub(crate) fn words(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii)
}

/// A number in digits and nothing else.
pub(crate) fn decimal(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0_u64, |number, byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        number.checked_mul(10)?.checked_add(digit)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What becomes of a line that goes on.
    fn made(line: &[u8]) -> Option<(HeaderName, HeaderValue)> {
        let mut fields = Vec::new();
        let bytes = Bytes::copy_from_slice(line);
        let read = read_fields(&bytes, 0, &[line.len()], |name, _, value| {
            fields.push((name, value));
            Ok(())
        });
        read.ok().and(fields.pop())
    }

    #[test]
    fn a_field_is_one_where_it_lies_and_when_it_goes_on() {
        let mut lines: Vec<Vec<u8>> = (0..=u8::MAX)
            .flat_map(|byte| {
                let within = |before: &[u8], after: &[u8]| [before, &[byte], after].concat();
                [
                    within(b"na", b"me: value"),
                    within(b"name: va", b"lue"),
                    within(b"", b"name:"),
                    within(b"", b""),
                ]
            })
            .collect();
        lines.extend([&b": value"[..], b"name", b"", b"name :value", b" name: value"].map(<[u8]>::to_vec));
        for length in [LONGEST_NAME, LONGEST_NAME + 1] {
            lines.push([&b"n".repeat(length)[..], b":v"].concat());
        }
        for line in lines {
            let lies = field(&line);
            let goes_on = made(&line);
            assert_eq!(lies.is_some(), goes_on.is_some(), "{line:?}");
            let Some(((name, value), (made, made_value))) = lies.zip(goes_on) else { continue };
            assert!(name.eq_ignore_ascii_case(made.as_str().as_bytes()), "{line:?}");
            assert_eq!(value, made_value.as_bytes(), "{line:?}");
            assert_eq!(value_of(&line, made.as_str().as_bytes()), Some(value), "{line:?}");
            assert_eq!(value_of(&line, b"other"), None, "{line:?}");
        }
    }
}
