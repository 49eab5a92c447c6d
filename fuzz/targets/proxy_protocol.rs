//! Any bytes begin with a header of the PROXY protocol or not, and what follows it makes no difference.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tidegate_proxy::fuzzing::proxy_protocol;

fuzz_target!(|bytes: &[u8]| {
    let Ok((found, length)) = proxy_protocol(bytes) else { return };
    let header = &bytes[..length];
    assert_eq!(proxy_protocol(header).ok(), Some((found, length)), "it ends where it says");
    assert!(proxy_protocol(&header[..length - 1]).is_err(), "less of it is nothing");
});
