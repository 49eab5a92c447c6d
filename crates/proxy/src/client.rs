//! For whom a request is sent.
//!
//! A peer that is not among the trusted proxies speaks for itself, whatever it writes. A trusted one says for whom in
//! `X-Forwarded-For` or in `Forwarded`, never in both: the policy names one. Every proxy on the way adds whom it
//! heard from at the right end, so the list is read from there, and the first address that is not one of ours is the
//! caller; what stands left of it, the caller may have invented.
//!
//! ```text
//! X-Forwarded-For: 6.6.6.6, 203.0.113.7, 10.0.0.2        from 10.0.0.1, trusted: 10.0.0.0/8
//!                  invented  the caller   ours
//! ```

use std::net::{IpAddr, SocketAddr};

use http::{HeaderMap, HeaderName, HeaderValue, header};
use tidegate_policy::policy::{ClientAddress, Server};

/// The field of `X-Forwarded-For`.
pub(crate) const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// The address of whoever a trusted peer forwards for.
pub(crate) fn forwarded_for(server: &Server, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
    match server.client_address {
        ClientAddress::XForwardedFor => walk(server, peer, headers.get_all(X_FORWARDED_FOR), |hop| hop),
        ClientAddress::Forwarded => walk(server, peer, headers.get_all(header::FORWARDED), for_of),
        ClientAddress::ProxyProtocol => peer,
    }
}

/// From right to left over all lines. What cannot be read ends the walk at the last hop that could.
fn walk(
    server: &Server,
    peer: IpAddr,
    lines: header::GetAll<'_, HeaderValue>,
    node: fn(&str) -> &str,
) -> IpAddr {
    let mut last = peer;
    let lines: Vec<&HeaderValue> = lines.iter().collect();
    for line in lines.into_iter().rev() {
        let Ok(line) = line.to_str() else { return last };
        for hop in line.rsplit(',') {
            let Some(address) = address_of(node(hop.trim())) else { return last };
            last = address;
            if !server.trusts(address) {
                return last;
            }
        }
    }
    last
}

/// The `for` of one element of `Forwarded`.
fn for_of(element: &str) -> &str {
    let pairs = element.split(';').filter_map(|pair| pair.trim().split_once('='));
    let mut nodes = pairs.filter(|(name, _)| name.trim().eq_ignore_ascii_case("for"));
    nodes.next().map_or("", |(_, node)| node.trim().trim_matches('"'))
}

/// An address, with or without brackets and port.
fn address_of(text: &str) -> Option<IpAddr> {
    if let Ok(address) = text.parse::<IpAddr>() {
        return Some(address.to_canonical());
    }
    if let Ok(address) = text.parse::<SocketAddr>() {
        return Some(address.ip().to_canonical());
    }
    let inner = text.strip_prefix('[')?.strip_suffix(']')?;
    inner.parse::<IpAddr>().ok().map(|address| address.to_canonical())
}

/// What a peer is called in the field we add.
pub(crate) fn node(peer: IpAddr) -> String {
    match peer {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => format!("\"[{address}]\""),
    }
}

#[cfg(test)]
mod tests {
    use tidegate_policy::policy::Network;

    use super::*;

    fn server(client_address: ClientAddress) -> Server {
        let trusted_proxies =
            vec![Network::of([10, 0, 0, 0].into(), 8), Network::of("fd00::".parse().unwrap(), 8)];
        Server { trusted_proxies, client_address, ..Server::default() }
    }

    fn found(client_address: ClientAddress, name: &HeaderName, lines: &[&str]) -> String {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(name, line.parse().unwrap());
        }
        forwarded_for(&server(client_address), [10, 0, 0, 1].into(), &headers).to_string()
    }

    #[test]
    fn the_first_stranger_from_the_right_is_the_caller() {
        for (lines, caller) in [
            (&["6.6.6.6, 203.0.113.7, 10.0.0.2"][..], "203.0.113.7"),
            (&["6.6.6.6", "203.0.113.7", "10.0.0.2"], "203.0.113.7"),
            (&["10.0.0.3, 10.0.0.2"], "10.0.0.3"),
            (&[], "10.0.0.1"),
            (&["203.0.113.7, nonsense, 10.0.0.2"], "10.0.0.2"),
            (&["203.0.113.7,"], "10.0.0.1"),
            (&["203.0.113.7:1234"], "203.0.113.7"),
            (&["::ffff:203.0.113.7"], "203.0.113.7"),
            (&["[2001:db8::1]:443, fd00::1"], "2001:db8::1"),
        ] {
            assert_eq!(found(ClientAddress::XForwardedFor, &X_FORWARDED_FOR, lines), caller, "{lines:?}");
        }
    }

    #[test]
    fn forwarded_is_read_the_same_way() {
        for (lines, caller) in [
            (
                &["for=6.6.6.6, for=203.0.113.7;proto=https;by=10.0.0.2, For=\"10.0.0.2:80\""][..],
                "203.0.113.7",
            ),
            (&["for=\"[2001:db8::1]:4711\""], "2001:db8::1"),
            (&["for=_hidden, for=10.0.0.2"], "10.0.0.2"),
            (&["proto=https"], "10.0.0.1"),
        ] {
            assert_eq!(found(ClientAddress::Forwarded, &header::FORWARDED, lines), caller, "{lines:?}");
        }
    }

    #[test]
    fn only_the_named_field_is_read() {
        assert_eq!(found(ClientAddress::Forwarded, &X_FORWARDED_FOR, &["203.0.113.7"]), "10.0.0.1");
        assert_eq!(found(ClientAddress::ProxyProtocol, &X_FORWARDED_FOR, &["203.0.113.7"]), "10.0.0.1");
    }
}
