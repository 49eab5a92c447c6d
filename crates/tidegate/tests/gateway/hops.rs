//! What a proxy takes away, adds and leaves alone on the way to the service and back.

use crate::support::{Answer, Gateway, Message, Upstream, request};

/// What the service gets of a request.
fn sent_on(fields: &[(&str, &str)]) -> Message {
    sent_on_as(&request("GET", "/", fields, ""))
}

fn sent_on_as(request: &str) -> Message {
    let upstream = Upstream::ok();
    let gateway = Gateway::before(&upstream, "");
    assert_eq!(gateway.connect().send(request).response().status(), 200);
    upstream.only_request()
}

#[test]
fn fields_for_the_next_hop_end_here() {
    let request = sent_on(&[
        ("Connection", "keep-alive, X-Secret"),
        ("Connection", "x-other"),
        ("X-Secret", "1"),
        ("X-Other", "1"),
        ("Keep-Alive", "timeout=5"),
        ("Proxy-Connection", "keep-alive"),
        ("Upgrade", "h2c"),
        ("TE", "gzip"),
        ("X-Kept", "1"),
    ]);
    assert_eq!(
        request.head.names(),
        ["host", "via", "x-forwarded-for", "x-forwarded-proto", "x-kept", "x-request-id"]
    );
}

#[test]
fn connection_cannot_take_away_what_every_request_needs() {
    let request = sent_on_as(
        "POST / HTTP/1.1\r\nHost: a\r\nConnection: host, content-length, transfer-encoding\r\n\
         Content-Length: 3\r\n\r\nabc",
    );
    assert_eq!((request.get("host"), request.text()), (Some("a"), "abc"));
}

#[test]
fn connection_cannot_take_away_what_we_add() {
    let request = sent_on(&[("Connection", "x-forwarded-for, via, x-forwarded-proto")]);
    assert_eq!(request.get("x-forwarded-for"), Some("127.0.0.1"));
    assert_eq!((request.get("via"), request.get("x-forwarded-proto")), (Some("1.1 tidegate"), Some("http")));
}

#[test]
fn only_trailers_stay_of_te() {
    assert_eq!(sent_on(&[("TE", "gzip, trailers;q=1"), ("Connection", "TE")]).get("te"), None);
    assert_eq!(sent_on(&[("TE", "gzip, Trailers"), ("Connection", "TE")]).get("te"), Some("trailers"));
}

#[test]
fn everybody_on_the_way_is_named() {
    let request = sent_on(&[
        ("Via", "1.0 first"),
        ("X-Forwarded-For", "203.0.113.7"),
        ("X-Forwarded-For", "198.51.100.1"),
        ("X-Forwarded-Proto", "https"),
    ]);
    assert_eq!(request.all("via"), ["1.0 first", "1.1 tidegate"]);
    assert_eq!(request.get("x-forwarded-for"), Some("203.0.113.7, 198.51.100.1, 127.0.0.1"));
    assert_eq!(request.get("x-forwarded-proto"), Some("http"), "a stranger is not believed");
}

#[test]
fn max_forwards_is_counted_down_and_ends_here_at_zero() {
    let upstream = Upstream::ok();
    let gateway = Gateway::before(&upstream, "");
    let mut client = gateway.connect();
    let answer = client.ask("OPTIONS", "/", &[("Max-Forwards", "1")], "");
    assert_eq!((answer.status(), answer.text()), (200, "hello"));
    assert_eq!(upstream.only_request().get("max-forwards"), Some("0"));
    let answer = client.ask("OPTIONS", "/", &[("Max-Forwards", "0")], "");
    assert_eq!((answer.status(), answer.text()), (200, ""));
    assert_eq!(upstream.requests().len(), 1, "it ended here");
    client.get("/", &[("Max-Forwards", "0")]);
    assert_eq!(upstream.requests()[1].get("max-forwards"), Some("0"), "other methods do not have it");
}

#[test]
fn the_targets_authority_is_the_host() {
    let request = sent_on_as("GET http://other.test:81/x?y=1 HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!((request.target(), request.get("host")), ("/x?y=1", Some("other.test:81")));
    let request = sent_on_as("GET http://other.test HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!((request.target(), request.get("host")), ("/", Some("other.test")));
}

#[test]
fn the_whole_service_may_be_asked_for_its_options() {
    assert_eq!(sent_on_as("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n").target(), "*");
}

#[test]
fn routes_and_keys_see_the_targets_authority_too() {
    let (inside, outside) = (Upstream::ok(), Upstream::ok());
    let gateway = Gateway::start(&format!(
        "listen = '127.0.0.1:0'
        [upstream.inside]
        endpoints = ['{}']
        [upstream.outside]
        endpoints = ['{}']
        [[route]]
        name = 'inside'
        match = {{ host = 'inside.test' }}
        upstream = 'inside'
        [[route]]
        name = 'outside'
        match = {{ host = 'outside.test' }}
        upstream = 'outside'",
        inside.url(),
        outside.url()
    ));
    gateway.connect().send("GET http://outside.test/ HTTP/1.1\r\nHost: inside.test\r\n\r\n").response();
    assert_eq!((inside.requests().len(), outside.requests().len()), (0, 1));
    for host in ["inside.test", "Inside.TEST:8080", "inside.test."] {
        assert_eq!(gateway.get("/", &[("Host", host)]).status(), 200, "{host}");
    }
    assert_eq!((inside.requests().len(), outside.requests().len()), (3, 1));
}

#[test]
fn paths_are_sent_on_untouched() {
    for target in ["/a/../b//c", "/%7Euser/%c3%a9?q=%2F&&=", "/a;b=c", "//a", "/?", "/a%20b"] {
        assert_eq!(sent_on_as(&request("GET", target, &[], "")).target(), target);
    }
}

/// A policy with a rule whose path is guarded.
fn guarded(upstream: &Upstream) -> Gateway {
    Gateway::before(
        upstream,
        "[rule.few]
        quota = '1/h'
        [[route]]
        name = 'admin'
        match = { path = '/admin/**' }
        rules = ['few']
        [[route]]
        name = 'rest'
        match = { path = '/**' }",
    )
}

#[test]
fn dots_and_doubled_slashes_do_not_lead_around_a_rule() {
    let upstream = Upstream::ok();
    let gateway = guarded(&upstream);
    assert_eq!(gateway.get("/admin/x", &[]).status(), 200);
    for target in
        ["/admin/x", "/a/../admin/x", "//admin/x", "/./admin/x", "/%61dmin/x", "/rest/%2e%2e/admin/x"]
    {
        assert_eq!(gateway.get(target, &[]).status(), 429, "{target}");
    }
    assert_eq!(gateway.get("/rest", &[]).status(), 200);
}

#[test]
fn encoded_slashes_are_refused() {
    let upstream = Upstream::ok();
    let gateway = guarded(&upstream);
    for target in ["/rest%2fadmin", "/admin%2Fx", "/admin%5cx", "/admin%00"] {
        let answer = gateway.get(target, &[]);
        assert_eq!(answer.status(), 400, "{target}");
        assert_eq!(answer.get("content-type"), Some("application/problem+json"));
    }
    assert_eq!(upstream.bytes(), 0);
    assert_eq!(gateway.get("/rest?at=%2fadmin%00", &[]).status(), 200, "a query is not a path");
}

#[test]
fn a_field_that_could_pass_for_a_key_is_dropped() {
    let upstream = Upstream::ok();
    let gateway = Gateway::before(&upstream, "[rule.per_key]\nkey = 'header:x-api-key'\nquota = '1/h'");
    let fields =
        [("X_Api_Key", "mallory"), ("X-Api_Key", "mallory"), ("X_Other", "1"), ("X-Api-Key", "alice")];
    assert_eq!(gateway.get("/", &fields).status(), 200);
    let request = upstream.only_request();
    let keys = ["x-api-key", "x_api_key", "x-api_key", "x_other"].map(|name| request.get(name));
    assert_eq!(keys, [Some("alice"), None, None, Some("1")]);
    assert_eq!(gateway.get("/", &[("X-Api-Key", "alice"), ("X_Api_Key", "bob")]).status(), 429);
}

#[test]
fn an_unknown_route_is_a_problem_404() {
    let upstream = Upstream::ok();
    let gateway = Gateway::before(&upstream, "[[route]]\nname = 'api'\nmatch = { path = '/api/**' }");
    let mut client = gateway.connect();
    let answer = client.get("/other", &[]);
    assert_eq!((answer.status(), answer.get("content-type")), (404, Some("application/problem+json")));
    assert_eq!(answer.json()["status"], 404);
    assert_eq!(client.get("/api/x", &[]).status(), 200, "the connection goes on");
    assert_eq!(upstream.targets(), ["/api/x"]);
}

#[test]
fn fields_of_the_answer_for_the_next_hop_end_here() {
    let upstream = Upstream::answering(|_| {
        Answer::with(
            &[
                ("Connection", "keep-alive, X-Inner"),
                ("X-Inner", "1"),
                ("Keep-Alive", "timeout=5"),
                ("Proxy-Connection", "keep-alive"),
                ("Via", "1.1 inner"),
                ("X-Kept", "1"),
                ("Set-Cookie", "a=1"),
                ("Set-Cookie", "b=2"),
            ],
            "hello",
        )
    });
    let answer = Gateway::before(&upstream, "").get("/", &[]);
    assert_eq!((answer.get("via"), answer.all("set-cookie")), (Some("1.1 inner"), vec!["a=1", "b=2"]));
    let names = ["content-length", "date", "set-cookie", "set-cookie", "via", "x-kept"];
    assert_eq!(answer.head.names(), names);
}
