//! The head of a request over HTTP/1: what rules see of it is what the service gets, or it does not go on.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tidegate_proxy::fuzzing::seen_over_http1;

// Whether the peer is trusted, and the head.
fuzz_target!(|given: (bool, &[u8])| {
    let (is_trusted, bytes) = given;
    if let Some(sight) = seen_over_http1(bytes, is_trusted) {
        sight.assert_whole();
    }
});
