//! The few protobuf messages with which gRPC clients are told why and when to come back.
//!
//! A message is a run of fields; a field is its number and kind in one byte, then a number or a length and
//! bytes. Fields that are zero or empty are left out. Five messages do not need a code generator:
//!
//! | message                   | fields                                     |
//! |---------------------------|--------------------------------------------|
//! | `google.rpc.Status`       | code 1, message 2, details 3 (`Any`)       |
//! | `google.protobuf.Any`     | type_url 1, value 2                        |
//! | `google.rpc.RetryInfo`    | retry_delay 1 (`Duration`)                 |
//! | `google.protobuf.Duration`| seconds 1, nanos 2                         |
//! | `google.rpc.QuotaFailure` | violations 1 {subject 1, description 2}    |

use std::time::Duration;

/// A message that is being written. Field numbers stay below 16, so that a tag is one byte.
#[derive(Debug, Default)]
struct Message(Vec<u8>);

impl Message {
    fn number(mut self, field: u8, value: u64) -> Self {
        if value != 0 {
            self.0.push(field << 3);
            self.varint(value);
        }
        self
    }

    fn bytes(mut self, field: u8, value: &[u8]) -> Self {
        if !value.is_empty() {
            self.0.push(field << 3 | 2);
            self.varint(value.len() as u64);
            self.0.extend_from_slice(value);
        }
        self
    }

    /// Seven bits at a time, the lowest first; the eighth says that more follow.
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push((value & 0x7f) as u8 | 0x80);
            value >>= 7;
        }
        self.0.push((value & 0x7f) as u8);
    }
}

/// One violated quota: whose it is, and what it says.
#[derive(Debug)]
pub(crate) struct Violation<'a> {
    pub(crate) subject: &'a str,
    pub(crate) description: &'a [u8],
}

/// The `google.rpc.Status` of a refusal.
pub(crate) fn status(
    code: u8,
    message: &[u8],
    retry: Option<Duration>,
    violations: &[Violation<'_>],
) -> Vec<u8> {
    let mut status = Message::default().number(1, u64::from(code)).bytes(2, message);
    if !violations.is_empty() {
        status = status.bytes(3, &any("google.rpc.QuotaFailure", &quota_failure(violations)));
    }
    if let Some(delay) = retry {
        status = status.bytes(3, &any("google.rpc.RetryInfo", &retry_info(delay)));
    }
    status.0
}

fn any(name: &str, value: &[u8]) -> Vec<u8> {
    let url = format!("type.googleapis.com/{name}");
    Message::default().bytes(1, url.as_bytes()).bytes(2, value).0
}

fn retry_info(delay: Duration) -> Vec<u8> {
    let duration = Message::default().number(1, delay.as_secs()).number(2, u64::from(delay.subsec_nanos())).0;
    Message::default().bytes(1, &duration).0
}

fn quota_failure(violations: &[Violation<'_>]) -> Vec<u8> {
    violations
        .iter()
        .map(|violation| {
            let subject = Message::default().bytes(1, violation.subject.as_bytes());
            subject.bytes(2, violation.description).0
        })
        .fold(Message::default(), |message, violation| message.bytes(1, &violation))
        .0
}

/// Base64 without padding, as gRPC writes binary metadata.
pub(crate) fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let word =
            chunk.iter().enumerate().fold(0_u32, |word, (at, byte)| word | u32::from(*byte) << (16 - 8 * at));
        for at in 0..=chunk.len() {
            text.push(char::from(DIGITS[(word >> (18 - 6 * at) & 63) as usize]));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_as_in_the_examples_of_its_specification() {
        for (plain, encoded) in [
            ("", ""),
            ("f", "Zg"),
            ("fo", "Zm8"),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg"),
            ("fooba", "Zm9vYmE"),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(base64(plain.as_bytes()), encoded);
        }
        assert_eq!(base64(&[0xff, 0xef, 0xbe]), "/+++");
    }

    #[test]
    fn numbers_above_seven_bits_take_more_bytes() {
        assert_eq!(Message::default().number(1, 300).0, [0x08, 0xac, 0x02]);
        assert_eq!(Message::default().number(1, 0).bytes(2, b"").0, [0_u8; 0]);
        let delay = Duration::from_millis(1_500);
        assert_eq!(retry_info(delay), [0x0a, 0x08, 0x08, 0x01, 0x10, 0x80, 0xca, 0xb5, 0xee, 0x01]);
    }
}
