//! Any fields: what is meant for one hop only ends here, and what every message needs stays.
#![no_main]

use http::{HeaderMap, HeaderName, HeaderValue, header};
use libfuzzer_sys::fuzz_target;
use tidegate_proxy::fuzzing::{strip, upgrade_of};

// A field a line, as in a message.
fuzz_target!(|text: &[u8]| {
    let fields = text.split(|byte| *byte == b'\n').filter_map(|line| {
        let colon = line.iter().position(|byte| *byte == b':')?;
        let (name, value) =
            (HeaderName::from_bytes(&line[..colon]), HeaderValue::from_bytes(&line[colon + 1..]));
        name.ok().zip(value.ok())
    });
    let mut headers = HeaderMap::new();
    for (name, value) in fields {
        headers.append(name, value);
    }
    let is_upgrade = upgrade_of(&headers).is_some();
    let mut stripped = headers.clone();
    strip(&mut stripped, is_upgrade);
    for name in ["transfer-encoding", "keep-alive", "proxy-connection"] {
        assert!(!stripped.contains_key(name), "{name} is sent on");
    }
    assert_eq!(stripped.contains_key(header::CONNECTION), is_upgrade);
    let kept = |name: &HeaderName| stripped.get_all(name).iter().eq(headers.get_all(name));
    assert!(kept(&header::HOST), "the host is taken away");
    // A length beside a coding is wrong, and the one thing that is taken away for what it says.
    let is_coded = headers.contains_key(header::TRANSFER_ENCODING);
    assert!(if is_coded {
        !stripped.contains_key(header::CONTENT_LENGTH)
    } else {
        kept(&header::CONTENT_LENGTH)
    });
    for name in named(&headers) {
        assert!(!stripped.contains_key(&name), "{name} was meant for us");
    }
    let mut twice = stripped.clone();
    strip(&mut twice, is_upgrade);
    assert_eq!(twice, stripped, "once is enough");
});

/// What `Connection` names, but for words that are no fields and fields it has no say over.
fn named(headers: &HeaderMap) -> Vec<HeaderName> {
    let others = ["close", "host", "content-length", "te", "upgrade", "connection"];
    let lines = headers.get_all(header::CONNECTION).iter().filter_map(|line| line.to_str().ok());
    let names =
        lines.flat_map(|line| line.split(',')).filter_map(|name| name.trim().parse::<HeaderName>().ok());
    names.filter(|name| !others.contains(&name.as_str())).collect()
}
