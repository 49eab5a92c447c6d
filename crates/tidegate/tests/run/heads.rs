//! What rules counted is what the service got, over thousands of requests that are written in every way there is.
//!
//! A service notes the heads it gets. From those follows which counter of each rule each request belongs to, by nothing
//! but the bytes that came. In the end every counter must stand at exactly that number: a request that was counted under
//! another name than the one that came would be missing here and too much there.

mod written;

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

use tidegate_policy::path::canonical;
use tidegate_policy::policy::inside;

use crate::gateway::support::{Gateway, Message, Upstream};
use crate::operated::Operated;
use crate::raw::{Became, RawH2};
use written::{Dice, as_fields, as_text};

const REQUESTS: usize = 20_000;

/// Requests from here are those of a trusted proxy.
const PROXY: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

const POLICY: &str = "
    [server]
    admin = '127.0.0.1:0'
    trusted_proxies = ['127.0.0.2']
    [rule.by_key]
    key = 'header:x-api-key'
    quota = '1000000/month'
    algorithm = 'fixed_window'
    [rule.by_cookie]
    key = 'header:cookie'
    quota = '1000000/month'
    algorithm = 'fixed_window'
    [rule.by_host]
    key = 'header:host'
    quota = '1000000/month'
    algorithm = 'fixed_window'
    [rule.by_path]
    key = 'path'
    quota = '1000000/month'
    algorithm = 'fixed_window'
    [rule.by_address]
    key = 'client-ip'
    quota = '1000000/month'
    algorithm = 'fixed_window'
    [rule.by_route]
    key = 'route'
    quota = '1000000/month'
    algorithm = 'fixed_window'
    [[route]]
    name = 'free'
    match = { header = { x-tier = 'free' } }
    rules = ['by_key', 'by_cookie', 'by_host', 'by_path', 'by_address', 'by_route']
    [[route]]
    name = 'posts'
    match = { method = ['POST'] }
    rules = ['by_key', 'by_cookie', 'by_host', 'by_path', 'by_address', 'by_route']
    [[route]]
    name = 'inside'
    match = { host = 'a.test' }
    rules = ['by_key', 'by_cookie', 'by_host', 'by_path', 'by_address', 'by_route']
    [[route]]
    name = 'below_a'
    match = { path = '/a/**' }
    rules = ['by_key', 'by_cookie', 'by_host', 'by_path', 'by_address', 'by_route']
    [[route]]
    name = 'rest'
    rules = ['by_key', 'by_cookie', 'by_host', 'by_path', 'by_address', 'by_route']";

/// How often each rule must have counted each key.
type Counts = BTreeMap<(&'static str, String), u64>;

/// The counters that a request belongs to, by what came of it.
fn counters(request: &Message) -> [(&'static str, String); 6] {
    let of = |name| Some(request.get(name)?.to_owned()).filter(|value| !value.is_empty());
    let or_none = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
    let path = path(request);
    [
        ("by_key", or_none(of("x-api-key"))),
        ("by_cookie", or_none(of("cookie"))),
        ("by_host", or_none(of("host"))),
        ("by_route", route(request, &path).to_owned()),
        ("by_path", path),
        ("by_address", address(request).to_string()),
    ]
}

fn path(request: &Message) -> String {
    let path = request.target().split('?').next().unwrap_or_default();
    if path == "*" {
        return "/*".to_owned();
    }
    assert_eq!(canonical(path).path, path, "it was sent on in another spelling than it was compared in");
    path.to_owned()
}

fn route(request: &Message, path: &str) -> &'static str {
    let host = request.get("host").unwrap_or_default();
    match () {
        () if request.get("x-tier") == Some("free") => "free",
        () if request.method() == "POST" => "posts",
        () if host == "a.test" || host.starts_with("a.test:") => "inside",
        () if path == "/a" || path.starts_with("/a/") => "below_a",
        () => "rest",
    }
}

/// The first hop from the right that is no trusted proxy, or the last that can be read.
fn address(request: &Message) -> IpAddr {
    let hops = request.get("x-forwarded-for").expect("the gateway writes it");
    let mut found = None;
    for hop in hops.rsplit(',') {
        let Ok(address) = hop.trim().parse::<IpAddr>() else { break };
        found = Some(inside(address));
        if found != Some(PROXY.into()) {
            break;
        }
    }
    found.expect("the last hop is the gateway's peer")
}

/// Nothing of a request is left that rules could not have seen.
fn is_bare(request: &Message) {
    let is_trusted = request.get("x-forwarded-for").is_some_and(|hops| hops.ends_with("127.0.0.2"));
    let believed = ["x-criticality", "x-real-ip", "x-original-url"];
    for (name, value) in &request.head.lines {
        let is_alias = name.contains(['_', '.']) && name != "x_other";
        let ends_here = ["keep-alive", "forwarded", "upgrade", "transfer-encoding"].contains(&name.as_str())
            || name == "te" && value != "trailers"
            || !is_trusted && believed.contains(&name.as_str());
        assert!(!is_alias && !ends_here, "{name}: {value} in {request:#?}");
    }
    for name in ["x-tier", "x-api-key", "host", "via", "x-forwarded-for", "cookie"] {
        assert!(request.all(name).len() <= 1, "{name} came twice: {request:#?}");
    }
}

/// Counts what came, and compares it with what the gateway counted.
fn compare(operated: &Operated, upstream: &Upstream, served: usize) {
    let requests = upstream.requests();
    assert_eq!(requests.len(), served, "what was answered with 200 is what came");
    let mut counts = Counts::new();
    for request in &requests {
        is_bare(request);
        for counter in counters(request) {
            *counts.entry(counter).or_default() += 1;
        }
    }
    // What has signs that nobody could write cannot be asked for.
    for ((rule, key), count) in counts.iter().filter(|((_, key), _)| !key.contains('\t')) {
        let counter = operated.get(&format!("/api/v1/counters/{rule}/{}", escaped(key)));
        assert_eq!(counter["used"].as_f64(), Some(*count as f64), "{rule} of {key:?}");
    }
    let distinct = |rule| counts.keys().filter(|(of, _)| *of == rule).count();
    assert!(served > REQUESTS / 10, "only {served} were served");
    assert!(distinct("by_path") > 20 && distinct("by_key") > 4, "{counts:#?}");
    assert_eq!(distinct("by_route"), 5, "{counts:#?}");
}

fn escaped(key: &str) -> String {
    key.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

#[test]
fn over_http_1_what_was_counted_is_what_came() {
    let upstream = Upstream::ok();
    let operated = Operated::of(Gateway::before(&upstream, POLICY));
    let (mut dice, mut served) = (Dice::new(1), 0);
    for from in [Ipv4Addr::LOCALHOST, PROXY] {
        let mut client = operated.gateway.connect_from(from);
        for _ in 0..REQUESTS / 2 {
            let text = as_text(&mut dice);
            client.send(&text);
            let answer = client.try_response().unwrap_or_else(|| panic!("no answer to {text:?}"));
            assert!(matches!(answer.status(), 200 | 400 | 405), "{answer:#?} to {text:?}");
            served += usize::from(answer.status() == 200);
            if answer.get("connection") == Some("close") || text.contains(" HTTP/1.0\r\n") {
                client = operated.gateway.connect_from(from);
            }
        }
    }
    compare(&operated, &upstream, served);
}

#[test]
fn over_http_2_what_was_counted_is_what_came() {
    let upstream = Upstream::ok();
    let operated = Operated::of(Gateway::before(&upstream, POLICY));
    let (mut dice, mut served) = (Dice::new(2), 0);
    let address = operated.gateway.address();
    for from in [Ipv4Addr::LOCALHOST, PROXY] {
        let mut client = RawH2::connect_from(from, address);
        for _ in 0..REQUESTS / 2 {
            let fields = as_fields(&mut dice);
            let fields: Vec<(&str, &[u8])> =
                fields.iter().map(|(name, value)| (name.as_str(), value.as_bytes())).collect();
            match client.ask(&fields) {
                Became::Answered(200) => served += 1,
                Became::Answered(400 | 405) | Became::Reset(1) => {}
                Became::Ended => client = RawH2::connect_from(from, address),
                other => panic!("{other:?} of {fields:?}"),
            }
        }
    }
    compare(&operated, &upstream, served);
}
