//! Rules that protect the service: places kept for what matters, and shedding by a signal.

use std::time::Instant;

use super::{Guarded, PROXY};
use crate::support::{Answer, Client, Latch, Message, PATIENCE, Upstream, request};

pub(super) const BELIEVED: &str =
    "[criticality]\nfrom = 'header:x-criticality'\n[caller]\nfrom = 'header:x-api-key'";

pub(super) const ROOM: &str = "algorithm = 'fixed'\nmax = 100";

/// A request of some criticality and its answer.
pub(super) fn get(guarded: &Guarded, target: &str, level: &str, caller: &str) -> Message {
    guarded.gateway.connect_from(PROXY).get(target, &[("x-criticality", level), ("x-api-key", caller)])
}

/// Refused by a rule that reveals no numbers.
pub(super) fn assert_is_refused(refused: &Message, rule: &str) {
    assert_eq!(refused.status(), 503, "{refused:?}");
    let who = format!("tidegate;error=destination_unavailable;details=\"rule={rule}\"");
    assert_eq!(refused.get("proxy-status"), Some(who.as_str()));
    assert_eq!(refused.get("x-envoy-overloaded"), Some("true"));
    assert!(refused.get("retry-after").is_some());
    assert_eq!((refused.get("ratelimit"), refused.get("ratelimit-policy")), (None, None));
    assert_eq!((refused.json().get("quota"), refused.json().get("violated-policies")), (None, None));
}

#[test]
fn the_last_places_are_kept_for_what_matters() {
    for capacity in ["4", "'upstream:orders'"] {
        let latch = Latch::default();
        let upstream = Upstream::holding(&latch);
        let guarded = Guarded::before(
            &upstream,
            "algorithm = 'fixed'\nmax = 4\nqueue = { timeout = '60s', order = 'fifo' }",
            &format!(
                "{BELIEVED}
                [rule.kept]
                kind = 'reserve'
                capacity = {capacity}
                reserve = {{ critical = '50%' }}"
            ),
        );
        let hold = |level: &str| {
            let mut client = guarded.gateway.connect_from(PROXY);
            client.send(request("GET", "/held", &[("x-criticality", level)], ""));
            client
        };
        let mut held: Vec<Client> = vec![hold("sheddable"), hold("sheddable_plus")];
        upstream.wait_for(2);
        for level in ["sheddable", "sheddable_plus"] {
            assert_is_refused(&get(&guarded, "/", level, "a"), "kept");
        }
        assert_eq!(get(&guarded, "/", "critical", "a").status(), 200);
        held.extend([hold("critical"), hold("critical_plus")]);
        upstream.wait_for(5);
        held.extend([hold("critical"), hold("critical_plus")]);
        guarded.until(|orders| orders["waiting"] == 2);
        assert_is_refused(&get(&guarded, "/", "sheddable", "a"), "kept");
        latch.open();
        for client in &mut held {
            assert_eq!(client.response().status(), 200);
        }
        assert_eq!(get(&guarded, "/", "sheddable", "a").status(), 200, "what was kept is open again");
    }
}

#[test]
fn a_shed_rule_hears_only_of_the_upstreams_that_it_stands_before() {
    let latch = Latch::default();
    let (slow, quick) = (Upstream::holding(&latch), Upstream::ok());
    let guarded = Guarded::before(
        &slow,
        "algorithm = 'fixed'\nmax = 2\nqueue = { timeout = '0s' }",
        &format!(
            "{BELIEVED}
            [upstream.quick]
            endpoints = ['{}']
            [rule.slow_is_busy]
            kind = 'shed'
            target = {{ in_flight = '50%' }}
            order = ['sheddable']
            ramp = '1s'
            [rule.quick_is_busy]
            kind = 'shed'
            target = {{ in_flight = '50%' }}
            order = ['sheddable']
            ramp = '1s'
            [[route]]
            match = {{ path = '/quick' }}
            upstream = 'quick'
            rules = ['quick_is_busy']
            [[route]]
            upstream = 'orders'
            rules = ['slow_is_busy']",
            quick.url()
        ),
    );
    let _held: Vec<Client> = (0..2).map(|_| guarded.send("/held", &[])).collect();
    slow.wait_for(2);
    upstream_is_shed(&guarded, "slow_is_busy");
    for _ in 0..20 {
        assert_eq!(get(&guarded, "/quick", "sheddable", "a").status(), 200, "it has nothing to do");
    }
    latch.open();
}

/// Waits until a rule sheds before its upstream says that it is full.
fn upstream_is_shed(guarded: &Guarded, rule: &str) {
    let begun = Instant::now();
    let by = format!("rule={rule}\"");
    loop {
        let refused = get(guarded, "/", "sheddable", "a");
        if refused.get("proxy-status").is_some_and(|who| who.ends_with(&by)) {
            return;
        }
        assert!(begun.elapsed() < PATIENCE, "{refused:?}");
    }
}

#[test]
fn what_a_reserve_holds_back_is_wanted_of_the_upstream() {
    let latch = Latch::default();
    let upstream = Upstream::holding(&latch);
    let guarded = Guarded::before(
        &upstream,
        "algorithm = 'fixed'\nmax = 4",
        &format!(
            "{BELIEVED}
            [rule.kept]
            kind = 'reserve'
            capacity = 2
            reserve = {{ critical = '50%' }}"
        ),
    );
    let _held = guarded.send("/held", &[]);
    upstream.wait_for(1);
    let begun = Instant::now();
    // Of ten one is served, while a quarter of the places are busy: four could be, and ten are wanted.
    while guarded.orders()["wanted_ratio"].as_f64().unwrap() < 1.5 {
        assert_eq!(get(&guarded, "/", "critical", "a").status(), 200);
        for _ in 0..9 {
            assert_is_refused(&get(&guarded, "/", "sheddable", "a"), "kept");
        }
        assert!(begun.elapsed() < PATIENCE, "{:#}", guarded.orders());
    }
    latch.open();
}

/// Says what a signal is at the moment.
pub(super) fn tell(guarded: &Guarded, value: f64) {
    let fields = [("host", "127.0.0.1"), ("content-type", "application/json")];
    let body = format!("{{\"value\": {value}}}");
    let answer = Client::connect(guarded.admin).ask("PUT", "/api/v1/signals/backlog", &fields, &body);
    assert_eq!(answer.status(), 200, "{answer:?}");
}

/// How many of twenty callers are served.
pub(super) fn served(guarded: &Guarded, target: &str, level: &str) -> usize {
    let callers = (0..20).map(|number| get(guarded, target, level, &format!("caller {number}")));
    callers.filter(|answer| answer.status() == 200).count()
}

/// Tells a signal until what is asked is so.
#[track_caller]
fn told_until(guarded: &Guarded, value: f64, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    loop {
        tell(guarded, value);
        if is_so() {
            return;
        }
        assert!(begun.elapsed() < PATIENCE, "{}", guarded.ask("/api/v1/status").text());
    }
}

#[test]
fn while_a_signal_is_above_its_target_the_least_critical_are_shed_first() {
    let upstream = Upstream::ok();
    let guarded = Guarded::before(
        &upstream,
        ROOM,
        &format!(
            "{BELIEVED}
            [signal.backlog]
            from = 'api'
            [rule.shedding]
            kind = 'shed'
            target = {{ backlog = 100 }}
            order = ['sheddable', 'sheddable_plus']
            ramp = '1s'
            [[route]]
            name = 'cheap'
            match = {{ path = '/cheap' }}
            rules = ['shedding']
            degrade = {{ when = 'shedding', status = 203, body = 'cheap' }}
            [[route]]
            name = 'rest'
            rules = ['shedding']"
        ),
    );
    tell(&guarded, 99.0);
    assert_eq!(served(&guarded, "/", "sheddable"), 20);
    told_until(&guarded, 1_000.0, || served(&guarded, "/", "sheddable") == 0);
    assert_is_refused(&get(&guarded, "/", "sheddable", "a"), "shedding");
    let cheaper = get(&guarded, "/cheap", "sheddable", "a");
    assert_eq!((cheaper.status(), cheaper.get("tidegate-degraded")), (203, Some("shedding")));
    told_until(&guarded, 1_000.0, || served(&guarded, "/", "sheddable_plus") == 0);
    assert_eq!(served(&guarded, "/", "critical"), 20, "not in the rule's order");
    assert_eq!(served(&guarded, "/", "critical_plus"), 20);
    assert_eq!(guarded.ask("/readyz").status(), 200);
    told_until(&guarded, 0.0, || served(&guarded, "/", "sheddable_plus") == 20);
    told_until(&guarded, 0.0, || served(&guarded, "/", "sheddable") == 20);
    // In some hours this caller belongs to the cohort that is let in last.
    told_until(&guarded, 0.0, || get(&guarded, "/cheap", "sheddable", "a").text() == "hello");
}

#[test]
fn a_signal_may_come_with_the_answers() {
    let upstream = Upstream::answering(|request| {
        let backlog = request.get("x-say").unwrap_or("0");
        Answer::with(&[("x-backlog", backlog)], "hello")
    });
    let guarded = Guarded::before(
        &upstream,
        ROOM,
        &format!(
            "{BELIEVED}
            [signal.backlog]
            from = 'response_header:x-backlog'
            [rule.shedding]
            kind = 'shed'
            target = {{ backlog = 100 }}
            order = ['sheddable']
            ramp = '1s'"
        ),
    );
    let begun = Instant::now();
    let say = |backlog: &str| {
        let fields = [("x-criticality", "critical"), ("x-say", backlog)];
        assert_eq!(guarded.gateway.connect_from(PROXY).get("/", &fields).status(), 200);
    };
    while get(&guarded, "/", "sheddable", "a").status() == 200 {
        (0..10).for_each(|_| say("1000"));
        assert!(begun.elapsed() < PATIENCE, "{}", guarded.ask("/api/v1/signals").text());
    }
    for odd in ["", "many", "NaN", "-1e999"] {
        say(odd);
    }
    while get(&guarded, "/", "sheddable", "a").status() == 503 {
        (0..10).for_each(|_| say("0"));
        assert!(begun.elapsed() < 2 * PATIENCE, "{}", guarded.ask("/api/v1/signals").text());
    }
}
