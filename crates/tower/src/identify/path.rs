//! A path as rules compare it.
//!
//! One resource has many spellings, and a rule that knows only one of them can be walked around. For
//! matching, and only for matching, all spellings become one; the service still gets what was sent.
//!
//! | sent                | compared as     | because |
//! |---------------------|-----------------|---------|
//! | `/v1//orders`       | `/v1/orders`    | empty segments mean nothing to most services |
//! | `/v1/./a/../orders` | `/v1/orders`    | dots are resolved, never above the root |
//! | `/v1/%6frders`      | `/v1/orders`    | an escaped letter is that letter |
//! | `/v1/a%20b`         | `/v1/a%20b`     | what must be escaped stays escaped, with capital digits |
//! | `/v1/a%2Fb`         | *unclear*       | some services see one segment here, some two |
//!
//! The last kind (an escaped slash, backslash or NUL) can be read in two ways, so it cannot be matched safely.

use std::borrow::Cow;

/// A path for matching.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Normal<'a> {
    pub(crate) path: Cow<'a, str>,
    /// Whether services may read it in two ways.
    pub(crate) is_unclear: bool,
}

/// The path as rules compare it. Nearly all paths are so already and are borrowed.
pub(crate) fn normal(path: &str) -> Normal<'_> {
    if path.starts_with('/') && !path.contains('%') && !path.contains("//") && !path.contains("/.") {
        return Normal { path: Cow::Borrowed(path), is_unclear: false };
    }
    let (decoded, is_unclear) = decode(path);
    Normal { path: Cow::Owned(resolve(&decoded)), is_unclear }
}

/// Unescapes what needs no escaping, and says whether a separator was escaped.
fn decode(path: &str) -> (String, bool) {
    let mut decoded = String::with_capacity(path.len());
    let mut is_unclear = false;
    let mut rest = path;
    while let Some(at) = rest.find('%') {
        let (before, escape) = rest.split_at(at);
        decoded.push_str(before);
        let digits = escape.get(1..3).filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
        let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        rest = match byte {
            Some(byte) if is_unreserved(byte) => {
                decoded.push(char::from(byte));
                &escape[3..]
            }
            Some(byte) => {
                is_unclear |= matches!(byte, b'/' | b'\\' | 0);
                decoded.push_str(&escape[..3].to_ascii_uppercase());
                &escape[3..]
            }
            None => {
                decoded.push('%');
                &escape[1..]
            }
        };
    }
    decoded.push_str(rest);
    (decoded, is_unclear)
}

/// What RFC 3986 lets stand unescaped in every place.
fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_spellings_become_one_as_in_the_table() {
        for (sent, compared) in [
            ("/v1//orders", "/v1/orders"),
            ("/v1/./a/../orders", "/v1/orders"),
            ("/v1/%6frders", "/v1/orders"),
            ("/v1/a%20b", "/v1/a%20b"),
            ("/v1/%c3%a9", "/v1/%C3%A9"),
            ("/v1/orders/", "/v1/orders/"),
            ("/v1/orders/..", "/v1/"),
            ("/../../etc", "/etc"),
            ("/%2e%2e/etc", "/etc"),
            ("/%2E/a/%2e%2e/", "/"),
            ("/50%", "/50%"),
            ("/%zz%4", "/%zz%4"),
            ("/%é", "/%é"),
            ("", "/"),
            ("*", "/*"),
        ] {
            assert_eq!(normal(sent), Normal { path: Cow::Borrowed(compared), is_unclear: false }, "{sent}");
        }
    }

    #[test]
    fn an_escaped_separator_is_unclear_and_stays_one_segment() {
        for (sent, compared) in [("/v1/a%2fb", "/v1/a%2Fb"), ("/a%5cb", "/a%5Cb"), ("/a%00", "/a%00")] {
            assert_eq!(normal(sent), Normal { path: Cow::Borrowed(compared), is_unclear: true });
        }
    }

    #[test]
    fn a_plain_path_is_borrowed() {
        assert!(matches!(normal("/v1/orders").path, Cow::Borrowed("/v1/orders")));
    }
}
