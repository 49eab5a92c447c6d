//! Any list of hops leads to an address, and nobody can move it by what he writes before it.
#![no_main]

use http::{HeaderMap, HeaderName, HeaderValue, header};
use libfuzzer_sys::fuzz_target;
use tidegate_proxy::fuzzing::{PEER, client_address, trusts};

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

// A letter for the field, and its lines.
fuzz_target!(|given: (u8, &[u8])| {
    let (field, text) = given;
    let is_forwarded = field == b'f';
    let name = if is_forwarded { header::FORWARDED } else { X_FORWARDED_FOR };
    let lines = text.split(|byte| *byte == b'\n').map(HeaderValue::from_bytes);
    let Ok(lines) = lines.collect::<Result<Vec<_>, _>>() else { return };
    let found = |lines: &[HeaderValue]| {
        let fields = lines.iter().map(|line| (name.clone(), line.clone()));
        client_address(is_forwarded, &fields.collect::<HeaderMap>())
    };
    assert_eq!(found(&[]), PEER);
    let without_first = found(&lines[1..]);
    if !trusts(without_first) {
        assert_eq!(found(&lines), without_first, "what stands left of a caller is not believed");
    }
});
