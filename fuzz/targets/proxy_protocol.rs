//! Any bytes begin with a header of the PROXY protocol or not, and what follows it makes no difference. An address it
//! names is the same one in the first version.
#![no_main]

use std::net::SocketAddr;

use libfuzzer_sys::fuzz_target;
use tidegate_proxy::fuzzing::proxy_protocol;

fuzz_target!(|bytes: &[u8]| {
    let Ok((found, length)) = proxy_protocol(bytes) else { return };
    let header = &bytes[..length];
    assert_eq!(proxy_protocol(header).ok(), Some((found, length)), "it ends where it says");
    assert!(proxy_protocol(&header[..length - 1]).is_err(), "less of it is nothing");
    if let Some(named) = found {
        let line = first_version(named);
        assert_eq!(proxy_protocol(line.as_bytes()).ok(), Some((found, line.len())), "{line:?}");
    }
});

fn first_version(named: SocketAddr) -> String {
    let (family, ip) = (if named.is_ipv4() { "TCP4" } else { "TCP6" }, named.ip());
    format!("PROXY {family} {ip} {ip} {port} {port}\r\n", port = named.port())
}
