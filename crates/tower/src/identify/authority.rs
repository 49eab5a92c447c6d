//! The host a request is for, in the one spelling in which it is routed, counted and sent on.
//!
//! | written           | read as       | because |
//! |-------------------|---------------|---------|
//! | `API.Example`     | `api.example` | names have no case |
//! | `api.example.`    | `api.example` | the dot is for resolvers |
//! | `api.example:`    | `api.example` | no port is no port |
//! | `[0:0::1]:80`     | `[::1]:80`    | an address has one shortest form |
//! | `a..b`, `a:0x50`, `a:99999`, `a/b`, `é`, nothing | no host | services differ in what they make of it |

use std::borrow::Cow;
use std::net::Ipv6Addr;

/// The longest name that DNS knows, with the dot at its end.
const LONGEST: usize = 254;

/// What stands in a name as it is routed; other letters and signs are looked at more closely.
const fn is_plain(byte: u8) -> bool {
    matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_')
}

/// A host with or without a port, in its one spelling; none if it is no host. Nearly all are spelt so and are borrowed.
#[must_use]
pub fn canonical(written: &[u8]) -> Option<Cow<'_, str>> {
    if is_plain_name(written) {
        return str::from_utf8(written).ok().map(Cow::Borrowed);
    }
    let text = str::from_utf8(written).ok().filter(|text| text.is_ascii())?;
    let (host, port) = split(text)?;
    let port = match port {
        None | Some("") => "",
        Some(port) if is_port(port) => text.get(host.len()..)?,
        Some(_) => return None,
    };
    if let Some(inner) = host.strip_prefix('[') {
        let address: Ipv6Addr = inner.strip_suffix(']')?.parse().ok()?;
        let canonical = format!("[{address}]{port}");
        return Some(if canonical == text { Cow::Borrowed(text) } else { Cow::Owned(canonical) });
    }
    let name = host.strip_suffix('.').unwrap_or(host);
    let is_name = !name.is_empty() && host.len() <= LONGEST && !name.starts_with('.') && !name.ends_with('.');
    if !is_name || name.contains("..") {
        return None;
    }
    if name.bytes().all(is_plain) {
        // Of `a.:80` the dot is in the middle.
        let is_whole = name.len() + port.len() == text.len();
        return Some(if is_whole { Cow::Borrowed(text) } else { Cow::Owned(format!("{name}{port}")) });
    }
    let lower = name.to_ascii_lowercase();
    let is_host = lower.bytes().all(|byte| is_plain(byte) || byte == b'~');
    is_host.then(|| Cow::Owned(lower + port))
}

/// Whether it is a name without a port and in its one spelling, as nearly all are that people ask for.
fn is_plain_name(written: &[u8]) -> bool {
    let mut before = b'.';
    let has_labels = written.iter().all(|byte| {
        let is_empty_label = before == b'.' && *byte == b'.';
        before = *byte;
        is_plain(*byte) && !is_empty_label
    });
    has_labels && before != b'.' && written.len() < LONGEST
}

/// The host of an authority in its one spelling, without the port. `[::1]:80` has colons that are no port's.
#[must_use]
pub fn without_port(authority: &str) -> &str {
    split(authority).map_or(authority, |(host, _)| host)
}

/// The host, with its brackets, and what stands behind the colon.
fn split(text: &str) -> Option<(&str, Option<&str>)> {
    let end = match text.strip_prefix('[') {
        Some(_) => text.find(']')? + 1,
        None => text.find(':').unwrap_or(text.len()),
    };
    let (host, rest) = text.split_at_checked(end)?;
    match rest.strip_prefix(':') {
        Some(port) => Some((host, Some(port))),
        None if rest.is_empty() => Some((host, None)),
        None => None,
    }
}

/// Digits that are a port, spelt in one way.
fn is_port(port: &str) -> bool {
    let is_spelt = port.bytes().all(|byte| byte.is_ascii_digit()) && !port.starts_with('0');
    is_spelt && port.parse::<u16>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_host_has_one_spelling_as_in_the_table() {
        for (written, read) in [
            ("api.example", "api.example"),
            ("API.Example", "api.example"),
            ("api.example.", "api.example"),
            ("Api.Example.:8080", "api.example:8080"),
            ("api.example.:8080", "api.example:8080"),
            ("api.example:", "api.example"),
            ("api.example.:", "api.example"),
            ("127.0.0.1:80", "127.0.0.1:80"),
            ("[0:0::1]:80", "[::1]:80"),
            ("[::1]", "[::1]"),
            ("[2001:DB8::A]:", "[2001:db8::a]"),
            ("a_b-c", "a_b-c"),
        ] {
            assert_eq!(canonical(written.as_bytes()).as_deref(), Some(read), "{written}");
            assert_eq!(canonical(read.as_bytes()).as_deref(), Some(read), "twice {written}");
        }
    }

    #[test]
    fn what_services_read_in_several_ways_is_no_host() {
        for written in [
            "",
            ".",
            "..",
            ":80",
            "a..",
            "a..b",
            ".a",
            "a:0x50",
            "a:99999",
            "a:080",
            "a:0",
            "a:+80",
            "a:80:80",
            "a/b",
            "a b",
            "a,b",
            "u@a",
            "a?b",
            "a#b",
            "a\\b",
            "a%2eb",
            "é",
            "[::1",
            "::1",
            "[::1]x",
            "[::1]:x",
            "[v1.a]",
            "[]",
            "[fe80::1%25en0]",
            "a\t",
            "a;b",
            "*",
        ] {
            assert_eq!(canonical(written.as_bytes()), None, "{written:?}");
        }
        assert_eq!(canonical(&[b'a'; 300]), None);
        assert_eq!(canonical(b"\xff"), None);
    }

    #[test]
    fn what_is_canonical_is_borrowed() {
        for written in ["api.example", "api.example:8080", "[::1]:80", "127.0.0.1"] {
            assert!(matches!(canonical(written.as_bytes()), Some(Cow::Borrowed(_))), "{written}");
        }
    }

    #[test]
    fn a_port_is_not_the_host() {
        for (authority, host) in
            [("a:80", "a"), ("a", "a"), ("[::1]:80", "[::1]"), ("[::1]", "[::1]"), ("", "")]
        {
            assert_eq!(without_port(authority), host);
        }
    }
}
