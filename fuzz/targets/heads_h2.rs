//! The fields of a request over HTTP/2: what rules see of them is what the service gets, or it does not go on.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tidegate_proxy::fuzzing::seen_over_http2;

// Whether the peer is trusted, and a field a line.
fuzz_target!(|given: (bool, &[u8])| {
    let (is_trusted, lines) = given;
    if let Some(sight) = seen_over_http2(lines, is_trusted) {
        sight.assert_whole();
    }
});
