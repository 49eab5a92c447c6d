//! Who is answered, and what is refused before it is looked at.

use std::net::TcpListener;
use std::sync::Arc;

use tidegate::admin::{Admin, Token};

use crate::http::{ask, ask_with, get};
use crate::station::{POLICY, Running, Small};

#[test]
fn with_a_token_only_its_holder_is_answered() {
    let running = Running::with_token(Some("s3cret"));
    let with = |fields: &str| ask_with(running.address(), "GET /api/v1/status", fields, "");
    let nobody = with("");
    assert_eq!(nobody.status, 401);
    assert_eq!(nobody.field("tidegate-admin"), Some("v1"));
    assert_eq!(nobody.field("www-authenticate"), Some("Bearer realm=\"tidegate admin\""));
    assert_eq!(nobody.detail(), "a token is needed: send `Authorization: Bearer …`");
    let wrong = with("authorization: Bearer s3creT\r\n");
    assert_eq!((wrong.status, wrong.detail().as_str()), (401, "the token is not the right one"));
    assert_eq!(with("authorization: Basic s3cret\r\n").status, 401);
    assert_eq!(with("authorization: bearer s3cret\r\n").status, 200);
    // Whoever has the token may come by any name, as through a tunnel.
    assert_eq!(with("host: gateway.example\r\nauthorization: Bearer s3cret\r\n").status, 200);
    for path in ["/livez", "/readyz"] {
        assert_eq!(get(running.address(), path).status, 200);
    }
    assert_eq!(get(running.address(), "/metrics").status, 401);
    assert_eq!(get(running.address(), "/nowhere").status, 401);
}

#[test]
fn without_a_token_only_loopback_names_are_answered() {
    let running = Running::start();
    let with = |fields: &str| ask_with(running.address(), "GET /api/v1/status", fields, "");
    for host in ["localhost", "127.0.0.1:1", "[::1]:9900"] {
        assert_eq!(with(&format!("host: {host}\r\n")).status, 200, "{host}");
    }
    for host in ["evil.example", "localhost.evil.example:9900", "192.0.2.1", ""] {
        let answer = with(&format!("host: {host}\r\n"));
        assert_eq!(answer.status, 403, "{host}");
        assert!(answer.detail().contains("use 127.0.0.1 or localhost"));
    }
    assert_eq!(with("host: localhost\r\nhost: evil.example\r\n").status, 403);
    assert_eq!(ask_with(running.address(), "GET /livez", "host: probe.example\r\n", "").status, 200);
}

#[test]
fn pages_of_other_hosts_change_nothing() {
    let running = Running::start();
    let address = running.address();
    let switch = |origin: &str| {
        let fields = format!("origin: {origin}\r\ncontent-type: application/json\r\n");
        ask_with(address, "PATCH /api/v1/rules/per_key", &fields, r#"{"mode": "shadow"}"#)
    };
    for origin in ["http://evil.example", "null", "http://127.0.0.1:1"] {
        let answer = switch(origin);
        assert_eq!(answer.status, 403, "{origin}");
        assert!(answer.detail().starts_with("the request comes from a page of another host"));
    }
    assert_eq!(switch(&format!("http://{address}")).status, 200);
    let looking = ask_with(address, "GET /api/v1/rules", "origin: http://evil.example\r\n", "");
    assert_eq!((looking.status, looking.field("access-control-allow-origin")), (200, None));
}

#[test]
fn pages_of_other_sites_change_nothing_whatever_they_send() {
    let running = Running::start();
    let switch = |fields: &str| {
        let body = r#"{"mode": "shadow"}"#;
        ask_with(running.address(), "PATCH /api/v1/rules/per_key", fields, body)
    };
    let json = "content-type: application/json\r\n";
    for site in ["cross-site", "same-site", "CROSS-SITE", "", "none\r\nsec-fetch-site: cross-site"] {
        let answer = switch(&format!("{json}sec-fetch-site: {site}\r\n"));
        assert_eq!(answer.status, 403, "{site}");
        assert!(answer.detail().starts_with("the request comes from a page of another site"), "{answer:?}");
    }
    for other in [
        "",
        "content-type: text/plain\r\n",
        "content-type: application/x-www-form-urlencoded\r\n",
        "content-type: text/plain; application/json\r\n",
        "content-type: application/json\r\ncontent-type: text/plain\r\n",
    ] {
        let answer = switch(other);
        assert_eq!(answer.status, 415, "{other}");
        assert!(answer.detail().ends_with("it must be `application/json`"), "{answer:?}");
    }
    let form = "content-type: application/x-www-form-urlencoded\r\n";
    assert_eq!(ask_with(running.address(), "POST /api/v1/drain", form, "").status, 415);
    let rules = get(running.address(), "/api/v1/rules").json();
    assert_eq!(rules["rules"][0]["mode"], "enforce", "{rules:#}");
    assert_eq!(get(running.address(), "/readyz").status, 200);
    let charset = "content-type: Application/JSON; charset=utf-8\r\nsec-fetch-site: same-origin\r\n";
    assert_eq!(switch(charset).status, 200);
}

#[test]
fn a_whole_url_in_the_first_line_names_the_host_too() {
    let running = Running::start();
    let asked = |host: &str| get(running.address(), &format!("http://{host}/api/v1/status")).status;
    assert_eq!((asked("evil.example"), asked("127.0.0.1")), (403, 200));
}

#[test]
fn identities_that_are_not_what_they_look_like_are_refused() {
    let running = Running::start();
    let address = running.address();
    let order = r#"{"rule": "per_key", "quota": "50/s", "ttl": "1h"}"#;
    let long = "x".repeat(257);
    for (identity, fault) in [
        ("a%C2%9B2J", "has the character `\\u009b`"),
        ("%E2%80%AEtxt", "has the character `\\u202e`"),
        ("a%0Ab", "has the character `\\u000a`"),
        ("a%7F", "has the character `\\u007f`"),
        (long.as_str(), "has 257 bytes, more than 256"),
    ] {
        for answer in [
            ask(address, &format!("PUT /api/v1/overrides/{identity}"), order),
            ask(address, &format!("DELETE /api/v1/overrides/{identity}"), ""),
        ] {
            assert_eq!(answer.status, 400, "{answer:?}");
            assert!(answer.detail().starts_with(&format!("the caller's identity {fault}")), "{answer:?}");
        }
    }
    assert_eq!(get(address, "/api/v1/counters/per_key/a%C2%9B").status, 400);
    assert_eq!(get(address, "/api/v1/overrides").json()["overrides"], serde_json::json!([]));
    for identity in [r"a\u009b2J", r"\u202etxt", &long] {
        let asked = format!(r#"{{"path": "/", "headers": {{"x-api-key": "{identity}"}}}}"#);
        let answer = ask(address, "POST /api/v1/explain", &asked);
        assert_eq!(answer.status, 400, "{answer:?}");
        assert!(answer.detail().starts_with("the identity in `x-api-key` has "), "{answer:?}");
    }
}

#[test]
fn what_strangers_send_is_escaped_in_every_answer() {
    let running = Running::start();
    running.station.requests("\u{9b}2J\u{202e}odd", 12);
    for path in ["/api/v1/callers?sort=cost", "/api/v1/callers", "/api/v1/decisions"] {
        let answer = get(running.address(), path);
        assert!(answer.body.contains(r"\u009b2J\u202eodd"), "{answer:?}");
        assert!(!answer.body.contains(['\u{9b}', '\u{202e}']), "{answer:?}");
    }
}

#[test]
fn unknown_paths_and_methods_are_told() {
    let running = Running::start();
    let answer = get(running.address(), "/api/v2/status");
    assert_eq!(
        (answer.status, answer.detail().as_str()),
        (404, "there is nothing at /api/v2/status; see /api/v1/openapi.json")
    );
    let answer = ask(running.address(), "DELETE /api/v1/status", "");
    assert_eq!(
        (answer.status, answer.detail().as_str()),
        (405, "DELETE cannot be asked of /api/v1/status; see /api/v1/openapi.json")
    );
    let answer = get(running.address(), "/api/v1/counters/per_key/%FF");
    assert_eq!(answer.status, 400);
    assert!(answer.detail().contains("UTF-8"), "{answer:?}");
}

#[test]
fn bodies_that_are_too_long_are_refused() {
    let running = Running::start();
    let long = "#".repeat((4 << 20) + 1);
    let fields = "content-type: application/toml\r\n";
    let answer = ask_with(running.address(), "POST /api/v1/policy/check", fields, &long);
    assert_eq!((answer.status, answer.detail().as_str()), (413, "the body is longer than 4194304 bytes"));
}

#[test]
fn it_starts_only_where_it_is_safe_and_free() {
    let station = || Arc::new(Small::new(POLICY));
    let everywhere = Admin::start(([0, 0, 0, 0], 0).into(), None, station()).unwrap_err().to_string();
    assert!(everywhere.ends_with("where strangers can ask: set `admin_token`, or listen on 127.0.0.1"));
    let token = Token::new("s3cret");
    assert!(Admin::start(([0, 0, 0, 0], 0).into(), token, station()).is_ok());
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let problem = Admin::start(taken.local_addr().unwrap(), None, station()).unwrap_err().to_string();
    assert!(problem.starts_with("the admin API cannot listen on 127.0.0.1:"), "{problem}");
}
