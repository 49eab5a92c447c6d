//! Any bytes on an HTTP/1 connection, cut anywhere: what the parser takes for a request was seen before it, and sound.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tidegate_proxy::fuzzing::{follow, served};

fuzz_target!(|given: (u8, &[u8])| {
    let (piece, bytes) = given;
    let piece = usize::from(piece);
    let followed = follow(bytes, bytes.len());
    assert_eq!(follow(bytes, piece), followed, "cuts make no difference");
    // Served before a flaw has come are only requests before the one it is in.
    let sound = followed.unsound.map_or(followed.heads, |unsound| unsound - 1);
    for piece in [piece, bytes.len()] {
        let served = served(bytes, piece);
        assert!(served <= sound, "{served} requests were served, {followed:?}");
    }
});
