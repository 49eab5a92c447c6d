//! Where something is: addresses to listen on, endpoints, networks.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use super::refused;
use crate::policy::{Endpoint, Network};
use crate::problem::Code;
use crate::quantity::Unreadable;

pub(super) fn address(written: &str) -> Result<SocketAddr, Unreadable> {
    if let Ok(address) = written.parse() {
        return Ok(address);
    }
    let (host, port) = written.rsplit_once(':').unwrap_or(("", written));
    let help = match (host, port.parse::<u16>()) {
        ("" | "*", Ok(port)) => {
            format!(
                "write \"0.0.0.0:{port}\" for all addresses, or \"127.0.0.1:{port}\" for this machine only"
            )
        }
        ("localhost", Ok(port)) => format!("write \"127.0.0.1:{port}\""),
        (_, Ok(port)) => format!("write an IP address and a port: \"0.0.0.0:{port}\""),
        (_, Err(_)) => "write an IP address and a port: \"0.0.0.0:8080\"".to_owned(),
    };
    refused(Code::BadAddress, written, "is not an IP address and a port", help)
}

pub(super) fn endpoint(written: &str) -> Result<Endpoint, Unreadable> {
    let example = "write scheme, host and port: \"http://127.0.0.1:3000\"";
    let Some((scheme, rest)) = written.split_once("://") else {
        let is_authority = written.contains(['.', ':']) && !written.contains([' ', '/']);
        let help = if is_authority { format!("write \"http://{written}\"") } else { example.to_owned() };
        return refused(Code::BadUrl, written, "has no scheme", help);
    };
    let is_tls = match scheme {
        "http" => false,
        "https" => true,
        _ => return refused(Code::BadUrl, written, "is neither http nor https", example),
    };
    let authority = rest.strip_suffix('/').unwrap_or(rest);
    if let Some((authority, _)) = authority.split_once(['/', '?', '#']) {
        let help = format!("requests keep their own path: write \"{scheme}://{authority}\"");
        return refused(Code::BadUrl, written, "has a path", help);
    }
    match authority_of(authority) {
        Some((host, port)) => Ok(Endpoint::new(is_tls, host, port)),
        None => refused(Code::BadUrl, written, "has no host, or one that cannot be", example),
    }
}

/// Host and port of `host`, `host:port`, `[::1]:port`.
fn authority_of(text: &str) -> Option<(&str, Option<u16>)> {
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => {
            (host, Some(port.parse::<u16>().ok().filter(|port| *port > 0)?))
        }
        _ => (text, None),
    };
    match host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
        Some(address) => address.parse::<Ipv6Addr>().is_ok().then_some((address, port)),
        None => is_host(host).then_some((host, port)),
    }
}

pub(super) fn is_host(host: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
    !host.is_empty() && host.len() <= 253 && host.bytes().all(allowed)
}

/// An address, or one with the number of bits that others of its network share with it.
pub(super) fn network(written: &str) -> Result<Network, Unreadable> {
    let example = "write an IP address or a network: \"192.0.2.7\", \"10.0.0.0/8\", \"2001:db8::/32\"";
    let (address, prefix) = match written.split_once('/') {
        Some((address, prefix)) => (address, Some(prefix)),
        None => (written, None),
    };
    let Ok(address) = address.parse::<IpAddr>() else {
        return refused(Code::BadNetwork, written, "is neither an IP address nor a network", example);
    };
    let bits: u8 = if address.is_ipv4() { 32 } else { 128 };
    let is_number = |text: &&str| text.bytes().all(|byte| byte.is_ascii_digit());
    let prefix = match prefix {
        None => Some(bits),
        Some(prefix) => Some(prefix).filter(is_number).and_then(|prefix| prefix.parse().ok()),
    };
    let Some(prefix) = prefix.filter(|prefix| *prefix <= bits) else {
        let help = format!("write a number from 0 to {bits} after the slash");
        return refused(Code::BadNetwork, written, "has a prefix that cannot be", help);
    };
    if address != address.to_canonical() {
        let help = format!("write the IPv4 address: \"{}\"", address.to_canonical());
        return refused(Code::BadNetwork, written, "is IPv4 spelt as IPv6", help);
    }
    let network = Network::of(address, prefix);
    if network.address != address {
        let help = format!("write \"{network}\" for the network, or \"{address}\" for the address alone");
        return refused(Code::BadNetwork, written, "has bits beyond its prefix", help);
    }
    Ok(network)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_have_the_usual_port_unless_told() {
        let read = |text: &str| {
            let endpoint = endpoint(text).unwrap();
            (endpoint.host.clone(), endpoint.port, endpoint.authority.clone(), endpoint.to_string())
        };
        let expected = |host: &str, port, authority: &str, url: &str| {
            (host.to_owned(), port, authority.to_owned(), url.to_owned())
        };
        assert_eq!(read("http://Orders"), expected("orders", 80, "orders", "http://orders"));
        assert_eq!(read("https://a.b/"), expected("a.b", 443, "a.b", "https://a.b"));
        assert_eq!(read("http://a:443"), expected("a", 443, "a:443", "http://a:443"));
        assert_eq!(read("http://[::1]:3000"), expected("::1", 3000, "[::1]:3000", "http://[::1]:3000"));
        assert_eq!(read("https://[::1]"), expected("::1", 443, "[::1]", "https://[::1]"));
    }

    #[test]
    fn what_is_no_endpoint_says_why() {
        for (text, why) in [
            ("orders:80", "`orders:80` has no scheme"),
            ("ftp://orders", "`ftp://orders` is neither http nor https"),
            ("http://orders/v1", "`http://orders/v1` has a path"),
            ("http://", "`http://` has no host, or one that cannot be"),
            ("http://:80", "`http://:80` has no host, or one that cannot be"),
            ("http://a:0", "`http://a:0` has no host, or one that cannot be"),
            ("http://user@a", "`http://user@a` has no host, or one that cannot be"),
            ("http://::1", "`http://::1` has no host, or one that cannot be"),
        ] {
            assert_eq!(endpoint(text).unwrap_err().message, why);
        }
    }

    #[test]
    fn a_network_says_which_bits_count() {
        let shown = |text: &str| network(text).map(|network| network.to_string());
        assert_eq!(shown("10.0.0.0/8").as_deref(), Ok("10.0.0.0/8"));
        assert_eq!(shown("192.0.2.7").as_deref(), Ok("192.0.2.7/32"));
        assert_eq!(shown("2001:db8::/32").as_deref(), Ok("2001:db8::/32"));
        assert_eq!(shown("::/0").as_deref(), Ok("::/0"));
        let why = |text: &str| network(text).unwrap_err();
        let bits = why("10.1.2.3/8");
        assert_eq!(bits.message, "`10.1.2.3/8` has bits beyond its prefix");
        assert_eq!(bits.help, "write \"10.0.0.0/8\" for the network, or \"10.1.2.3\" for the address alone");
        assert_eq!(why("10.0.0.0/33").help, "write a number from 0 to 32 after the slash");
        assert_eq!(why("10.0.0.0/+8").message, "`10.0.0.0/+8` has a prefix that cannot be");
        assert_eq!(why("10.0.0.0/").message, "`10.0.0.0/` has a prefix that cannot be");
        assert_eq!(why("::ffff:10.0.0.1").help, "write the IPv4 address: \"10.0.0.1\"");
        assert_eq!(why("proxy").message, "`proxy` is neither an IP address nor a network");
    }
}
