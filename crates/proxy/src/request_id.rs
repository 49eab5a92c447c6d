//! What a request is called on its whole way.
//!
//! A trusted peer's word stands, so that one number leads through the logs of all who were on the way. A stranger's does
//! not: it could choose what is found under the number of another request. Then the decision's number is taken, under which
//! the gate knows the request anyway.

use http::{HeaderMap, HeaderName, HeaderValue};
use tidegate_policy::{DecisionId, Headers};

/// Where it stands.
const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The most characters of one that is believed.
const LONGEST: usize = 128;

/// The number that a trusted peer gave a request, if it is one.
fn given(value: &[u8]) -> Option<&str> {
    let is_one = (1..=LONGEST).contains(&value.len()) && value.iter().all(u8::is_ascii_graphic);
    if is_one { std::str::from_utf8(value).ok() } else { None }
}

/// What a request is called in its record.
pub(crate) fn of(headers: &dyn Headers, is_trusted: bool, id: DecisionId) -> String {
    let field = headers.find(X_REQUEST_ID.as_str()).filter(|field| is_trusted && !field.is_repeated);
    field.and_then(|field| given(field.first)).map_or_else(|| id.to_string(), str::to_owned)
}

/// Tells the upstream what the request is called.
pub(crate) fn tell(headers: &mut HeaderMap, is_trusted: bool, id: DecisionId) {
    if is_trusted && is_given(headers) {
        return;
    }
    if let Ok(value) = HeaderValue::from_bytes(&id.digits()) {
        headers.insert(X_REQUEST_ID, value);
    }
}

fn is_given(headers: &HeaderMap) -> bool {
    let mut lines = headers.get_all(X_REQUEST_ID).iter();
    let first = lines.next();
    lines.next().is_none() && first.is_some_and(|value| given(value.as_bytes()).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_number_of_visible_characters_is_believed_from_trusted_peers() {
        let id: DecisionId = "00c0ffee00c0ffee".parse().unwrap();
        let long = "a".repeat(LONGEST);
        let too_long = "a".repeat(LONGEST + 1);
        for (lines, is_believed) in [
            (&["req-1"][..], true),
            (&[&long], true),
            (&[&too_long], false),
            (&["a b"], false),
            (&[""], false),
            (&["one", "two"], false),
            (&[], false),
        ] {
            let fields: Vec<_> =
                lines.iter().map(|line| ("X-Request-Id".to_owned(), (*line).to_owned())).collect();
            let mut headers = HeaderMap::new();
            for line in lines {
                headers.append(X_REQUEST_ID, HeaderValue::from_str(line).unwrap());
            }
            let made = id.to_string();
            let expected = if is_believed { lines[0] } else { &made };
            assert_eq!(of(&fields, true, id), expected);
            assert_eq!(of(&fields, false, id), made, "a stranger is not believed");
            let mut strange = headers.clone();
            tell(&mut headers, true, id);
            assert_eq!(headers.get_all(X_REQUEST_ID).iter().collect::<Vec<_>>(), [expected]);
            tell(&mut strange, false, id);
            assert_eq!(strange.get_all(X_REQUEST_ID).iter().collect::<Vec<_>>(), [&made]);
        }
    }
}
