//! What operators may write as a caller's identity.
//!
//! Strangers choose what they send; but an identity that an operator writes is read by others in tables, logs and
//! answers, so it must be what it looks like. A caller whose key is none is named by its fingerprint.

use crate::escape::{escaped, is_hidden};

/// The longest identity, in bytes.
pub const LONGEST_IDENTITY: usize = 256;

/// What keeps a text from being an identity; none when nothing does.
#[must_use]
pub fn identity_fault(identity: &str) -> Option<String> {
    if identity.is_empty() {
        return Some("is empty".to_owned());
    }
    if identity.len() > LONGEST_IDENTITY {
        return Some(format!("has {} bytes, more than {LONGEST_IDENTITY}", identity.len()));
    }
    let hidden = identity.chars().find(|character| is_hidden(*character))?;
    Some(format!(
        "has the character `{}`, which is not seen as itself",
        escaped(hidden.encode_utf8(&mut [0; 4]))
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identity_is_what_it_looks_like() {
        for fine in ["acct_1", "ü…", "2001:db8::/64", "a b", &"x".repeat(256)] {
            assert_eq!(identity_fault(fine), None, "{fine}");
        }
        for (odd, fault) in [
            ("", "is empty"),
            ("a\u{9b}b", "has the character `\\u009b`, which is not seen as itself"),
            ("a\u{202e}b", "has the character `\\u202e`, which is not seen as itself"),
            ("a\nb", "has the character `\\u000a`, which is not seen as itself"),
            (&"x".repeat(257), "has 257 bytes, more than 256"),
        ] {
            assert_eq!(identity_fault(odd).as_deref(), Some(fault), "{odd}");
        }
    }
}
