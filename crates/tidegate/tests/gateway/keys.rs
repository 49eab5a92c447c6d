//! Which requests share a counter.

use crate::support::{Gateway, H2Client, Upstream};

fn start(upstream: &Upstream, rule: &str) -> Gateway {
    Gateway::before(upstream, &format!("[rule.once]\nquota = '1/h'\n{rule}"))
}

/// Sends requests one after another; each is its target and its fields.
fn statuses(gateway: &Gateway, requests: &[(&str, &[(&str, &str)])]) -> Vec<u16> {
    requests.iter().map(|(target, fields)| gateway.get(target, fields).status()).collect()
}

#[test]
fn a_rule_without_a_key_counts_everybody_together() {
    let upstream = Upstream::ok();
    for rule in ["", "key = 'global'"] {
        let gateway = start(&upstream, rule);
        assert_eq!(statuses(&gateway, &[("/a", &[]), ("/b", &[("x-api-key", "a")])]), [200, 429]);
    }
}

#[test]
fn requests_without_the_key_share_one_counter() {
    let upstream = Upstream::ok();
    let gateway = start(&upstream, "key = 'header:x-api-key'");
    let requests: [(&str, &[(&str, &str)]); 5] = [
        ("/", &[]),
        ("/", &[("x-api-key", "alice")]),
        ("/other", &[]),
        ("/", &[("x-api-key", "bob")]),
        ("/", &[("X-Api-Key", "alice")]),
    ];
    assert_eq!(statuses(&gateway, &requests), [200, 200, 429, 200, 429]);
}

#[test]
fn a_repeated_key_is_refused_as_unclear() {
    let upstream = Upstream::ok();
    let gateway = start(&upstream, "key = 'header:x-api-key'");
    let mut client = gateway.connect();
    let answer = client.get("/", &[("x-api-key", "alice"), ("X-API-Key", "bob")]);
    assert_eq!((answer.status(), answer.get("content-type")), (400, Some("application/problem+json")));
    assert_eq!(answer.json()["detail"], "the header field x-api-key may be sent only once");
    assert_eq!(upstream.bytes(), 0);
    assert_eq!(client.get("/", &[("x-api-key", "alice")]).status(), 200, "nobody was charged");
}

#[test]
fn several_sources_make_one_key() {
    let upstream = Upstream::ok();
    let gateway = start(&upstream, "key = ['header:x-api-key', 'path']");
    let (alice, bob) = ([("x-api-key", "alice")], [("x-api-key", "bob")]);
    let requests: [(&str, &[(&str, &str)]); 5] =
        [("/a", &alice), ("/b", &alice), ("/a", &bob), ("/a", &alice), ("/a?query", &bob)];
    assert_eq!(statuses(&gateway, &requests), [200, 200, 200, 429, 429]);
}

#[test]
fn parts_of_a_key_do_not_run_into_one_another() {
    let upstream = Upstream::ok();
    let gateway = start(&upstream, "key = ['header:x-a', 'header:x-b']");
    let requests: [(&str, &[(&str, &str)]); 4] = [
        ("/", &[("x-a", "1"), ("x-b", "23")]),
        ("/", &[("x-a", "12"), ("x-b", "3")]),
        ("/", &[("x-a", "123")]),
        ("/", &[("x-b", "123")]),
    ];
    assert_eq!(statuses(&gateway, &requests), [200, 200, 200, 429], "half a key is no key");
}

#[test]
fn a_route_is_a_key_and_has_its_rules() {
    let upstream = Upstream::ok();
    let gateway = Gateway::before(
        &upstream,
        "[rule.once]
        key = 'route'
        quota = '1/h'
        [[route]]
        name = 'health'
        match = { path = '/health' }
        exempt = true
        [[route]]
        name = 'writes'
        match = { method = ['POST', 'PUT'] }
        rules = ['once']
        [[route]]
        name = 'test'
        match = { header = { x-test = '1' } }
        rules = ['once']
        [[route]]
        name = 'free'",
    );
    let mut client = gateway.connect();
    let mut ask = |method, target, fields: &[(&str, &str)]| client.ask(method, target, fields, "").status();
    assert_eq!([ask("POST", "/a", &[]), ask("PUT", "/b", &[])], [200, 429]);
    assert_eq!([ask("GET", "/a", &[("x-test", "1")]), ask("GET", "/b", &[("x-test", "1")])], [200, 429]);
    assert_eq!([ask("GET", "/a", &[]), ask("GET", "/a", &[]), ask("POST", "/health", &[])], [200, 200, 200]);
}

#[test]
fn a_caller_is_known_by_the_first_source_that_is_there() {
    let upstream = Upstream::ok();
    let gateway = Gateway::before(
        &upstream,
        "[caller]\nfrom = ['header:x-api-key', 'client-ip']\n[rule.once]\nkey = 'caller'\nquota = '1/h'",
    );
    let alice = [("x-api-key", "alice")];
    assert_eq!(
        statuses(&gateway, &[("/", &alice), ("/", &[]), ("/", &alice), ("/", &[])]),
        [200, 200, 429, 429]
    );
}

#[test]
fn plans_and_overrides_come_from_the_callers_table() {
    let upstream = Upstream::ok();
    let policy = format!(
        "listen = '127.0.0.1:0'
        upstream = '{}'
        [caller]
        from = 'header:x-api-key'
        table = 'callers.toml'
        [rule.per_caller]
        key = 'caller'
        quota = '1/h'
        plans = {{ gold = {{ quota = '3/h' }} }}",
        upstream.url()
    );
    let callers = "[acct_gold]
        plan = 'gold'
        [acct_own]
        plan = 'gold'
        overrides.per_caller = { quota = '2/h', burst = 5 }";
    let gateway = Gateway::start_with(&policy, &[("callers.toml", callers)]);
    for (caller, served) in [("acct_gold", 3), ("acct_own", 5), ("acct_unknown", 1)] {
        let statuses = gateway.statuses(served + 1, "/", &[("x-api-key", caller)]);
        let (last, before) = statuses.split_last().unwrap();
        assert_eq!((before, *last), (vec![200; served].as_slice(), 429), "{caller}");
    }
}

#[test]
fn newcomers_beyond_max_keys_share_one_counter() {
    let upstream = Upstream::ok();
    let gateway = start(&upstream, "key = 'header:x-api-key'\nmax_keys = 16");
    let mut client = gateway.connect();
    let mut ask = |key: usize| client.get("/", &[("x-api-key", &format!("key-{key}"))]).status();
    let served = (0..2000).filter(|key| ask(*key) == 200).count();
    // Tables are rounded up to whole groups; what counts is that there is a bound.
    assert!((16..=200).contains(&served), "{served} keys had a counter");
    assert_eq!(ask(0), 429, "nobody gets a second burst");
    let overflow = (0..2000).map(&mut ask).filter(|status| *status == 200).count();
    assert_eq!(overflow, 0);
}

#[test]
fn a_request_is_charged_by_all_its_rules_or_by_none() {
    let upstream = Upstream::ok();
    let gateway = Gateway::before(
        &upstream,
        "[rule.per_key]
        key = 'header:x-api-key'
        quota = '3/h'
        [rule.per_path]
        key = 'path'
        quota = '1/h'",
    );
    let alice: &[(&str, &str)] = &[("x-api-key", "alice")];
    // The second is refused by its path and takes nothing from the key, or the fourth would be refused too.
    let requests = [("/a", alice), ("/a", alice), ("/b", alice), ("/c", alice), ("/d", alice)];
    assert_eq!(statuses(&gateway, &requests), [200, 429, 200, 200, 429]);
}

const KNOWN: &str = "[caller]
    from = ['header:x-api-key', 'client-ip']
    table = 'callers.toml'
    known = 'table'
    [rule.once]
    key = 'caller'
    quota = '1/h'";

fn start_known(upstream: &Upstream, rest: &str) -> Gateway {
    let policy = format!("listen = '127.0.0.1:0'\nupstream = '{}'\n{KNOWN}\n{rest}", upstream.url());
    Gateway::start_with(&policy, &[("callers.toml", "[alice]\n[bob]\nplan = 'gold'\n")])
}

#[test]
fn keys_that_are_invented_count_by_the_next_source() {
    let upstream = Upstream::ok();
    let gateway = start_known(&upstream, "plans = { gold = { quota = '3/h' } }");
    let of = |key: &str| gateway.get("/", &[("x-api-key", key)]).status();
    assert_eq!([of("alice"), of("alice")], [200, 429]);
    assert_eq!([of("bob"), of("bob"), of("bob"), of("bob")], [200, 200, 200, 429]);
    assert_eq!(
        [of("invented-1"), of("invented-2"), of("Alice"), of("alice "), of("")],
        [200, 429, 429, 429, 429]
    );
    assert_eq!(gateway.get("/", &[]).status(), 429, "the address has been used up by them");
    let client = H2Client::connect(gateway.address());
    let of = |key: &str| client.get("http://a/", &[("x-api-key", key)]).status();
    assert_eq!([of("alice"), of("invented-3")], [429, 429]);
    assert_eq!(gateway.connect_from([127, 0, 0, 9].into()).get("/", &[("x-api-key", "new")]).status(), 200);
}

#[test]
fn invented_keys_fill_no_table() {
    let upstream = Upstream::ok();
    let gateway = start_known(&upstream, "max_keys = 1024");
    let mut client = gateway.connect();
    for number in 0..3_000 {
        let key = format!("invented-{number}");
        let status = client.get("/", &[("x-api-key", &key)]).status();
        assert_eq!(status, if number == 0 { 200 } else { 429 });
    }
    assert_eq!(gateway.get("/", &[("x-api-key", "alice")]).status(), 200, "there is room for her");
}

#[test]
fn without_another_source_invented_keys_share_one_counter() {
    let upstream = Upstream::ok();
    let policy = KNOWN.replace(", 'client-ip'", "");
    let policy = format!("listen = '127.0.0.1:0'\nupstream = '{}'\n{policy}", upstream.url());
    let gateway = Gateway::start_with(&policy, &[("callers.toml", "[alice]\n")]);
    let of = |key: &str| gateway.get("/", &[("x-api-key", key)]).status();
    assert_eq!([of("one"), of("two"), of("alice"), of("alice")], [200, 429, 200, 429]);
}
