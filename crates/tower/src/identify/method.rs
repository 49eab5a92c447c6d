//! Methods that services may take for others.
//!
//! Methods have case (RFC 9110 §9.1), and many services forget it: to them `get` is GET, and a rule for GET has not seen
//! it. So a registered method in another case is refused. One that is really unknown means the same to everybody, and
//! passes as it is.

use http::Method;

/// All methods with a meaning that is registered with IANA, but for those that [`Method`] has names for.
const REGISTERED: &[&str] = &[
    "ACL",
    "BASELINE-CONTROL",
    "BIND",
    "CHECKIN",
    "CHECKOUT",
    "COPY",
    "LABEL",
    "LINK",
    "LOCK",
    "MERGE",
    "MKACTIVITY",
    "MKCALENDAR",
    "MKCOL",
    "MKREDIRECTREF",
    "MKWORKSPACE",
    "MOVE",
    "ORDERPATCH",
    "PRI",
    "PROPFIND",
    "PROPPATCH",
    "QUERY",
    "REBIND",
    "REPORT",
    "SEARCH",
    "UNBIND",
    "UNCHECKOUT",
    "UNLINK",
    "UNLOCK",
    "UPDATE",
    "UPDATEREDIRECTREF",
    "VERSION-CONTROL",
];

/// What [`Method`] has names for.
const NAMED: &[&str] = &["GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"];

/// Whether it is a registered method in another case, which some services take for that.
#[must_use]
pub fn is_misspelt(method: &Method) -> bool {
    let written = method.as_str();
    if !written.bytes().any(|byte| byte.is_ascii_lowercase()) {
        return false;
    }
    NAMED.iter().chain(REGISTERED).any(|registered| written.eq_ignore_ascii_case(registered))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_registered_methods_in_another_case_are_misspelt() {
        for (method, is) in [
            ("GET", false),
            ("get", true),
            ("Post", true),
            ("PROPFIND", false),
            ("propfind", true),
            ("purge", false),
            ("PURGE", false),
            ("gett", false),
        ] {
            assert_eq!(is_misspelt(&Method::from_bytes(method.as_bytes()).unwrap()), is, "{method}");
        }
    }
}
