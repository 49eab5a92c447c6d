//! For whom a request is sent, seen through a rule that gives every address one request an hour.

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::support::{Client, Gateway, H2Client, Upstream, request, until};

/// The address trusted proxies send from, and one of a stranger.
const PROXY: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);
const STRANGER: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 3);

fn start(upstream: &Upstream, server: &str) -> Gateway {
    Gateway::before(
        upstream,
        &format!(
            "[server]
            trusted_proxies = ['127.0.0.2', '10.0.0.0/8', 'fd00::/8']
            {server}
            [rule.per_address]
            key = 'client-ip'
            quota = '1/h'"
        ),
    )
}

/// Whether a request of the proxy with these fields is counted for `address`, whose one request it has taken before.
fn is_counted_for(gateway: &Gateway, fields: &[(&str, &str)], name: &str, address: &str) {
    let mut client = gateway.connect_from(PROXY);
    assert_eq!(client.get("/", &[(name, address)]).status(), 200, "{address} has been used before");
    assert_eq!(client.get("/", fields).status(), 429, "{fields:?} is not counted for {address}");
}

#[test]
fn a_stranger_speaks_for_itself_whatever_it_writes() {
    let upstream = Upstream::ok();
    let gateway = start(&upstream, "");
    let mut client = gateway.connect_from(STRANGER);
    assert_eq!(client.get("/", &[]).status(), 200);
    for fields in [[("X-Forwarded-For", "203.0.113.1")], [("Forwarded", "for=203.0.113.2")]] {
        assert_eq!(client.get("/", &fields).status(), 429, "{fields:?}");
    }
    assert_eq!(gateway.connect_from(PROXY).get("/", &[("X-Forwarded-For", "127.0.0.3")]).status(), 429);
}

#[test]
fn the_first_stranger_from_the_right_is_the_caller() {
    let upstream = Upstream::ok();
    let gateway = start(&upstream, "");
    let name = "X-Forwarded-For";
    for (lines, address) in [
        (&["203.0.113.1"][..], "203.0.113.1"),
        (&["6.6.6.6, 203.0.113.2, 10.0.0.2"], "203.0.113.2"),
        (&["6.6.6.6", "203.0.113.3, 10.0.0.2", "10.0.0.3"], "203.0.113.3"),
        (&["10.1.0.4, 10.0.0.2"], "10.1.0.4"),
        (&["203.0.113.5, nonsense, 10.1.0.5"], "10.1.0.5"),
        (&["203.0.113.6:8080"], "203.0.113.6"),
        (&["::ffff:203.0.113.7"], "203.0.113.7"),
        (&["[2001:db8:8::1]:443, fd00::1"], "2001:db8:8::1"),
    ] {
        let fields: Vec<(&str, &str)> = lines.iter().map(|line| (name, *line)).collect();
        is_counted_for(&gateway, &fields, name, address);
    }
}

#[test]
fn a_proxy_without_the_field_speaks_for_itself() {
    let upstream = Upstream::ok();
    let gateway = start(&upstream, "");
    let mut client = gateway.connect_from(PROXY);
    assert_eq!([client.get("/", &[]).status(), client.get("/", &[]).status()], [200, 429]);
    let unread = [("X-Forwarded-For", "203.0.113.1, nonsense")];
    assert_eq!(client.get("/", &unread).status(), 429, "the last good hop is the proxy itself");
    assert_eq!(
        client.get("/", &[("Forwarded", "for=203.0.113.9")]).status(),
        429,
        "the other field is not read"
    );
}

#[test]
fn forwarded_is_read_where_the_policy_names_it() {
    let upstream = Upstream::ok();
    let gateway = start(&upstream, "client_address = 'forwarded'");
    for (value, address) in [
        ("for=203.0.113.1", "for=203.0.113.1"),
        ("for=6.6.6.6, For=203.0.113.2;proto=https;by=10.0.0.2, for=\"10.0.0.2:80\"", "for=203.0.113.2"),
        ("for=\"[2001:db8:8::1]:4711\"", "for=\"[2001:db8:8::1]\""),
        ("for=_hidden, for=10.1.0.5", "for=10.1.0.5"),
    ] {
        is_counted_for(&gateway, &[("Forwarded", value)], "Forwarded", address);
    }
    let request = upstream.requests().pop().unwrap();
    assert_eq!(request.all("forwarded"), ["for=10.1.0.5", "for=127.0.0.2;proto=http"]);
    assert_eq!(request.get("x-forwarded-for"), None, "never both");
}

#[test]
fn what_a_trusted_proxy_says_is_sent_on_with_the_proxy_behind_it() {
    let upstream = Upstream::ok();
    let gateway = start(&upstream, "");
    let fields = [("X-Forwarded-For", "203.0.113.1"), ("X-Forwarded-Proto", "https")];
    gateway.connect_from(PROXY).get("/", &fields);
    let request = upstream.only_request();
    assert_eq!(request.get("x-forwarded-for"), Some("203.0.113.1, 127.0.0.2"));
    assert_eq!(request.get("x-forwarded-proto"), Some("https"));
}

#[test]
fn networks_of_ipv6_are_one_caller() {
    let upstream = Upstream::ok();
    let of = |client: &mut Client, address| client.get("/", &[("X-Forwarded-For", address)]).status();
    let by_default = start(&upstream, "");
    let mut client = by_default.connect_from(PROXY);
    assert_eq!(of(&mut client, "2001:db8::1"), 200);
    assert_eq!(of(&mut client, "2001:db8::ffff:2"), 429, "the same /64");
    assert_eq!(of(&mut client, "2001:db8:0:1::1"), 200, "another one");
    let by_address = start(&upstream, "ipv6_prefix = 128");
    let mut client = by_address.connect_from(PROXY);
    assert_eq!([of(&mut client, "2001:db8::1"), of(&mut client, "2001:db8::2")], [200, 200]);
    let by_site = start(&upstream, "ipv6_prefix = 48");
    let mut client = by_site.connect_from(PROXY);
    assert_eq!([of(&mut client, "2001:db8::1"), of(&mut client, "2001:db8:0:9::1")], [200, 429]);
}

#[test]
fn an_address_is_the_same_over_a_socket_for_both_families() {
    let upstream = Upstream::ok();
    let gateway = Gateway::start(&format!(
        "listen = '[::]:0'
        upstream = '{}'
        [server]
        trusted_proxies = ['127.0.0.2']
        [rule.per_address]
        key = 'client-ip'
        quota = '1/h'",
        upstream.url()
    ));
    let address = ([127, 0, 0, 1], gateway.address().port()).into();
    let mut proxy = Client::connect_from(PROXY, address);
    assert_eq!(proxy.get("/", &[("X-Forwarded-For", "127.0.0.3")]).status(), 200);
    assert_eq!(Client::connect_from(STRANGER, address).get("/", &[]).status(), 429);
    assert_eq!(upstream.only_request().get("x-forwarded-for"), Some("127.0.0.3, 127.0.0.2"));
}

const PROXY_PROTOCOL: &str = "client_address = 'proxy_protocol'";

/// The first version of the PROXY protocol.
fn first_version(address: &str) -> Vec<u8> {
    let family = if address.contains(':') { "TCP6 " } else { "TCP4 " };
    let other = if address.contains(':') { "::1" } else { "127.0.0.1" };
    format!("PROXY {family}{address} {other} 51234 443\r\n").into_bytes()
}

/// The second version, with a field behind the addresses that nobody knows.
fn second_version(address: Ipv6Addr) -> Vec<u8> {
    let unknown = [0xe5, 0, 3, 1, 2, 3];
    let mut header = b"\r\n\r\n\0\r\nQUIT\n\x21\x21\0\x2a".to_vec();
    header.extend(address.octets());
    header.extend(Ipv6Addr::LOCALHOST.octets());
    header.extend([0x12, 0x34, 0x01, 0xbb]);
    header.extend(unknown);
    header
}

fn status_behind(gateway: &Gateway, header: &[u8]) -> u16 {
    let mut client = gateway.connect_from(PROXY);
    client.send(header).send(request("GET", "/", &[("X-Forwarded-For", "6.6.6.6")], "")).response().status()
}

#[test]
fn both_versions_of_the_proxy_protocol_name_the_caller() {
    let upstream = Upstream::ok();
    let gateway = start(&upstream, PROXY_PROTOCOL);
    for header in [first_version("203.0.113.1"), first_version("2001:db8:1::1")] {
        assert_eq!([status_behind(&gateway, &header), status_behind(&gateway, &header)], [200, 429]);
    }
    let header = second_version("2001:db8:2::1".parse().unwrap());
    assert_eq!([status_behind(&gateway, &header), status_behind(&gateway, &header)], [200, 429]);
    assert_eq!(status_behind(&gateway, &first_version("2001:db8:2::9")), 429, "both versions mean the same");
    let request = &upstream.requests()[0];
    assert_eq!(request.get("x-forwarded-for"), Some("6.6.6.6, 203.0.113.1"));
}

#[test]
fn a_proxy_may_speak_for_itself_with_the_proxy_protocol() {
    let upstream = Upstream::ok();
    let gateway = start(&upstream, PROXY_PROTOCOL);
    assert_eq!([status_behind(&gateway, b"PROXY UNKNOWN\r\n"), status_behind(&gateway, LOCAL)], [200, 429]);
}

#[test]
fn the_proxy_protocol_is_required_from_listed_peers() {
    let upstream = Upstream::ok();
    let gateway = start(&upstream, PROXY_PROTOCOL);
    for header in
        ["", "PROXY TCP4 203.0.113.1\r\n", "PROXY TCP4 ::1 ::1 1 2\r\n", "\r\n\r\n\0\r\nQUIT\n\x31\x11\0\0"]
    {
        let mut client = gateway.connect_from(PROXY);
        client.send(header).send(request("GET", "/", &[], ""));
        assert_eq!(String::from_utf8(client.rest()).unwrap(), "", "{header:?}");
    }
    assert_eq!(upstream.bytes(), 0);
}

#[test]
fn where_balancers_name_the_callers_nobody_else_may_connect() {
    let upstream = Upstream::ok();
    let gateway = start(&upstream, PROXY_PROTOCOL);
    for header in [&b""[..], &first_version("203.0.113.1"), &first_version("127.0.0.2")] {
        let mut client = gateway.connect_from(STRANGER);
        // It may be closed before all of this is written.
        drop(client.try_send(header).and_then(|()| client.try_send(request("GET", "/", &[], ""))));
        assert!(client.is_closed(), "{header:?}");
    }
    assert_eq!(upstream.bytes(), 0);
    assert_eq!(status_behind(&gateway, &first_version("203.0.113.1")), 200);
}

/// A gateway that tells by its answers whether a caller is believed: what is sheddable may pass once.
fn believing(upstream: &Upstream, server: &str) -> Gateway {
    Gateway::before(
        upstream,
        &format!(
            "[server]
            trusted_proxies = ['127.0.0.2', '10.0.0.0/8']
            {server}
            [criticality]
            from = ['header:x-criticality', 'baggage:criticality']
            [rule.all]
            quota = '1000/s'
            per_criticality = {{ sheddable = {{ quota = '1/h' }} }}"
        ),
    )
}

const LOCAL: &[u8] = b"\r\n\r\n\0\r\nQUIT\n\x20\x00\0\0";

/// The second version, from a Unix socket.
fn of_a_unix_socket() -> Vec<u8> {
    let mut header = b"\r\n\r\n\0\r\nQUIT\n\x21\x31\0\xd8".to_vec();
    header.extend([b'a'; 216]);
    header
}

#[test]
fn a_caller_is_believed_for_its_own_address_and_not_for_the_balancers() {
    let upstream = Upstream::ok();
    let gateway = believing(&upstream, PROXY_PROTOCOL);
    let fields = [("X-Criticality", "sheddable"), ("X-Forwarded-Proto", "https")];
    let strangers = [
        first_version("203.0.113.1"),
        second_version("2001:db8::1".parse().unwrap()),
        b"PROXY UNKNOWN\r\n".to_vec(),
        LOCAL.to_vec(),
        of_a_unix_socket(),
    ];
    for header in strangers {
        let mut client = gateway.connect_from(PROXY);
        client.send(&header);
        assert_eq!([client.get("/", &fields).status(), client.get("/", &fields).status()], [200; 2]);
        let client = H2Client::connect_behind(PROXY, &header, gateway.address());
        let get =
            || client.get("http://a/", &[("x-criticality", "sheddable"), ("x-forwarded-proto", "https")]);
        assert_eq!([get().status(), get().status()], [200; 2]);
    }
    let told = upstream.requests().iter().all(|request| request.get("x-forwarded-proto") == Some("http"));
    assert!(told, "a stranger does not say how it was sent");
    let header = second_version("::ffff:10.0.0.7".parse().unwrap());
    let mut client = gateway.connect_from(PROXY);
    client.send(first_version("10.0.0.7"));
    assert_eq!([client.get("/", &fields).status(), client.get("/", &fields).status()], [200, 429]);
    assert_eq!(upstream.requests().last().unwrap().get("x-forwarded-proto"), Some("https"));
    let client = H2Client::connect_behind(PROXY, &header, gateway.address());
    assert_eq!(client.get("http://a/", &[("x-criticality", "sheddable")]).status(), 429);
}

/// A connection of the balancer for a caller, if the gateway serves it.
fn served_behind(gateway: &Gateway, header: &[u8]) -> Option<Client> {
    let mut client = gateway.connect_from(PROXY);
    // It may be closed before all of this is written.
    client.try_send(header).and_then(|()| client.try_send(request("GET", "/", &[], ""))).ok()?;
    client.try_response().is_some().then_some(client)
}

#[test]
fn connections_are_counted_for_the_caller_a_balancer_names() {
    let upstream = Upstream::ok();
    let gateway = Gateway::start(&format!(
        "upstream = '{}'
        [server]
        trusted_proxies = ['127.0.0.2', '10.0.0.0/8']
        {PROXY_PROTOCOL}
        [[listener]]
        bind = '127.0.0.1:0'
        max_connections_per_address = 2",
        upstream.url()
    ));
    let counted = [
        [first_version("203.0.113.1"), first_version("203.0.113.1"), first_version("203.0.113.1")],
        [
            first_version("2001:db8::1"),
            second_version("2001:db8::2".parse().unwrap()),
            first_version("2001:db8::ffff:3"),
        ],
        [
            first_version("203.0.113.9"),
            second_version("::ffff:203.0.113.9".parse().unwrap()),
            first_version("203.0.113.9"),
        ],
        [LOCAL.to_vec(), b"PROXY UNKNOWN\r\n".to_vec(), of_a_unix_socket()],
    ];
    for [first, second, third] in counted {
        let mut first = served_behind(&gateway, &first).unwrap();
        let second = served_behind(&gateway, &second).unwrap();
        assert!(served_behind(&gateway, &third).is_none());
        assert_eq!(first.get("/", &[]).status(), 200);
        drop((first, second));
        // The gateway sees the end of those a moment later.
        until(|| served_behind(&gateway, &third).is_some());
    }
    let trusted: Vec<_> = (0..5).map(|_| served_behind(&gateway, &first_version("10.0.0.7"))).collect();
    assert!(trusted.iter().all(Option::is_some), "a trusted proxy may have any number");
}

#[test]
fn only_trusted_proxies_say_how_critical_a_request_is() {
    let upstream = Upstream::ok();
    let gateway = believing(&upstream, "");
    let sheddable = [("X-Criticality", "sheddable")];
    let mut stranger = gateway.connect_from(STRANGER);
    assert_eq!([stranger.get("/", &sheddable).status(), stranger.get("/", &sheddable).status()], [200, 200]);
    let mut proxy = gateway.connect_from(PROXY);
    assert_eq!(proxy.get("/", &sheddable).status(), 200);
    assert_eq!(proxy.get("/", &[("Baggage", "user=1,criticality=sheddable;p=1")]).status(), 429);
    assert_eq!(proxy.get("/", &[]).status(), 200);
}
