//! Who is served next when a place comes back.

use std::time::{Duration, Instant};

use http::Request;

use super::{Guarded, ONE_AND_A_QUEUE, PROXY};
use crate::support::{self, Client, H2Client, Latch, Upstream, request};

const BELIEVED: &str = "[criticality]\nfrom = 'header:x-criticality'\n[caller]\nfrom = 'header:x-api-key'";

/// A gateway whose only place is taken until the latch opens.
fn full(upstream: &Upstream, concurrency: &str) -> (Guarded, Client) {
    let guarded = Guarded::before(upstream, concurrency, BELIEVED);
    let held = guarded.send("/held", &[]);
    upstream.wait_for(1);
    (guarded, held)
}

/// A target, a criticality and a caller.
type Asked<'a> = (&'a str, &'a str, &'a str);

/// Lets groups of requests wait one behind another, and gives all in the order in which they were served.
fn served(concurrency: &str, waiting: &[&[Asked<'_>]]) -> Vec<String> {
    // Some of them are shed if half a second ends while they come; then all begin again.
    (0..50).find_map(|_| try_served(concurrency, waiting)).expect("they come within half a second")
}

fn try_served(concurrency: &str, waiting: &[&[Asked<'_>]]) -> Option<Vec<String>> {
    let latch = Latch::default();
    let upstream = Upstream::holding(&latch);
    let (guarded, mut held) = full(&upstream, concurrency);
    // They connect before the first of them waits, and so come the sooner one after another.
    let mut clients: Vec<Client> =
        waiting.concat().iter().map(|_| guarded.gateway.connect_from(PROXY)).collect();
    let (mut silent, mut count) = (clients.iter_mut(), 0);
    for group in waiting {
        for ((target, level, caller), client) in group.iter().zip(&mut silent) {
            client.send(request("GET", target, &[("x-criticality", level), ("x-api-key", caller)], ""));
            count += 1;
        }
        guarded.until(|orders| orders["waiting"] == count || guarded.turned_away() > 0);
    }
    latch.open();
    assert_eq!(held.response().status(), 200);
    let statuses: Vec<u16> = clients.iter_mut().map(|client| client.response().status()).collect();
    (guarded.turned_away() == 0).then(|| {
        assert!(statuses.iter().all(|status| *status == 200), "{statuses:?}");
        upstream.targets().split_off(1)
    })
}

#[test]
fn the_most_critical_is_served_first_whoever_came_first() {
    let waiting = [
        ("/1-sheddable", "sheddable", "a"),
        ("/2-critical", "critical", "a"),
        ("/3-sheddable-plus", "sheddable_plus", "a"),
        ("/4-critical-plus", "critical_plus", "a"),
        ("/5-sheddable", "sheddable", "a"),
        ("/6-critical-plus", "critical_plus", "a"),
        ("/7-unsaid-so-critical", "unheard of", "a"),
        ("/8-sheddable-plus", "sheddable_plus", "a"),
    ];
    let expected = [
        "/4-critical-plus",
        "/6-critical-plus",
        "/2-critical",
        "/7-unsaid-so-critical",
        "/3-sheddable-plus",
        "/8-sheddable-plus",
        "/1-sheddable",
        "/5-sheddable",
    ];
    for order in ["fifo", "adaptive_lifo", "codel"] {
        let concurrency =
            format!("algorithm = 'fixed'\nmax = 1\nqueue = {{ timeout = '60s', order = '{order}' }}");
        let waiting: Vec<_> = waiting.chunks(1).collect();
        assert_eq!(served(&concurrency, &waiting), expected, "{order}: none of these queues stands");
    }
}

#[test]
fn a_greedy_caller_waits_behind_its_own_requests_where_the_order_is_fair() {
    let greedy = (0..30).map(|number| (format!("/greedy/{number}"), "greedy".to_owned()));
    let modest = (0..4).map(|number| (format!("/modest/{number}"), format!("modest {number}")));
    let all: Vec<(String, String)> = greedy.chain(modest).collect();
    let all: Vec<Asked<'_>> =
        all.iter().map(|(target, caller)| (target.as_str(), "critical", caller.as_str())).collect();
    let (greedy, modest) = all.split_at(30);
    let concurrency = "algorithm = 'fixed'\nmax = 1\nqueue = { timeout = '60s', order = 'fair' }";
    let served = served(concurrency, &[greedy, modest]);
    assert_eq!(served.len(), 34);
    let last = served.iter().rposition(|target| target.starts_with("/modest")).unwrap();
    // A caller has eight lists at most, so eight of its requests are served in a round.
    assert!(last < 12, "{served:#?}");
}

#[test]
fn the_newest_is_served_first_while_a_queue_stands() {
    let latch = Latch::default();
    let upstream = Upstream::holding(&latch);
    let concurrency = "algorithm = 'fixed'\nmax = 1\nqueue = { timeout = '2s', order = 'adaptive_lifo' }";
    let (guarded, mut held) = full(&upstream, concurrency);
    // A queue stands once it has not been empty for twice as long as anybody may wait in it.
    let (begun, mut clients) = (Instant::now(), Vec::new());
    while begun.elapsed() < Duration::from_millis(4_500) || guarded.orders()["waiting"].as_u64() < Some(3) {
        // Of many callers, since some of them are shed after a while.
        let (target, caller) = (format!("/{}", clients.len()), format!("caller {}", clients.len()));
        let mut client = guarded.gateway.connect_from(PROXY);
        let fields = [("x-criticality", "critical_plus"), ("x-api-key", &caller)];
        client.send(request("GET", &target, &fields, ""));
        clients.push(client);
        // One after another, whichever thread of the gateway has its connection.
        guarded.until(|orders| {
            orders["waiting"].as_u64().unwrap() + guarded.turned_away() == clients.len() as u64
        });
    }
    latch.open();
    assert_eq!(held.response().status(), 200);
    guarded.until(|orders| orders["waiting"] == 0 && orders["in_flight"] == 0);
    let served: Vec<u32> =
        upstream.targets()[1..].iter().map(|target| target[1..].parse().unwrap()).collect();
    assert!(served.len() > 1 && served.is_sorted_by(|one, next| one > next), "{served:?}");
}

#[test]
fn nobody_waits_for_longer_than_the_policy_says() {
    let latch = Latch::default();
    let upstream = Upstream::holding(&latch);
    let (guarded, mut held) = full(&upstream, "algorithm = 'fixed'\nmax = 1\nqueue = { timeout = '300ms' }");
    let begun = Instant::now();
    assert_eq!(guarded.gateway.get("/", &[]).status(), 503);
    let waited = begun.elapsed();
    assert!((Duration::from_millis(290)..Duration::from_secs(3)).contains(&waited), "{waited:?}");
    let status = guarded.orders();
    assert_eq!((&status["waiting"], &status["in_flight"]), (&0.into(), &1.into()));
    latch.open();
    assert_eq!(held.response().status(), 200);
}

#[test]
fn no_more_wait_than_the_policy_says_and_the_least_critical_makes_room() {
    let latch = Latch::default();
    let upstream = Upstream::holding(&latch);
    let (guarded, mut held) = full(
        &upstream,
        "algorithm = 'fixed'\nmax = 1\nqueue = { timeout = '60s', order = 'fifo', max_waiting = 2 }",
    );
    let level = |level| [("x-criticality", level)];
    let mut first = guarded.line_up("/first", &level("sheddable"), 1);
    let mut second = guarded.line_up("/second", &level("sheddable"), 2);
    assert_eq!(guarded.gateway.connect_from(PROXY).get("/third", &level("sheddable")).status(), 503);
    let mut critical = guarded.line_up("/critical", &level("critical"), 2);
    assert_eq!(second.response().status(), 503, "it would have been served last");
    latch.open();
    for client in [&mut held, &mut critical, &mut first] {
        assert_eq!(client.response().status(), 200);
    }
    assert_eq!(upstream.targets(), ["/held", "/critical", "/first"]);
}

#[test]
fn requests_of_one_connection_wait_beside_each_other_over_http_2() {
    let latch = Latch::default();
    let upstream = Upstream::holding(&latch);
    let (guarded, mut held) = full(&upstream, ONE_AND_A_QUEUE);
    let client = H2Client::connect(guarded.gateway.address());
    let asked: Vec<_> = (1..=3)
        .map(|count| {
            let request = Request::get("http://service.test/").body(support::full("")).unwrap();
            let mut sender = client.sender();
            let asked = client.runtime().spawn(async move { sender.send_request(request).await });
            guarded.until(|orders| orders["waiting"] == count);
            asked
        })
        .collect();
    latch.open();
    assert_eq!(held.response().status(), 200);
    for asked in asked {
        assert_eq!(client.runtime().block_on(asked).unwrap().unwrap().status(), 200);
    }
}
