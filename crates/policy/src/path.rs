//! A path as rules compare it, and as services get it.
//!
//! One resource has many spellings, and a rule that knows only one of them can be walked around. So all spellings
//! become one, and where a policy looks at paths, a gateway sends on what was compared.
//!
//! | sent                | compared as     | because |
//! |---------------------|-----------------|---------|
//! | `/v1//orders`       | `/v1/orders`    | empty segments mean nothing to most services |
//! | `/v1/./a/../orders` | `/v1/orders`    | dots are resolved, never above the root |
//! | `/v1/%6frders`      | `/v1/orders`    | an escaped letter is that letter |
//! | `/v1/a%3Ab`         | `/v1/a:b`       | so is a sign that needs no escape |
//! | `/v1/a%20b`         | `/v1/a%20b`     | what must be escaped stays escaped, with capital digits |
//! | `/v1/a{b`           | `/v1/a%7Bb`     | and what should have been is |
//! | `/v1/a%2Fb`         | *unclear*       | some services see one segment here, some two |
//! | `/v1/a\b`           | *unclear*       | the same |
//! | `/v1/50%`           | *unclear*       | an escape is broken off; decoded twice it could become another |
//!
//! What is unclear can be read in two ways, so it cannot be matched safely. A semicolon can, too: to some services it
//! begins parameters of its segment, to others it is a letter. [`without_parameters`] is the other reading.

use std::borrow::Cow;

/// A path for matching.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Canonical<'a> {
    /// As rules compare it.
    pub path: Cow<'a, str>,
    /// Why services may read it in two ways, if they may.
    pub unclear: Option<&'static str>,
}

/// The path as rules compare it. Nearly all paths are so already and are borrowed.
#[must_use]
pub fn canonical(path: &str) -> Canonical<'_> {
    if is_canonical(path) {
        return Canonical { path: Cow::Borrowed(path), unclear: None };
    }
    let (decoded, unclear) = decode(path);
    Canonical { path: Cow::Owned(resolve(&decoded)), unclear }
}

/// Whether it is certainly compared as it is; a few that are, with names that begin with a dot, are looked at more
/// closely.
fn is_canonical(path: &str) -> bool {
    let mut before = 0;
    let is_plain = path.bytes().all(|byte| {
        let is_in_doubt = before == b'/' && matches!(byte, b'/' | b'.');
        before = byte;
        PLAIN[usize::from(byte)] && !is_in_doubt
    });
    is_plain && path.starts_with('/')
}

/// What stands unescaped in a path and means itself (RFC 3986 §3.3); a slash, and a semicolon.
const PLAIN: [bool; 256] =
    members(b"/;+ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~!$&'()*,:=@");

/// What an escape stands for itself: the same, but for what separates or may separate, and `+`, which some services
/// read as a space where it is not escaped.
const UNESCAPED: [bool; 256] =
    members(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~!$&'()*,:=@");

const fn members(bytes: &[u8]) -> [bool; 256] {
    let (mut are_members, mut place) = ([false; 256], 0);
    while place < bytes.len() {
        are_members[bytes[place] as usize] = true;
        place += 1;
    }
    are_members
}

const ESCAPED: &str = "the path has an escaped slash, backslash or NUL";
const BACKSLASH: &str = "the path has a backslash";
const HALF: &str = "the path has half an escape";

/// Unescapes what needs no escaping and escapes what does; says why services may read it in two ways.
fn decode(path: &str) -> (String, Option<&'static str>) {
    let mut decoded = String::with_capacity(path.len());
    let mut unclear = None;
    let mut rest = path.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        rest = behind;
        match (*first, escaped(behind)) {
            (b'%', Some(byte)) => {
                rest = behind.get(2..).unwrap_or_default();
                if matches!(byte, b'/' | b'\\' | 0) {
                    unclear = unclear.or(Some(ESCAPED));
                }
                push(&mut decoded, byte, UNESCAPED[usize::from(byte)]);
            }
            (b'%', None) => {
                unclear = unclear.or(Some(HALF));
                decoded.push('%');
            }
            (byte, _) => {
                if byte == b'\\' {
                    unclear = unclear.or(Some(BACKSLASH));
                }
                push(&mut decoded, byte, PLAIN[usize::from(byte)] || byte == b'\\');
            }
        }
    }
    (decoded, unclear)
}

/// The byte whose escape begins with these digits.
fn escaped(digits: &[u8]) -> Option<u8> {
    let digit = |place: usize| char::from(*digits.get(place)?).to_digit(16);
    u8::try_from(digit(0)? << 4 | digit(1)?).ok()
}

fn push(decoded: &mut String, byte: u8, is_itself: bool) {
    if is_itself {
        decoded.push(char::from(byte));
        return;
    }
    decoded.push('%');
    for digit in [byte >> 4, byte & 15] {
        decoded.push(char::from(b"0123456789ABCDEF"[usize::from(digit)]));
    }
}

/// Without empty segments and dots. A slash at the end stays.
fn resolve(path: &str) -> String {
    let mut segments: Vec<&str> = Vec::new();
    for segment in path.split('/') {
        match segment {
            "" | "." => {}
            ".." => {
                segments.pop();
            }
            segment => segments.push(segment),
        }
    }
    let is_directory = !segments.is_empty() && ["/", "/.", "/.."].iter().any(|end| path.ends_with(end));
    let mut resolved = String::with_capacity(path.len() + 1);
    for segment in &segments {
        resolved.push('/');
        resolved.push_str(segment);
    }
    if is_directory || segments.is_empty() {
        resolved.push('/');
    }
    resolved
}

/// A path as services read it to whom a semicolon begins parameters; none where there is no semicolon.
#[must_use]
pub fn without_parameters(path: &str) -> Option<String> {
    if !path.contains(';') {
        return None;
    }
    let bare = path.split('/').map(|segment| segment.split(';').next().unwrap_or_default());
    Some(resolve(&bare.collect::<Vec<_>>().join("/")))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(path: &str) -> (String, bool) {
        let Canonical { path, unclear } = canonical(path);
        (path.into_owned(), unclear.is_some())
    }

    #[test]
    fn all_spellings_become_one_as_in_the_table() {
        for (sent, compared) in [
            ("/v1//orders", "/v1/orders"),
            ("/v1/./a/../orders", "/v1/orders"),
            ("/v1/%6frders", "/v1/orders"),
            ("/v1/a%3Ab", "/v1/a:b"),
            ("/v1/a%2c%40b", "/v1/a,@b"),
            ("/v1/a%20b", "/v1/a%20b"),
            ("/v1/%c3%a9", "/v1/%C3%A9"),
            ("/v1/é", "/v1/%C3%A9"),
            ("/v1/a{b", "/v1/a%7Bb"),
            ("/v1/a%3bb+%2b", "/v1/a%3Bb+%2B"),
            ("/v1/%2541", "/v1/%2541"),
            ("/v1/orders/", "/v1/orders/"),
            ("/v1/orders/..", "/v1/"),
            ("/../../etc", "/etc"),
            ("/%2e%2e/etc", "/etc"),
            ("/%2E%2e/etc", "/etc"),
            ("/%2E/a/%2e%2e/", "/"),
            ("/v1/.well-known", "/v1/.well-known"),
            ("", "/"),
        ] {
            assert_eq!(of(sent), (compared.to_owned(), false), "{sent}");
        }
    }

    #[test]
    fn what_services_read_in_two_ways_is_unclear() {
        for (sent, compared) in [
            ("/v1/a%2fb", "/v1/a%2Fb"),
            ("/a%5cb", "/a%5Cb"),
            ("/a\\b", "/a\\b"),
            ("/a%00", "/a%00"),
            ("/50%", "/50%"),
            ("/%zz%4", "/%zz%4"),
            ("/%%36%31", "/%61"),
        ] {
            assert_eq!(of(sent), (compared.to_owned(), true), "{sent}");
        }
    }

    #[test]
    fn a_plain_path_is_borrowed() {
        for path in ["/v1/orders", "/", "/a;b=c/d", "/v1/a:b"] {
            assert!(matches!(canonical(path).path, Cow::Borrowed(_)), "{path}");
        }
    }

    #[test]
    fn the_other_reading_of_a_semicolon_ends_segments_and_resolves_dots() {
        for (path, other) in [
            ("/a;b=c/d", "/a/d"),
            ("/admin;/x", "/admin/x"),
            ("/x/..;a/admin", "/admin"),
            ("/x/;/admin/", "/x/admin/"),
            ("/;", "/"),
        ] {
            assert_eq!(without_parameters(path).as_deref(), Some(other), "{path}");
        }
        assert_eq!(without_parameters("/a/b"), None);
    }

    proptest! {
        #[test]
        fn a_canonical_path_is_its_own(path in "(/|\\.|%2[eEfF]|%5c|%|[a-c]|;|é|%6[0-9]|%3[aAbB]|\\{){0,12}") {
            let first = of(&path);
            if !first.1 {
                prop_assert_eq!(of(&first.0), first.clone(), "{:?}", path);
                prop_assert!(first.0.starts_with('/') && first.0.is_ascii());
            }
        }
    }
}
