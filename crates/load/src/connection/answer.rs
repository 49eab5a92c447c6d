//! What comes back over HTTP/1.1, read only as far as is counted: the status, and where the answer ends.
//!
//! | the head says | the body ends |
//! |---|---|
//! | 204, 304, or the request was HEAD | before it begins |
//! | `transfer-encoding: chunked` | with a chunk of no length and the trailers behind it |
//! | `content-length: 5` | after five bytes |
//! | nothing of these | with the connection |

use http::{Method, StatusCode};

use super::Failure;

/// The most fields an answer may have.
const MOST_FIELDS: usize = 128;

/// The head of an answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) rest: Rest,
    /// Whether the connection can be used again.
    pub(super) is_kept: bool,
}

/// What is still to come of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rest {
    Length(u64),
    Chunks(Chunks),
    UntilClose,
}

/// Where in a chunked body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Chunks {
    /// In the number that says how long the chunk is: so much of it, if it has begun.
    Size(Option<u64>),
    /// Behind the number, with the rest of its line to come.
    Sized(u64),
    /// In the chunk or the end of the line behind it.
    Data(u64),
    /// In the lines behind the last chunk, of which this one has so many characters so far.
    Trailers(usize),
    End,
}

impl Answer {
    /// Reads the head of the answer to a request of this method, if all of it is here, and says how long it is. What comes
    /// before the answer proper (100, 103) is skipped.
    pub(super) fn read(bytes: &[u8], method: &Method) -> Result<Option<(usize, Self)>, Failure> {
        let mut from = 0;
        loop {
            let mut fields = [httparse::EMPTY_HEADER; MOST_FIELDS];
            let mut head = httparse::Response::new(&mut fields);
            let parsed = head.parse(bytes.get(from..).unwrap_or_default()).map_err(|_| Failure::Protocol)?;
            let httparse::Status::Complete(length) = parsed else { return Ok(None) };
            from += length;
            let status =
                head.code.and_then(|code| StatusCode::from_u16(code).ok()).ok_or(Failure::Protocol)?;
            if status == StatusCode::SWITCHING_PROTOCOLS || !status.is_informational() {
                return Ok(Some((from, Self::of(status, method, &head)?)));
            }
        }
    }

    fn of(status: StatusCode, method: &Method, head: &httparse::Response<'_, '_>) -> Result<Self, Failure> {
        let fields = |name: &'static str| {
            let named = head.headers.iter().filter(move |field| field.name.eq_ignore_ascii_case(name));
            named.map(|field| String::from_utf8_lossy(field.value).trim().to_ascii_lowercase())
        };
        let is_switched = status == StatusCode::SWITCHING_PROTOCOLS;
        let has_none = method == Method::HEAD
            || is_switched
            || matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
        let last_coding = fields("transfer-encoding").next_back();
        let last_coding =
            last_coding.as_deref().map(|codings| codings.rsplit(',').next().unwrap_or(codings).trim());
        let rest = match (last_coding, fields("content-length").next()) {
            _ if has_none => Rest::Length(0),
            (Some("chunked"), _) => Rest::Chunks(Chunks::Size(None)),
            (None, Some(length)) => Rest::Length(length.parse().map_err(|_| Failure::Protocol)?),
            (Some(_), _) | (None, None) => Rest::UntilClose,
        };
        let said =
            |word: &str| fields("connection").any(|line| line.split(',').any(|token| token.trim() == word));
        let is_kept = if head.version == Some(1) { !said("close") } else { said("keep-alive") };
        Ok(Self { status, rest, is_kept: is_kept && !is_switched && rest != Rest::UntilClose })
    }
}

impl Rest {
    /// Whether all of it is here.
    pub(super) const fn is_over(self) -> bool {
        matches!(self, Self::Length(0) | Self::Chunks(Chunks::End))
    }

    /// What is left of it once these bytes have come.
    pub(super) fn after(self, bytes: &[u8]) -> Result<Self, Failure> {
        match self {
            Self::Length(left) => {
                left.checked_sub(bytes.len() as u64).map(Self::Length).ok_or(Failure::Protocol)
            }
            Self::Chunks(chunks) => chunks.after(bytes).map(Self::Chunks),
            Self::UntilClose => Ok(self),
        }
    }
}

impl Chunks {
    fn after(mut self, mut bytes: &[u8]) -> Result<Self, Failure> {
        while let [first, behind @ ..] = bytes {
            (self, bytes) = match self {
                Self::Data(left) => {
                    let taken = left.min(bytes.len() as u64);
                    let behind =
                        bytes.get(usize::try_from(taken).unwrap_or(bytes.len())..).unwrap_or_default();
                    (if taken == left { Self::Size(None) } else { Self::Data(left - taken) }, behind)
                }
                Self::Size(_) | Self::Sized(_) | Self::Trailers(_) | Self::End => {
                    (self.next(*first)?, behind)
                }
            };
        }
        Ok(self)
    }

    /// Where one is behind this byte, which is not in a chunk.
    fn next(self, byte: u8) -> Result<Self, Failure> {
        match (self, byte) {
            // The line's end behind a chunk counts as part of it.
            (Self::Size(Some(size)) | Self::Sized(size), b'\n') => {
                Ok(if size == 0 { Self::Trailers(0) } else { Self::Data(size.saturating_add(2)) })
            }
            (Self::Size(Some(size)), b';' | b'\r' | b' ' | b'\t') => Ok(Self::Sized(size)),
            (Self::Sized(_), _) => Ok(self),
            (Self::Size(size), digit) => {
                let digit = char::from(digit).to_digit(16).ok_or(Failure::Protocol)?;
                let longer =
                    size.unwrap_or(0).checked_mul(16).and_then(|size| size.checked_add(digit.into()));
                longer.map(|size| Self::Size(Some(size))).ok_or(Failure::Protocol)
            }
            (Self::Trailers(0), b'\n') => Ok(Self::End),
            (Self::Trailers(_), b'\n') => Ok(Self::Trailers(0)),
            (Self::Trailers(length), b'\r') => Ok(Self::Trailers(length)),
            (Self::Trailers(length), _) => Ok(Self::Trailers(length + 1)),
            (Self::Data(_) | Self::End, _) => Err(Failure::Protocol),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How an answer ends that comes in pieces of this size: its status, and whether the connection can be kept.
    fn ends(bytes: &[u8], piece: usize) -> Result<(u16, bool), Failure> {
        let (length, answer) = Answer::read(bytes, &Method::GET)?.expect("a whole head");
        let mut rest = answer.rest;
        for piece in bytes[length..].chunks(piece) {
            assert!(!rest.is_over(), "more comes than belongs to it");
            rest = rest.after(piece)?;
        }
        assert!(rest.is_over() || rest == Rest::UntilClose);
        Ok((answer.status.as_u16(), answer.is_kept))
    }

    #[test]
    fn answers_end_where_their_heads_say() {
        for (text, expected) in [
            ("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello", (200, true)),
            ("HTTP/1.1 204 No Content\r\n\r\n", (204, true)),
            ("HTTP/1.1 503 Sorry\r\nContent-Length: 0\r\nConnection: Close\r\n\r\n", (503, false)),
            ("HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nok", (200, false)),
            ("HTTP/1.0 200 OK\r\ncontent-length: 2\r\nconnection: keep-alive\r\n\r\nok", (200, true)),
            ("HTTP/1.1 200 OK\r\n\r\nuntil the end", (200, false)),
            (
                "HTTP/1.1 200 OK\r\ntransfer-encoding: gzip\r\ncontent-length: 1\r\n\r\nto the end",
                (200, false),
            ),
            (
                "HTTP/1.1 200 OK\r\nconnection: close\r\nconnection: x\r\ncontent-length: 0\r\n\r\n",
                (200, false),
            ),
            ("HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\n\r\n", (101, false)),
            ("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", (200, true)),
            ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nno\r\n0\r\n\r\n", (200, true)),
            (
                "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n\
                 1a;name=\"x\"\r\nabcdefghijklmnopqrstuvwxyz\r\n0\r\nx-sum: 1\r\ny: 2\r\n\r\n",
                (200, true),
            ),
        ] {
            for piece in [1, 2, 3, 7, 4096] {
                assert_eq!(ends(text.as_bytes(), piece), Ok(expected), "{text:?} by {piece}");
            }
        }
    }

    #[test]
    fn an_answer_to_head_has_no_body() {
        let answer =
            Answer::read(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n", &Method::HEAD).unwrap().unwrap();
        assert!(answer.1.rest.is_over() && answer.1.is_kept);
    }

    #[test]
    fn what_is_not_http_is_told_from_what_is_not_here_yet() {
        assert_eq!(Answer::read(b"HTTP/1.1 200 OK\r\ncontent-le", &Method::GET), Ok(None));
        for text in [
            "SSH-2.0-OpenSSH\r\n\r\n",
            "HTTP/1.1 200 OK\r\ncontent-length: five\r\n\r\n",
            "HTTP/1.1 99 Low\r\n\r\n",
        ] {
            assert_eq!(Answer::read(text.as_bytes(), &Method::GET), Err(Failure::Protocol), "{text:?}");
        }
        for body in ["x\r\n", "\r\n\r\n", ";x\r\n\r\n", "11111111111111111\r\n", "0\r\n\r\nmore"] {
            let text = format!("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n{body}");
            assert_eq!(ends(text.as_bytes(), 4096), Err(Failure::Protocol), "{body:?}");
        }
        let longer = Rest::Length(2).after(b"three");
        assert_eq!(longer, Err(Failure::Protocol));
    }
}
