//! What rules see of a request is what the service gets, or the request is refused.

mod raw;

use http::{HeaderMap, Request};

use crate::support::{Gateway, H2Client, H2Upstream, Message, Upstream, full, request, with_trailers};
use raw::{Became, RawH2};

const PER_KEY: &str = "[rule.per_key]\nkey = 'header:x-api-key'\nquota = '2/h'";

/// What a service gets of a request, which must be served.
fn sent_on(policy: &str, bytes: &str) -> Message {
    let upstream = Upstream::ok();
    let answer = Gateway::before(&upstream, policy).connect().send(bytes).response();
    assert_eq!(answer.status(), 200, "{bytes}: {answer:#?}");
    upstream.only_request()
}

/// The status of a request, which must not reach the service unless it is 200.
fn status_of(gateway: &Gateway, upstream: &Upstream, bytes: &[u8]) -> u16 {
    let before = upstream.requests().len();
    let status = gateway.connect().send(bytes).response().status();
    assert_eq!(upstream.requests().len() - before, usize::from(status == 200), "{bytes:?}");
    status
}

#[test]
fn blanks_around_a_value_over_http_2_are_refused_and_make_no_other_key() {
    let upstream = Upstream::ok();
    let gateway = Gateway::before(&upstream, PER_KEY);
    let mut client = RawH2::connect(gateway.address());
    for value in
        [" alice", "alice ", "\talice", "alice\t", "  alice", " ", "\t", " alice ", "alice \t", "\t alice"]
    {
        let became = client.get("/", &[("x-api-key", value.as_bytes())]);
        assert!(became.is_refused(), "{value:?}: {became:?}");
    }
    assert!(client.get("/", &[("x-other", b" 1")]).is_refused(), "no field may have them");
    assert_eq!(upstream.bytes(), 0);
    let alice: [(&str, &[u8]); 1] = [("x-api-key", b"alice")];
    let statuses = [(); 3].map(|()| client.get("/", &alice));
    assert_eq!(statuses, [200, 200, 429].map(Became::Answered), "nobody was charged before");
}

#[test]
fn control_bytes_and_capitals_are_refused_over_http_2() {
    let upstream = Upstream::ok();
    let gateway = Gateway::before(&upstream, PER_KEY);
    for fields in [
        [("x-api-key", &b"a\0b"[..])],
        [("x-api-key", b"a\rb")],
        [("x-api-key", b"a\nx-other: b")],
        [("x-api-key", b"a\x7f")],
        [("X-Api-Key", b"a")],
        [("x api", b"a")],
        [("connection", b"x-api-key")],
        [("transfer-encoding", b"chunked")],
    ] {
        let became = RawH2::connect(gateway.address()).get("/", &fields);
        assert!(became.is_refused() || became == Became::Ended, "{fields:?}: {became:?}");
    }
    assert_eq!(upstream.bytes(), 0);
}

#[test]
fn blanks_do_not_evade_an_assignment_of_criticality() {
    let upstream = Upstream::ok();
    let gateway = Gateway::before(
        &upstream,
        "[[criticality.assign]]\nmatch = { header = { x-test-mode = '1' } }\nas = 'sheddable'\n\
         [rule.few]\nquota = '100/h'\nper_criticality = { sheddable = { quota = '1/h' } }",
    );
    let mut client = RawH2::connect(gateway.address());
    let statuses = [b"1", b"1"].map(|value| client.get("/", &[("x-test-mode", value)]));
    assert_eq!(statuses, [200, 429].map(Became::Answered));
    for value in [" 1", "1 ", "\t1"] {
        assert!(client.get("/", &[("x-test-mode", value.as_bytes())]).is_refused(), "{value:?}");
    }
    assert_eq!(upstream.requests().len(), 1);
}

#[test]
fn cookies_in_pieces_are_one_key_over_http_2() {
    let upstream = Upstream::ok();
    let gateway = Gateway::before(&upstream, "[rule.per_cookie]\nkey = 'header:cookie'\nquota = '1/h'");
    let mut client = RawH2::connect(gateway.address());
    assert_eq!(client.get("/", &[("cookie", b"a=1"), ("cookie", b"b=2")]), Became::Answered(200));
    assert_eq!(client.get("/", &[("cookie", b"a=1; b=2")]), Became::Answered(429));
    assert_eq!(gateway.get("/", &[("Cookie", "a=1; b=2")]).status(), 429);
    assert_eq!(upstream.only_request().get("cookie"), Some("a=1; b=2"));
    assert_eq!(
        gateway.get("/", &[("Cookie", "a=1"), ("Cookie", "b=2")]).status(),
        400,
        "HTTP/1 has one line"
    );
}

#[test]
fn a_request_without_a_host_is_refused_over_http_2() {
    let upstream = Upstream::ok();
    let gateway = Gateway::before(&upstream, "");
    let mut client = RawH2::connect(gateway.address());
    let begin: [(&str, &[u8]); 3] = [(":method", b"GET"), (":scheme", b"http"), (":path", b"/")];
    assert!(client.ask(&begin).is_refused());
    assert!(client.ask(&[&begin[..], &[(":authority", b"")]].concat()).is_refused());
    assert!(client.ask(&[&begin[..], &[("host", b"")]].concat()).is_refused());
    assert!(client.ask(&[&begin[..], &[("host", b"a"), ("host", b"a")]].concat()).is_refused());
    assert!(client.ask(&[&begin[..], &[(":authority", b"a"), ("host", b"b")]].concat()).is_refused());
    assert_eq!(upstream.bytes(), 0);
    assert_eq!(client.ask(&[&begin[..], &[("host", b"A.")]].concat()), Became::Answered(200));
    assert_eq!(
        client.ask(&[&begin[..], &[(":authority", b"a"), ("host", b"A:")]].concat()),
        Became::Answered(200)
    );
    let hosts: Vec<_> =
        upstream.requests().iter().map(|request| request.get("host").map(str::to_owned)).collect();
    assert_eq!(hosts, [Some("a".to_owned()), Some("a".to_owned())]);
}

#[test]
fn an_empty_host_is_refused_and_an_old_request_without_one_where_hosts_matter() {
    let upstream = Upstream::ok();
    let old = b"GET / HTTP/1.0\r\n\r\n";
    let plain = Gateway::before(&upstream, "");
    assert_eq!(status_of(&plain, &upstream, b"GET / HTTP/1.1\r\nHost:\r\n\r\n"), 400);
    assert_eq!(status_of(&plain, &upstream, b"GET / HTTP/1.0\r\nHost: \r\n\r\n"), 400);
    assert_eq!(status_of(&plain, &upstream, old), 200, "nothing depends on it");
    for policy in [
        "[[route]]\nmatch = { host = 'a' }\n[[route]]",
        "[[route]]\nmatch = { header = { host = 'a' } }\n[[route]]",
        "[rule.per_host]\nkey = 'header:host'\nquota = '9/h'",
    ] {
        let gateway = Gateway::before(&upstream, policy);
        assert_eq!(status_of(&gateway, &upstream, old), 400, "{policy}");
        assert_eq!(status_of(&gateway, &upstream, b"GET / HTTP/1.0\r\nHost: a\r\n\r\n"), 200, "{policy}");
    }
}

#[test]
fn a_star_is_for_options_only() {
    let upstream = Upstream::ok();
    let gateway = Gateway::before(&upstream, "");
    assert_eq!(status_of(&gateway, &upstream, b"GET * HTTP/1.1\r\nHost: a\r\n\r\n"), 400);
    let mut client = RawH2::connect(gateway.address());
    assert!(client.get("*", &[]).is_refused());
    let options: [(&str, &[u8]); 4] =
        [(":method", b"OPTIONS"), (":scheme", b"http"), (":authority", b"a"), (":path", b"*")];
    assert_eq!(client.ask(&options), Became::Answered(200));
    assert_eq!(upstream.targets(), ["*"]);
}

#[test]
fn a_host_has_one_spelling_for_routes_keys_and_the_service() {
    let (inside, outside) = (Upstream::ok(), Upstream::ok());
    let policy = format!(
        "listen = '127.0.0.1:0'
        [upstream.inside]
        endpoints = ['{}']
        [upstream.outside]
        endpoints = ['{}']
        [rule.per_host]
        key = 'header:host'
        quota = '5/h'
        [[route]]
        match = {{ host = 'host.test' }}
        upstream = 'inside'
        rules = ['per_host']
        [[route]]
        upstream = 'outside'",
        inside.url(),
        outside.url()
    );
    let gateway = Gateway::start(&policy);
    for host in ["host.test", "host.test:", "host.test.", "HOST.Test.:"] {
        assert_eq!(gateway.get("/", &[("Host", host)]).status(), 200, "{host}");
    }
    gateway.connect().send("GET HTTP://Host.TEST./ HTTP/1.1\r\nHost: other\r\n\r\n").response();
    assert!(inside.requests().iter().all(|request| request.get("host") == Some("host.test")));
    let mut client = RawH2::connect(gateway.address());
    let get: [(&str, &[u8]); 4] =
        [(":method", b"GET"), (":scheme", b"http"), (":path", b"/"), (":authority", b"host.TEST.")];
    assert_eq!(client.ask(&get), Became::Answered(429), "all of them are one key");
    assert_eq!((inside.requests().len(), outside.requests().len()), (5, 0));
}

#[test]
fn hosts_that_services_read_in_several_ways_are_refused() {
    let upstream = Upstream::ok();
    let gateway = Gateway::before(&upstream, "");
    for host in [
        "host..",
        "a..b",
        ".a",
        ".",
        ":80",
        "a:0x50",
        "a:99999",
        "a:080",
        "a:80:80",
        "a b",
        "h\u{f6}st",
        "[::1",
        "[::x]",
        "a%2eb",
        "a\\b",
        "::1",
    ] {
        assert_eq!(
            status_of(&gateway, &upstream, request("GET", "/", &[("Host", host)], "").as_bytes()),
            400,
            "{host}"
        );
        let authority = RawH2::connect(gateway.address()).ask(&[
            (":method", b"GET"),
            (":scheme", b"http"),
            (":path", b"/"),
            (":authority", host.as_bytes()),
        ]);
        assert!(authority.is_refused(), "{host}: {authority:?}");
    }
    assert_eq!(upstream.bytes(), 0);
    assert_eq!(gateway.get("/", &[("Host", "[0:0::1]:8080")]).status(), 200);
    assert_eq!(upstream.only_request().get("host"), Some("[::1]:8080"));
}

#[test]
fn targets_that_services_read_in_several_ways_are_refused() {
    let upstream = Upstream::ok();
    let gateway = Gateway::before(&upstream, "");
    for target in [
        "a",
        "javascript:1",
        "admin/x",
        "ftp://a/",
        "//a\\b",
        "/a\\b",
        "/a#b",
        "/?a#b",
        "/caf\u{e9}",
        "?a",
        "http:/a",
        "http:///a",
    ] {
        let bytes = format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n");
        assert_eq!(status_of(&gateway, &upstream, bytes.as_bytes()), 400, "{target}");
    }
    let mut client = RawH2::connect(gateway.address());
    for target in ["a", "javascript:1", "/a\\b", "/caf\u{e9}"] {
        let became = client.get(target, &[]);
        assert!(became.is_refused(), "{target}: {became:?}");
    }
    assert_eq!(upstream.bytes(), 0);
    assert_eq!(status_of(&gateway, &upstream, b"GET http://b?x HTTP/1.1\r\nHost: a\r\n\r\n"), 200);
    let request = upstream.only_request();
    assert_eq!((request.target(), request.get("host")), ("/?x", Some("b")));
}

#[test]
fn methods_are_as_they_are_and_registered_ones_have_one_case() {
    let upstream = Upstream::ok();
    let policy = "[rule.few]\nquota = '5/h'\n[[route]]\nrules = ['few']\ncost = { POST = 5, default = 1 }";
    let gateway = Gateway::before(&upstream, policy);
    for method in ["get", "Post", "pOST", "propfind", "Connect", "trace"] {
        let bytes = request(method, "/", &[], "");
        assert_eq!(status_of(&gateway, &upstream, bytes.as_bytes()), 400, "{method}");
        let mut client = RawH2::connect(gateway.address());
        let fields: [(&str, &[u8]); 4] =
            [(":method", method.as_bytes()), (":scheme", b"http"), (":authority", b"a"), (":path", b"/")];
        assert!(client.ask(&fields).is_refused(), "{method}");
    }
    let mut client = gateway.connect();
    for method in ["PURGE", "purge"] {
        assert_eq!(client.ask(method, "/", &[], "").status(), 200, "{method} is known to nobody");
    }
    assert_eq!(client.ask("POST", "/", &[], "").status(), 429);
    let methods: Vec<_> = upstream.requests().iter().map(|request| request.method().to_owned()).collect();
    assert_eq!(methods, ["PURGE", "purge"]);
}

#[test]
fn nobody_gets_back_what_a_request_carries() {
    let upstream = Upstream::ok();
    let gateway = Gateway::before(&upstream, "");
    let mut client = gateway.connect();
    let answer = client.ask("TRACE", "/", &[("Cookie", "secret=1")], "");
    assert_eq!((answer.status(), answer.text()), (405, ""));
    assert_eq!(answer.get("allow"), Some("GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"));
    let trace: [(&str, &[u8]); 4] =
        [(":method", b"TRACE"), (":scheme", b"http"), (":authority", b"a"), (":path", b"/")];
    assert_eq!(RawH2::connect(gateway.address()).ask(&trace), Became::Answered(405));
    assert_eq!(upstream.bytes(), 0);
    assert_eq!(client.get("/", &[]).status(), 200, "the connection goes on");
}

#[test]
fn a_path_goes_on_as_rules_compared_it() {
    let policy =
        "[[route]]\nmatch = { path = '/admin/**' }\n[[route]]\nmatch = { path = '/calls:all' }\n[[route]]";
    let get = |target| sent_on(policy, &request("GET", target, &[], ""));
    for (sent, compared) in [
        ("/rest/../admin/x", "/admin/x"),
        ("/rest/%2e%2E/admin/x?a=%2e%2f", "/admin/x?a=%2e%2f"),
        ("//admin//x", "/admin/x"),
        ("/%61dmin/x", "/admin/x"),
        ("/calls%3aall", "/calls:all"),
        ("/a|b", "/a%7Cb"),
        ("/a;b/c", "/a;b/c"),
        ("/admin/x", "/admin/x"),
    ] {
        assert_eq!(get(sent).target(), compared, "{sent}");
    }
}

#[test]
fn a_semicolon_does_not_lead_around_a_rule() {
    let upstream = Upstream::ok();
    let policy =
        "[[route]]\nmatch = { path = '/shop/**' }\n[[route]]\nmatch = { path = '/admin/**' }\n[[route]]";
    let gateway = Gateway::before(&upstream, policy);
    for target in ["/admin;/x", "/shop/..;/admin/x", "/x/;/../../admin;a=b/x"] {
        assert_eq!(gateway.get(target, &[]).status(), 400, "{target}");
    }
    assert_eq!(upstream.bytes(), 0);
    for target in ["/shop/cart;jsessionid=1", "/admin/x;y", "/other;x"] {
        assert_eq!(gateway.get(target, &[]).status(), 200, "{target}");
    }
    assert_eq!(upstream.targets(), ["/shop/cart;jsessionid=1", "/admin/x;y", "/other;x"]);
}

#[test]
fn fields_of_proxies_are_not_taken_from_strangers() {
    let spoofed = "Forwarded: for=6.6.6.6\r\nX-Forwarded-For: 6.6.6.6\r\nX-Forwarded-Proto: https\r\n\
        X-Forwarded-Host: evil\r\nX-Forwarded-Port: 1\r\nX-Forwarded-Prefix: /x\r\nX-Real-IP: 6.6.6.6\r\n\
        X-Original-URL: /admin\r\nX-Rewrite-URL: /admin\r\nTrue-Client-IP: 6.6.6.6\r\nX-Envoy-Max-Retries: 99\r\n\
        X_Forwarded_For: 6.6.6.6\r\nX_Criticality: critical_plus\r\nTransfer_Encoding: chunked\r\n\
        X_Real_IP: 6.6.6.6\r\nHTTP2-Settings: x\r\nX-Criticality: critical_plus\r\nX-Kept: 1\r\n\r\n";
    let bytes = format!("GET / HTTP/1.1\r\nHost: a\r\n{spoofed}");
    let request = sent_on("", &bytes);
    let names = ["host", "via", "x-forwarded-for", "x-forwarded-proto", "x-kept", "x-request-id"];
    assert_eq!(request.head.names(), names);
    assert_eq!(request.get("x-forwarded-for"), Some("6.6.6.6, 127.0.0.1"), "read from the right");
    assert_eq!(request.get("x-forwarded-proto"), Some("http"));
    let policy = "[server]\nclient_address = 'forwarded'\ntrusted_proxies = ['10.0.0.1']";
    let request = sent_on(policy, &bytes);
    assert_eq!(request.head.names(), ["forwarded", "forwarded", "host", "via", "x-kept", "x-request-id"]);
}

#[test]
fn of_a_trusted_proxy_one_way_to_name_the_caller_goes_on() {
    let fields = "Forwarded: for=6.6.6.6\r\nX-Forwarded-For: 203.0.113.7\r\nX-Forwarded-Proto: https\r\n\
        X-Forwarded-Host: a.test\r\nX-Real-IP: 203.0.113.7\r\nX_Forwarded_For: 6.6.6.6\r\n\r\n";
    let bytes = format!("GET / HTTP/1.1\r\nHost: a\r\n{fields}");
    let request = sent_on("[server]\ntrusted_proxies = ['127.0.0.1']", &bytes);
    let names = [
        "host",
        "via",
        "x-forwarded-for",
        "x-forwarded-host",
        "x-forwarded-proto",
        "x-real-ip",
        "x-request-id",
    ];
    assert_eq!(request.head.names(), names);
    let request = sent_on("[server]\ntrusted_proxies = ['127.0.0.1']\nclient_address = 'forwarded'", &bytes);
    assert_eq!(request.head.names(), ["forwarded", "forwarded", "host", "via", "x-real-ip", "x-request-id"]);
}

#[test]
fn a_connection_field_that_cannot_be_read_is_refused() {
    let upstream = Upstream::ok();
    let gateway = Gateway::before(&upstream, "");
    for value in [&b"x-a, \xff"[..], b"x-a x-b", b"\"x-a\"", b"x-a; x-b", b"close, x(a)"] {
        let bytes = [b"GET / HTTP/1.1\r\nHost: a\r\nX-A: 1\r\nConnection: ", value, b"\r\n\r\n"].concat();
        assert_eq!(status_of(&gateway, &upstream, &bytes), 400, "{value:?}");
    }
    assert_eq!(
        status_of(&gateway, &upstream, b"GET / HTTP/1.1\r\nHost: a\r\nConnection: , close,\r\n\r\n"),
        200
    );
}

/// Trailers that a head may not have, and one that it may.
const TRAILERS: [&str; 9] = [
    "x-api-key",
    "x_api_key",
    "x-criticality",
    "baggage",
    "authorization",
    "x-forwarded-for",
    "content-length",
    "x-test",
    "x-sum",
];

#[test]
fn trailers_carry_nothing_that_a_head_may_not() {
    let policy = "[rule.per_key]\nkey = 'header:x-api-key'\nquota = '9/h'\n\
        [[route]]\nmatch = { header = { x-test = '1' } }\n[[route]]\nrules = ['per_key']";
    let lines: String = TRAILERS.iter().map(|name| format!("{name}: 1\r\n")).collect();
    let head = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n";
    let request = sent_on(policy, &format!("{head}{lines}\r\n"));
    assert_eq!(request.trailers.names(), ["x-sum"]);

    let h2 = H2Upstream::answering(|_| {
        let mut trailers = HeaderMap::new();
        trailers.insert("set-cookie", "a=1".parse().unwrap());
        trailers.insert("x-sum", "1".parse().unwrap());
        http::Response::new(with_trailers("hello", trailers))
    });
    let gateway = Gateway::start(&format!(
        "listen = '127.0.0.1:0'\n[upstream.service]\nendpoints = ['{}']\nprotocol = 'h2'\n{policy}",
        h2.url()
    ));
    let mut trailers = HeaderMap::new();
    for name in TRAILERS {
        trailers.insert(http::HeaderName::from_static(name), "1".parse().unwrap());
    }
    trailers.insert("x-blank", " 1".parse().unwrap());
    let client = H2Client::connect(gateway.address());
    let asked = Request::post("http://a/").body(with_trailers("body", trailers)).unwrap();
    let answer = client.ask(asked).unwrap();
    let names = |trailers: &HeaderMap| trailers.keys().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(h2.requests()[0].trailers.as_ref().map(names), Some(vec!["x-sum".to_owned()]));
    assert_eq!(answer.trailers.as_ref().map(names), Some(vec!["x-sum".to_owned()]));
    assert_eq!(client.ask(Request::get("http://a/").body(full("")).unwrap()).unwrap().status(), 200);
}

#[test]
fn a_key_that_does_not_go_on_is_none() {
    let upstream = Upstream::ok();
    let gateway = Gateway::before(&upstream, PER_KEY);
    let statuses: Vec<u16> = ["a", "b", "c"]
        .map(|key| gateway.get("/", &[("X-Api-Key", key), ("Connection", "close, x-API-key")]).status())
        .into();
    assert_eq!(statuses, [200, 200, 429], "they share the counter of those without one");
    assert!(upstream.requests().iter().all(|request| request.get("x-api-key").is_none()));
    assert_eq!(gateway.get("/", &[]).status(), 429);
    assert_eq!(gateway.get("/", &[("X-Api-Key", "")]).status(), 429, "an empty key is none");
    assert_eq!(gateway.get("/", &[("X-Api-Key", "a")]).status(), 200);
}

#[test]
fn an_empty_name_is_not_a_caller() {
    let upstream = Upstream::ok();
    let policy =
        "[caller]\nfrom = ['header:x-api-key', 'client-ip']\n[rule.once]\nkey = 'caller'\nquota = '1/h'";
    let gateway = Gateway::before(&upstream, policy);
    assert_eq!(gateway.get("/", &[]).status(), 200);
    assert_eq!(gateway.get("/", &[("X-Api-Key", "")]).status(), 429, "the next source counts");
    let mut client = RawH2::connect(gateway.address());
    assert_eq!(client.get("/", &[("x-api-key", b"")]), Became::Answered(429));
}

#[test]
fn the_key_host_is_the_authority() {
    let upstream = Upstream::ok();
    let gateway = Gateway::before(&upstream, "[rule.per_host]\nkey = 'header:host'\nquota = '1/h'");
    let absolute = |host| format!("GET http://a.test/ HTTP/1.1\r\nHost: {host}\r\n\r\n");
    assert_eq!(status_of(&gateway, &upstream, absolute("x").as_bytes()), 200);
    assert_eq!(status_of(&gateway, &upstream, absolute("y").as_bytes()), 429);
    let client = H2Client::connect(gateway.address());
    assert_eq!(
        [client.get("http://b.test/", &[]).status(), client.get("http://b.test/", &[]).status()],
        [200, 429]
    );
    assert_eq!(client.get("http://c.test/", &[]).status(), 200, "authorities have a counter each");
}

#[test]
fn a_field_that_is_matched_may_be_sent_once() {
    let upstream = Upstream::ok();
    let policy = "[rule.once]\nquota = '1/h'\n\
        [[route]]\nmatch = { header = { x-tier = 'free' } }\nrules = ['once']\n[[route]]";
    let gateway = Gateway::before(&upstream, policy);
    let twice = [("X-Tier", "gold"), ("X-Tier", "free")];
    assert_eq!(gateway.get("/", &twice).status(), 400);
    let mut client = RawH2::connect(gateway.address());
    assert!(client.get("/", &[("x-tier", b"gold"), ("x-tier", b"free")]).is_refused());
    assert_eq!(upstream.bytes(), 0);
    assert_eq!(gateway.get("/", &[("X_Tier", "free")]).status(), 200);
    assert_eq!(upstream.only_request().get("x_tier"), None, "nor is it passed on in another spelling");
    let free = [("X-Tier", "free")];
    assert_eq!([gateway.get("/", &free).status(), gateway.get("/", &free).status()], [200, 429]);
}

#[test]
fn a_match_on_the_scheme_is_not_for_strangers_to_say() {
    let upstream = Upstream::ok();
    let policy = "[rule.once]\nquota = '1/h'\n\
        [[route]]\nmatch = { header = { x-forwarded-proto = 'http' } }\nrules = ['once']\n[[route]]";
    let gateway = Gateway::before(&upstream, policy);
    let spoofed = [("X-Forwarded-Proto", "https")];
    assert_eq!([gateway.get("/", &spoofed).status(), gateway.get("/", &spoofed).status()], [200, 429]);
    let client = H2Client::connect(gateway.address());
    assert_eq!(client.get("http://a/", &spoofed).status(), 429);
    assert_eq!(upstream.only_request().get("x-forwarded-proto"), Some("http"));
}

#[test]
fn an_address_behind_a_translator_is_the_ipv4_address_inside() {
    let upstream = Upstream::ok();
    let policy = "[server]\ntrusted_proxies = ['127.0.0.1']\n[rule.once]\nkey = 'client-ip'\nquota = '1/h'";
    let gateway = Gateway::before(&upstream, policy);
    let of = |address| gateway.get("/", &[("X-Forwarded-For", address)]).status();
    assert_eq!([of("64:ff9b::203.0.113.7"), of("203.0.113.7"), of("::ffff:203.0.113.7")], [200, 429, 429]);
    assert_eq!(of("64:ff9b::203.0.113.8"), 200, "another caller behind the same translator");
}
