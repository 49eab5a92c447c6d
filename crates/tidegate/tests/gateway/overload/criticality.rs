//! Who may say how critical a request is, and what its service hears of it.

use super::{ONE, PROXY, policy};
use crate::support::{Client, Gateway, Message, Upstream};

const CRITICALITY: &str = "[criticality]
    from = ['header:x-criticality', 'baggage:criticality']
    [[criticality.assign]]
    match = { path = '/pay/**' }
    as = 'critical_plus'
    [[criticality.assign]]
    match = { header = { x-test-mode = '1' } }
    as = 'sheddable'";

fn start(upstream: &Upstream, rest: &str) -> Gateway {
    Gateway::start(&policy(upstream, ONE, rest))
}

/// What the service hears of a request.
fn heard(upstream: &Upstream, client: &mut Client, target: &str, fields: &[(&str, &str)]) -> Message {
    assert_eq!(client.get(target, fields).status(), 200);
    upstream.requests().pop().unwrap()
}

#[test]
fn a_trusted_peer_is_believed_and_its_word_goes_on() {
    let upstream = Upstream::ok();
    let gateway = start(&upstream, CRITICALITY);
    let mut proxy = gateway.connect_from(PROXY);
    for (fields, level) in [
        (&[("X-Criticality", "sheddable_plus")][..], "sheddable_plus"),
        (&[("Baggage", "criticality=critical_plus")], "critical_plus"),
        (&[("X-Criticality", "sheddable"), ("Baggage", "criticality=critical_plus")], "sheddable"),
        (&[("X-Criticality", "highest")], "critical"),
        (&[], "critical"),
    ] {
        let request = heard(&upstream, &mut proxy, "/", fields);
        assert_eq!(request.get("x-criticality"), Some(level), "{fields:?}");
        assert_eq!(request.get("baggage"), Some(format!("criticality={level}").as_str()), "{fields:?}");
    }
}

#[test]
fn a_stranger_is_not_believed_and_its_word_ends_here() {
    let upstream = Upstream::ok();
    let gateway = start(&upstream, CRITICALITY);
    let mut stranger = gateway.connect();
    for fields in [
        &[("X-Criticality", "sheddable")][..],
        &[("x-criticality", "critical_plus"), ("X-CRITICALITY", "critical_plus")],
        &[("Baggage", "criticality=critical_plus"), ("baggage", "criticality = sheddable;p=1")],
    ] {
        let request = heard(&upstream, &mut stranger, "/", fields);
        assert_eq!(request.all("x-criticality"), ["critical"], "{fields:?}");
        assert_eq!(request.all("baggage"), ["criticality=critical"], "{fields:?}");
    }
}

#[test]
fn a_rule_is_above_what_anybody_says() {
    let upstream = Upstream::ok();
    let gateway = start(&upstream, CRITICALITY);
    let mut proxy = gateway.connect_from(PROXY);
    let request = heard(&upstream, &mut proxy, "/pay/7", &[("X-Criticality", "sheddable")]);
    assert_eq!(request.get("x-criticality"), Some("critical_plus"));
    let fields = [("X-Criticality", "critical_plus"), ("X-Test-Mode", "1")];
    let request = heard(&upstream, &mut proxy, "/", &fields);
    assert_eq!(request.get("x-criticality"), Some("sheddable"));
    let request = heard(&upstream, &mut gateway.connect(), "/pay/7", &[]);
    assert_eq!(request.get("x-criticality"), Some("critical_plus"), "rules are for strangers too");
}

#[test]
fn other_members_of_baggage_pass() {
    let upstream = Upstream::ok();
    let gateway = start(&upstream, CRITICALITY);
    let fields = [
        ("Baggage", "user=7;secret, criticality=critical_plus, criticality_of_mine=1"),
        ("Baggage", "tenant=a%20b"),
    ];
    let request = heard(&upstream, &mut gateway.connect(), "/", &fields);
    assert_eq!(
        request.all("baggage"),
        ["user=7;secret,criticality_of_mine=1,tenant=a%20b,criticality=critical"]
    );
    let request = heard(&upstream, &mut gateway.connect_from(PROXY), "/", &fields);
    assert_eq!(
        request.all("baggage"),
        ["user=7;secret,criticality_of_mine=1,tenant=a%20b,criticality=critical_plus"]
    );
}

#[test]
fn where_the_policy_says_nothing_of_it_only_strangers_are_silenced() {
    let upstream = Upstream::ok();
    let gateway = start(&upstream, "");
    let fields = [("X-Criticality", "critical_plus"), ("Baggage", "criticality=critical_plus,user=7")];
    let request = heard(&upstream, &mut gateway.connect(), "/", &fields);
    assert_eq!((request.get("x-criticality"), request.get("baggage")), (None, Some("user=7")));
    let only = [("Baggage", "criticality=critical_plus")];
    let request = heard(&upstream, &mut gateway.connect(), "/", &only);
    assert_eq!((request.get("x-criticality"), request.get("baggage")), (None, None));
    let request = heard(&upstream, &mut gateway.connect_from(PROXY), "/", &fields);
    assert_eq!(
        (request.get("x-criticality"), request.get("baggage")),
        (Some(fields[0].1), Some(fields[1].1))
    );
    let request = heard(&upstream, &mut gateway.connect(), "/", &[]);
    assert_eq!((request.get("x-criticality"), request.get("baggage")), (None, None), "nothing is made up");
}
