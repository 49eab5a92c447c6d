//! A refusal as gRPC clients read it: HTTP status 200, everything else in one block of fields, no body.
//!
//! A client that finds no `grpc-status` guesses one from the HTTP status, and takes 429 for "unavailable,
//! try again". So the refusal is sent in its own terms (*Trailers-Only*): the status code, a message, how long
//! to wait before the next attempt, and the same once more in the structured form that libraries read.

use std::fmt::Write;
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue, header};

use super::kind::Kind;
use super::protobuf::{self, Violation};

const STATUS: HeaderName = HeaderName::from_static("grpc-status");
const MESSAGE: HeaderName = HeaderName::from_static("grpc-message");
const PUSHBACK: HeaderName = HeaderName::from_static("grpc-retry-pushback-ms");
const DETAILS: HeaderName = HeaderName::from_static("grpc-status-details-bin");

/// When another attempt may be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pushback {
    /// After this long.
    After(Duration),
    /// Not at all.
    Never,
    /// We do not say.
    Silent,
}

/// Writes the fields that only these refusals have.
pub(crate) fn write(
    headers: &mut HeaderMap,
    kind: Kind,
    content_type: HeaderValue,
    message: &[u8],
    pushback: Pushback,
    violations: &[Violation<'_>],
) {
    headers.insert(header::CONTENT_TYPE, content_type);
    headers.insert(STATUS, u16::from(kind.grpc_status()).into());
    if let Ok(message) = HeaderValue::try_from(percent_encoded(message)) {
        headers.insert(MESSAGE, message);
    }
    let delay = match pushback {
        Pushback::After(delay) => {
            headers.insert(PUSHBACK, pushback_millis(delay).into());
            Some(delay)
        }
        Pushback::Never => {
            headers.insert(PUSHBACK, HeaderValue::from_static("-1"));
            None
        }
        Pushback::Silent => None,
    };
    let details = protobuf::status(kind.grpc_status(), message, delay, violations);
    if let Ok(details) = HeaderValue::try_from(protobuf::base64(&details)) {
        headers.insert(DETAILS, details);
    }
}

/// Whole milliseconds, rounded up, in the 31 bits that a pushback has.
fn pushback_millis(delay: Duration) -> i32 {
    i32::try_from(delay.as_nanos().div_ceil(1_000_000)).unwrap_or(i32::MAX)
}

/// Escapes everything but what can be seen in ASCII, and the sign that escapes.
fn percent_encoded(message: &[u8]) -> String {
    let mut encoded = String::with_capacity(message.len());
    for &byte in message {
        match byte {
            b'%' | ..=0x1f | 0x7f.. => {
                // Writing to a string cannot fail.
                let _written = write!(encoded, "%{byte:02X}");
            }
            byte => encoded.push(char::from(byte)),
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_survive_as_ascii() {
        assert_eq!(percent_encoded("10 requests, 50%\r\né".as_bytes()), "10 requests, 50%25%0D%0A%C3%A9");
    }

    #[test]
    fn pushback_is_rounded_up_and_fits() {
        assert_eq!(pushback_millis(Duration::from_micros(92_001)), 93);
        assert_eq!(pushback_millis(Duration::MAX), i32::MAX);
    }
}
