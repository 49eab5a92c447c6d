//! The head of an answer on its way out.

use http::response::Parts;
use http::{HeaderValue, StatusCode, Version, header};
use hyper::ext::ReasonPhrase;
use tidegate_tower::respond::Page;

use super::read::Manner;
use crate::http1::lines::words;
use crate::http1::outgoing::{Framing, write_field};
use crate::ticks::Ticks;

/// Writes an answer's head. The fields that frame the body and tell what becomes of the connection are ours, whatever
/// the answer had, except where there is no body that they could contradict. An answer that asks for the connection's
/// end gets it.
pub(super) fn write_head(
    out: &mut Vec<u8>,
    parts: &Parts,
    manner: &mut Manner,
    framing: Framing,
    ticks: &Ticks,
) {
    write_status(out, parts.status, parts.extensions.get(), manner.version);
    let is_turning = parts.status == StatusCode::SWITCHING_PROTOCOLS;
    let is_bare = is_bare(parts.status);
    // What the length would be is said where the body is left out, and only there.
    let keeps_length = manner.is_bare || parts.status == StatusCode::NOT_MODIFIED;
    let (mut had_date, mut had_length) = (false, false);
    for (name, value) in &parts.headers {
        match *name {
            header::CONTENT_LENGTH if keeps_length => had_length = true,
            header::CONTENT_LENGTH | header::TRANSFER_ENCODING => continue,
            header::CONNECTION if !is_turning => {
                manner.is_kept &= !says_close(value);
                continue;
            }
            header::DATE => had_date = true,
            _ => {}
        }
        write_field(out, name, value);
    }
    match framing {
        _ if is_bare || had_length => {}
        Framing::Bare if manner.is_bare => {}
        Framing::Bare => out.extend_from_slice(b"content-length: 0\r\n"),
        Framing::Length(length) => write_length(out, length),
        Framing::Chunks if manner.is_bare => {}
        Framing::Chunks => out.extend_from_slice(b"transfer-encoding: chunked\r\n"),
        Framing::Close => {}
    }
    if !is_turning {
        write_connection(out, *manner);
    }
    if !had_date {
        write_date(out, ticks);
    }
    out.extend_from_slice(b"\r\n");
}

/// Writes a whole answer of ours.
pub(super) fn write_page(out: &mut Vec<u8>, page: &Page, manner: Manner, ticks: &Ticks) {
    write_status(out, page.status(), None, manner.version);
    out.extend_from_slice(page.lines());
    write_length(out, page.body().len() as u64);
    write_connection(out, manner);
    write_date(out, ticks);
    out.extend_from_slice(b"\r\n");
    if !manner.is_bare {
        out.extend_from_slice(page.body());
    }
}

fn write_connection(out: &mut Vec<u8>, manner: Manner) {
    match (manner.is_kept, manner.version) {
        (true, Version::HTTP_10) => out.extend_from_slice(b"connection: keep-alive\r\n"),
        (false, Version::HTTP_11) => out.extend_from_slice(b"connection: close\r\n"),
        _ => {}
    }
}

fn write_date(out: &mut Vec<u8>, ticks: &Ticks) {
    out.extend_from_slice(b"date: ");
    out.extend_from_slice(&ticks.date());
    out.extend_from_slice(b"\r\n");
}

fn write_status(out: &mut Vec<u8>, status: StatusCode, reason: Option<&ReasonPhrase>, version: Version) {
    if let Some(line) = usual(status).filter(|_| version == Version::HTTP_11 && reason.is_none()) {
        out.extend_from_slice(line);
        return;
    }
    out.extend_from_slice(if version == Version::HTTP_10 { b"HTTP/1.0 " } else { b"HTTP/1.1 " });
    out.extend_from_slice(status.as_str().as_bytes());
    out.push(b' ');
    let canonical = || status.canonical_reason().unwrap_or_default().as_bytes();
    out.extend_from_slice(reason.map_or_else(canonical, ReasonPhrase::as_bytes));
    out.extend_from_slice(b"\r\n");
}

/// The lines of the answers that are given most, and of those that must cost least.
const fn usual(status: StatusCode) -> Option<&'static [u8]> {
    match status.as_u16() {
        200 => Some(b"HTTP/1.1 200 OK\r\n"),
        429 => Some(b"HTTP/1.1 429 Too Many Requests\r\n"),
        503 => Some(b"HTTP/1.1 503 Service Unavailable\r\n"),
        _ => None,
    }
}

fn write_length(out: &mut Vec<u8>, length: u64) {
    let mut digits = [0; 20];
    let (mut left, mut begin) = (length, digits.len());
    while begin > 0 {
        begin -= 1;
        digits[begin] = b"0123456789"[usize::try_from(left % 10).unwrap_or_default()];
        left /= 10;
        if left == 0 {
            break;
        }
    }
    out.extend_from_slice(b"content-length: ");
    out.extend_from_slice(digits.get(begin..).unwrap_or_default());
    out.extend_from_slice(b"\r\n");
}

/// Whether answers of this status have no body, whatever they say.
pub(super) fn is_bare(status: StatusCode) -> bool {
    status.is_informational() || matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED)
}

fn says_close(connection: &HeaderValue) -> bool {
    words(connection.as_bytes()).any(|word| word.eq_ignore_ascii_case(b"close"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_is_written_with_its_reason() {
        for status in (100..600).filter_map(|code| StatusCode::from_u16(code).ok()) {
            let reason = status.canonical_reason().unwrap_or_default();
            for (version, name) in [(Version::HTTP_10, "HTTP/1.0"), (Version::HTTP_11, "HTTP/1.1")] {
                let mut out = Vec::new();
                write_status(&mut out, status, None, version);
                assert_eq!(out, format!("{name} {} {reason}\r\n", status.as_str()).into_bytes());
            }
        }
    }
}
