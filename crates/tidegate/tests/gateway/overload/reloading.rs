//! What becomes of limits, and of those in flight, when the policy changes.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::{Guarded, ONE, ONE_AND_A_QUEUE, policy};
use crate::support::{Answer, Client, Latch, PATIENCE, Upstream};

#[test]
fn the_limit_that_was_found_survives_a_change_of_the_upstream() {
    let upstream = Upstream::answering(|request| match request.target() {
        "/busy" => Answer::raw("HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n"),
        _ => Answer::text("hello"),
    });
    let limits = "algorithm = 'aimd'\nmin = 5\nmax = 100";
    let first = policy(&upstream, limits, "");
    let guarded = Guarded::start(&first);
    let begun = guarded.orders()["limit"].as_u64().unwrap();
    let (mut client, began) = (guarded.gateway.connect(), Instant::now());
    while guarded.orders()["limit"].as_u64().unwrap() >= begun - 5 {
        client.get("/busy", &[]);
        assert!(began.elapsed() < PATIENCE, "it has not moved: {:#}", guarded.orders());
    }
    let found = guarded.orders()["limit"].clone();
    let endpoints = format!("endpoints = ['{}']", upstream.url());
    let changed = first.replace(&endpoints, &format!("{endpoints}\ntimeout = '7s'"));
    guarded.change(&changed, 2);
    assert_eq!(guarded.orders()["limit"], found);
    assert_eq!(client.get("/", &[]).status(), 200);

    let narrower = changed.replace("max = 100", "max = 9").replace("min = 5", "min = 3");
    guarded.change(&narrower, 3);
    assert_eq!(guarded.orders()["limit"], 9, "within the new bounds");
    assert_eq!(client.get("/", &[]).status(), 200);
}

#[test]
fn whoever_is_in_flight_or_waits_stays_where_it_is_when_the_limit_is_changed() {
    let latch = Latch::default();
    let upstream = Upstream::holding(&latch);
    let of = |max| format!("algorithm = 'fixed'\nmax = {max}\nqueue = {{ timeout = '60s', order = 'fifo' }}");
    let guarded = Guarded::before(&upstream, &of(2), "");
    let mut callers: Vec<Client> = (0..5).map(|_| guarded.send("/held", &[])).collect();
    guarded.until(|orders| orders["in_flight"] == 2 && orders["waiting"] == 3);

    guarded.change(&policy(&upstream, &of(3), ""), 2);
    guarded.until(|orders| orders["in_flight"] == 3 && orders["waiting"] == 2);
    upstream.wait_for(3);

    guarded.change(&policy(&upstream, &of(1), ""), 3);
    let orders = guarded.orders();
    assert_eq!((&orders["limit"], &orders["in_flight"]), (&1.into(), &3.into()), "nobody is counted twice");
    latch.open();
    assert!(callers.iter_mut().all(|caller| caller.response().status() == 200));
    guarded.until(|orders| orders["in_flight"] == 0);
}

#[test]
fn what_is_shed_stays_shed_when_an_endpoint_is_added() {
    let latch = Latch::default();
    let (upstream, other) = (Upstream::holding(&latch), Upstream::ok());
    let first = policy(&upstream, ONE, "");
    let guarded = Guarded::start(&first);
    let _held = guarded.send("/held", &[]);
    upstream.wait_for(1);
    let two = format!("endpoints = ['{}', '{}']", upstream.url(), other.url());
    let changed = first.replace(&format!("endpoints = ['{}']", upstream.url()), &two);
    let (is_over, began) = (AtomicBool::new(false), Instant::now());
    let (orders, silence) = thread::scope(|scope| {
        // While nobody asks the edge opens again, so somebody does all the time.
        let asking = scope.spawn(|| {
            let (mut client, mut last, mut longest) =
                (guarded.gateway.connect(), Instant::now(), Duration::ZERO);
            while !is_over.load(Ordering::Relaxed) && began.elapsed() < 3 * PATIENCE {
                client.get("/", &[]);
                let now = Instant::now();
                (last, longest) = (now, longest.max(now - last));
            }
            longest
        });
        guarded.until(|orders| orders["shed"]["sheddable"] == 1.0);
        guarded.change(&changed, 2);
        let orders = guarded.orders();
        is_over.store(true, Ordering::Relaxed);
        (orders, asking.join().unwrap())
    });
    let is_shed = orders["shed"]["sheddable"] == 1.0;
    // It falls only where nobody came for half a second, as when this machine stands still.
    assert!(is_shed || silence >= Duration::from_millis(500), "{orders:#}");
    assert_eq!(orders["in_flight"], 1);
    latch.open();
}

#[test]
fn a_new_queue_begins_with_the_limit_and_those_in_flight_end_well() {
    let latch = Latch::default();
    let upstream = Upstream::holding(&latch);
    let queue = "algorithm = 'fixed'\nmax = 3\nqueue = { timeout = '60s' }";
    let guarded = Guarded::before(&upstream, queue, "");
    let mut before: Vec<Client> = (0..5).map(|_| guarded.send("/held/before", &[])).collect();
    guarded.until(|orders| orders["in_flight"] == 3 && orders["waiting"] == 2);

    guarded.change(&policy(&upstream, ONE, ""), 2);
    let orders = guarded.orders();
    assert_eq!((&orders["limit"], &orders["in_flight"]), (&1.into(), &0.into()));
    let mut first = guarded.send("/held/after", &[]);
    upstream.wait_for(4);
    assert_eq!(guarded.gateway.get("/", &[]).status(), 503);

    latch.open();
    assert_eq!(first.response().status(), 200);
    for client in &mut before {
        assert_eq!(client.response().status(), 200, "they are served, also those who waited");
    }
    assert_eq!(guarded.gateway.get("/", &[]).status(), 200);
}

#[test]
fn a_policy_that_leaves_the_upstream_alone_leaves_those_who_wait_alone() {
    let latch = Latch::default();
    let upstream = Upstream::holding(&latch);
    let guarded = Guarded::before(&upstream, ONE_AND_A_QUEUE, "");
    let mut held = guarded.send("/held", &[]);
    upstream.wait_for(1);
    let mut waiting = guarded.line_up("/", &[], 1);
    guarded.change(&policy(&upstream, ONE_AND_A_QUEUE, "[rule.all]\nquota = '1000/s'"), 2);
    let orders = guarded.orders();
    assert_eq!((&orders["in_flight"], &orders["waiting"]), (&1.into(), &1.into()), "the same places");
    latch.open();
    assert_eq!([held.response().status(), waiting.response().status()], [200; 2]);
}
