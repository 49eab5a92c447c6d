//! Until when a certificate is valid.
//!
//! Of a certificate (RFC 5280, in DER) only the way to its end is read: every element is a tag, a length and so many
//! bytes, and what is not on the way is passed over.
//!
//! ```text
//! Certificate ──> TBSCertificate: [0] version?  serial  algorithm  issuer ──> Validity: not before ──> not after
//! ```

use tidegate_core::WallTime;
use tidegate_policy::record::read_time;

const SEQUENCE: u8 = 0x30;
const VERSION: u8 = 0xa0;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;

/// When a certificate expires; none if that cannot be read, or is beyond the times we count, as "never" is.
pub(super) fn of(certificate: &[u8]) -> Option<WallTime> {
    let certificate = Element::first(certificate)?.within(SEQUENCE)?;
    let mut rest = Element::first(certificate)?.within(SEQUENCE)?;
    if Element::first(rest)?.tag == VERSION {
        rest = Element::first(rest)?.rest;
    }
    // The serial number, the algorithm of the signature, the issuer.
    for _ in 0..3 {
        rest = Element::first(rest)?.rest;
    }
    let validity = Element::first(rest)?.within(SEQUENCE)?;
    let not_after = Element::first(Element::first(validity)?.rest)?;
    time(not_after.tag, std::str::from_utf8(not_after.content).ok()?)
}

/// `491231235959Z`, whose year is 2049, as 50 is 1950; or `20501231235959Z`.
fn time(tag: u8, text: &str) -> Option<WallTime> {
    let long = match tag {
        UTC_TIME => format!("{}{text}", if text.get(..2)? < "50" { "20" } else { "19" }),
        GENERALIZED_TIME => text.to_owned(),
        _ => return None,
    };
    let digits = long.strip_suffix('Z').filter(|digits| digits.len() == 14)?;
    let part = |from: usize, to: usize| digits.get(from..to);
    let date = format!("{}-{}-{}", part(0, 4)?, part(4, 6)?, part(6, 8)?);
    read_time(&format!("{date}T{}:{}:{}Z", part(8, 10)?, part(10, 12)?, part(12, 14)?))
}

struct Element<'a> {
    tag: u8,
    content: &'a [u8],
    /// What follows it.
    rest: &'a [u8],
}

impl<'a> Element<'a> {
    /// The element that some bytes begin with.
    fn first(bytes: &'a [u8]) -> Option<Self> {
        let (&tag, bytes) = bytes.split_first()?;
        let (&length, bytes) = bytes.split_first()?;
        let (length, bytes) = match length {
            0..=0x7f => (usize::from(length), bytes),
            // So many bytes of length follow.
            0x81..=0x84 => {
                let (length, bytes) = bytes.split_at_checked(usize::from(length & 0x7f))?;
                (length.iter().fold(0, |length, byte| length << 8 | usize::from(*byte)), bytes)
            }
            _ => return None,
        };
        let (content, rest) = bytes.split_at_checked(length)?;
        Some(Self { tag, content, rest })
    }

    fn within(self, tag: u8) -> Option<&'a [u8]> {
        (self.tag == tag).then_some(self.content)
    }
}

#[cfg(test)]
mod tests {
    use tidegate_policy::record::time_text;

    use super::*;

    fn wrapped(tag: u8, content: &[u8]) -> Vec<u8> {
        let length = u8::try_from(content.len()).unwrap();
        if length < 0x80 {
            [&[tag, length], content].concat()
        } else {
            [&[tag, 0x81, length], content].concat()
        }
    }

    fn certificate(version: &[u8], (tag, not_after): (u8, &str)) -> Vec<u8> {
        let validity = [wrapped(UTC_TIME, b"200101000000Z"), wrapped(tag, not_after.as_bytes())].concat();
        let to_be_signed = [
            version,
            &wrapped(2, &[1; 20]),
            &wrapped(SEQUENCE, &[6, 1, 1]),
            &wrapped(SEQUENCE, &[5; 150]),
            &wrapped(SEQUENCE, &validity),
            &[9; 7],
        ];
        wrapped(SEQUENCE, &wrapped(SEQUENCE, &to_be_signed.concat()))
    }

    #[test]
    fn the_end_is_read_in_both_spellings_of_time() {
        for (tag, written, read) in [
            (UTC_TIME, "491231235959Z", Some("2049-12-31T23:59:59Z")),
            (UTC_TIME, "991231235959Z", Some("1999-12-31T23:59:59Z")),
            (GENERALIZED_TIME, "20500101000000Z", Some("2050-01-01T00:00:00Z")),
            (GENERALIZED_TIME, "99991231235959Z", None),
            (GENERALIZED_TIME, "20501301000000Z", None),
            (UTC_TIME, "4912312359Z", None),
            (4, "20500101000000Z", None),
        ] {
            for version in [&[][..], &[VERSION, 3, 2, 1, 2]] {
                let read_back = of(&certificate(version, (tag, written))).map(time_text);
                assert_eq!(read_back.as_deref(), read, "{written}");
            }
        }
    }

    #[test]
    fn a_certificate_that_is_cut_has_no_end() {
        let whole = certificate(&[], (UTC_TIME, "491231235959Z"));
        for length in 0..whole.len() {
            assert_eq!(of(&whole[..length]), None);
        }
        assert_eq!(of(&[SEQUENCE, 0x84, 0xff, 0xff, 0xff, 0xff]), None);
    }
}
