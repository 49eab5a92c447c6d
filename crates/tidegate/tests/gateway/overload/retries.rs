//! When so many retry that all of a kind must be overloaded, refusals say that retrying is no use.

use super::{Guarded, ONE, PROXY};
use crate::support::{Client, Latch, Message, Upstream};

/// A gateway with no place left.
fn full(upstream: &Upstream) -> (Guarded, Client) {
    let guarded = Guarded::before(upstream, ONE, "");
    let held = guarded.send("/held", &[]);
    upstream.wait_for(1);
    (guarded, held)
}

/// First and second attempts by turns, all of which are refused.
fn attempts(client: &mut Client, count: usize, fields: &[(&str, &str)]) -> Vec<Message> {
    let attempt = |number: usize| {
        let attempt = [("x-envoy-attempt-count", if number.is_multiple_of(2) { "1" } else { "2" })];
        client.get("/", &[&attempt, fields].concat())
    };
    let refused: Vec<Message> = (0..count).map(attempt).collect();
    refused
}

#[test]
fn when_half_of_all_are_second_attempts_retries_are_advised_against() {
    let latch = Latch::default();
    let upstream = Upstream::holding(&latch);
    let (guarded, mut held) = full(&upstream);
    let mut proxy = guarded.gateway.connect_from(PROXY);
    let refused = attempts(&mut proxy, 400, &[]);
    assert!(refused.iter().all(|refused| refused.status() == 503));
    assert_eq!(refused[0].get("tidegate-retry"), None, "one says nothing yet");
    let never = refused.iter().skip(200).filter(|refused| refused.get("tidegate-retry") == Some("never"));
    let never: Vec<&Message> = never.collect();
    // One in sixteen may try again, so that it is seen when things get better.
    assert!((180..200).contains(&never.len()), "{}", never.len());
    assert!(never.iter().all(|refused| refused.get("retry-after").is_none()), "it says one thing only");
    assert_eq!(guarded.orders()["advises_against_retries"], true);

    let calls = attempts(&mut proxy, 32, &[("content-type", "application/grpc"), ("te", "trailers")]);
    assert!(calls.iter().all(|call| (call.status(), call.get("grpc-status")) == (200, Some("14"))));
    let never = calls.iter().filter(|call| call.get("grpc-retry-pushback-ms") == Some("-1")).count();
    assert!((28..32).contains(&never), "{never}");
    latch.open();
    assert_eq!(held.response().status(), 200);
}

#[test]
fn what_strangers_say_of_their_attempts_is_not_counted() {
    let latch = Latch::default();
    let upstream = Upstream::holding(&latch);
    let (guarded, mut held) = full(&upstream);
    let refused = attempts(&mut guarded.gateway.connect(), 400, &[]);
    assert!(refused.iter().all(|refused| refused.get("tidegate-retry").is_none()));
    assert_eq!(guarded.orders()["advises_against_retries"], false);
    latch.open();
    assert_eq!(held.response().status(), 200);
}

#[test]
fn first_attempts_alone_and_odd_numbers_are_no_reason() {
    let latch = Latch::default();
    let upstream = Upstream::holding(&latch);
    let (guarded, mut held) = full(&upstream);
    let mut proxy = guarded.gateway.connect_from(PROXY);
    for odd in ["1", "0", "-1", "two", "", "99999999999999999999"] {
        for _ in 0..100 {
            let refused = proxy.get("/", &[("x-envoy-attempt-count", odd)]);
            assert_eq!((refused.status(), refused.get("tidegate-retry")), (503, None), "{odd:?}");
        }
    }
    latch.open();
    assert_eq!(held.response().status(), 200);
}
