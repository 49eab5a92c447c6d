//! Any bytes on an HTTP/1 connection, cut anywhere: the same requests are served, and a more lenient server sees them too.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tidegate_proxy::fuzzing::{served, served_leniently};

fuzz_target!(|given: (u8, &[u8])| {
    let (piece, bytes) = given;
    let seen = served(bytes, bytes.len());
    assert_eq!(served(bytes, usize::from(piece)), seen, "cuts make no difference");
    let leniently = served_leniently(bytes, bytes.len());
    assert!(leniently.starts_with(&seen), "{seen:?} were served, others see {leniently:?}");
});
