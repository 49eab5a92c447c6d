//! Rules that shed by what the gateway measures itself, and by what upstreams say of themselves.
//!
//! `memory_pressure` is not among them: it would rise only if the machine swapped.

use std::time::{Duration, Instant};

use super::rules::{BELIEVED, ROOM, assert_is_refused, get, served, tell};
use super::{Guarded, ONE_AND_A_QUEUE, PROXY, policy};
use crate::support::{Answer, Client, Latch, Message, PATIENCE, Upstream, request, until};

/// A rule that sheds what is sheddable while a signal is above its target, as quickly as it is steered.
fn shedding(target: &str) -> String {
    format!(
        "{BELIEVED}
        [rule.shedding]
        kind = 'shed'
        target = {{ {target} }}
        order = ['sheddable']
        ramp = '250ms'"
    )
}

fn is_shed(answer: &Message) -> bool {
    answer.get("proxy-status").is_some_and(|who| who.ends_with("rule=shedding\""))
}

/// Does something until the rule sheds.
#[track_caller]
fn sheds_when(guarded: &Guarded, something: impl Fn()) {
    let begun = Instant::now();
    loop {
        something();
        let answer = get(guarded, "/", "sheddable", "a");
        if is_shed(&answer) {
            return assert_is_refused(&answer, "shedding");
        }
        assert!(begun.elapsed() < PATIENCE, "{}", guarded.ask("/api/v1/signals").text());
    }
}

/// Does something until the rule lets everybody pass.
#[track_caller]
fn opens_when(guarded: &Guarded, something: impl Fn()) {
    let begun = Instant::now();
    loop {
        something();
        if served(guarded, "/", "sheddable") == 20 {
            return;
        }
        assert!(begun.elapsed() < 2 * PATIENCE, "{}", guarded.ask("/api/v1/signals").text());
    }
}

#[track_caller]
fn critical_passes(guarded: &Guarded) {
    assert_eq!(served(guarded, "/", "critical"), 20, "not in the rule's order");
}

#[test]
fn upstreams_that_say_that_they_are_busy_are_spared() {
    let upstream = Upstream::answering(|request| match request.get("x-say") {
        Some(report) => Answer::with(&[("endpoint-load-metrics", report)], "hello"),
        None => Answer::text("hello"),
    });
    let guarded = Guarded::before(&upstream, ROOM, &shedding("upstream_utilization = '80%'"));
    let say = |report: &str| {
        let fields = [("x-criticality", "critical"), ("x-say", report)];
        assert_eq!(guarded.gateway.connect_from(PROXY).get("/", &fields).status(), 200);
    };
    assert_eq!(served(&guarded, "/", "sheddable"), 20);
    sheds_when(&guarded, || say("TEXT cpu_utilization=1"));
    critical_passes(&guarded);
    opens_when(&guarded, || say("TEXT cpu_utilization=0.01"));
}

#[test]
fn long_waits_for_a_place_shed_until_they_are_short_again() {
    let latch = Latch::default();
    let upstream = Upstream::holding(&latch);
    let guarded = Guarded::before(&upstream, ONE_AND_A_QUEUE, &shedding("queue_delay = '100ms'"));
    let mut held = guarded.send("/held", &[]);
    upstream.wait_for(1);
    let mut waiting = guarded.line_up("/", &[], 1);
    let begun = Instant::now();
    // Long enough to be above the target for seconds, though each who is served at once takes from it.
    guarded.until(|_| begun.elapsed() > Duration::from_millis(300));
    latch.open();
    assert_eq!([held.response().status(), waiting.response().status()], [200; 2]);
    sheds_when(&guarded, || ());
    // The upstream's own edge may have risen while its place was held.
    until(|| served(&guarded, "/", "critical") == 20);
    opens_when(&guarded, || until(|| served(&guarded, "/", "critical") == 20));
}

#[test]
fn loops_that_are_late_shed_until_they_are_in_time_again() {
    let upstream = Upstream::ok();
    let guarded = Guarded::before(&upstream, ROOM, &shedding("event_loop = '50ms'"));
    sheds_when(&guarded, || {
        let begun = Instant::now();
        guarded.gateway.while_stopped(|| until(|| begun.elapsed() > Duration::from_secs(1)));
    });
    critical_passes(&guarded);
    opens_when(&guarded, || ());
}

/// What the signal `cpu` is when the gateway next tells everything, so that nobody works meanwhile.
fn next_cpu(listener: &mut Client) -> f64 {
    listener.until(b"\ndata: ").expect("it goes on");
    let status = listener.until(b"\n").expect("it ends");
    let status: serde_json::Value = serde_json::from_slice(&status).unwrap();
    let mut signals = status["signals"].as_array().unwrap().iter();
    signals.find(|signal| signal["signal"] == "cpu").unwrap()["value"].as_f64().unwrap_or(0.0)
}

#[test]
fn processors_in_use_shed_until_they_are_idle_again() {
    const TARGET: f64 = 0.05;
    let upstream = Upstream::ok();
    let guarded = Guarded::before(&upstream, ROOM, &shedding("cpu = '5%'"));
    let processors = std::thread::available_parallelism().unwrap().get();
    sheds_when(&guarded, || {
        std::thread::scope(|scope| {
            for _ in 0..processors {
                scope.spawn(|| {
                    let mut client = guarded.gateway.connect_from(PROXY);
                    for _ in 0..200 {
                        assert_eq!(client.get("/", &[("x-criticality", "critical")]).status(), 200);
                    }
                });
            }
        });
    });
    critical_passes(&guarded);
    let (mut listener, begun) = (Client::connect(guarded.admin), Instant::now());
    listener.send(request("GET", "/api/v1/stream", &[("host", "127.0.0.1")], ""));
    while is_shed(&get(&guarded, "/", "sheddable", "a")) {
        let cpu = next_cpu(&mut listener);
        // Where others work under the same quota, it may stay above the target for as long as they do.
        if begun.elapsed() > PATIENCE && cpu > TARGET {
            return;
        }
        assert!(begun.elapsed() < 2 * PATIENCE, "{}", guarded.ask("/api/v1/status").text());
    }
}

#[test]
fn memory_above_its_target_keeps_shed_what_is_shed() {
    // A test cannot fill this machine's memory, and the little that the gateway holds raises the edge hardly at all. But
    // above its target it keeps an edge from falling that another signal has raised.
    let upstream = Upstream::ok();
    let rules = |tight: &str| {
        format!(
            "{BELIEVED}
            [signal.backlog]
            from = 'api'
            [rule.shedding]
            kind = 'shed'
            target = {{ backlog = 100, memory = '{tight}' }}
            order = ['sheddable']
            ramp = '250ms'
            [rule.roomy]
            kind = 'shed'
            target = {{ backlog = 100, memory = '99.9%' }}
            order = ['sheddable']
            ramp = '250ms'
            [[route]]
            name = 'roomy'
            match = {{ path = '/roomy' }}
            rules = ['roomy']
            [[route]]
            name = 'tight'
            rules = ['shedding']"
        )
    };
    let guarded = Guarded::before(&upstream, ROOM, &rules("0.0001%"));
    let tell_until = |value, is_so: &dyn Fn() -> bool| {
        until(|| {
            tell(&guarded, value);
            is_so()
        });
    };
    let served_by = |target| served(&guarded, target, "sheddable");
    tell_until(1_000.0, &|| served_by("/") == 0 && served_by("/roomy") == 0);
    tell_until(0.0, &|| served_by("/roomy") == 20);
    assert_is_refused(&get(&guarded, "/", "sheddable", "a"), "shedding");
    assert_eq!(served_by("/"), 0, "of memory everything is in use that may be");
    critical_passes(&guarded);
    guarded.change(&policy(&upstream, ROOM, &rules("99.9%")), 2);
    tell_until(0.0, &|| served_by("/") == 20);
}
