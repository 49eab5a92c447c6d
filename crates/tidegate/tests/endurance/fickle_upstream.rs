//! An upstream that closes connections whenever it likes.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use crate::dice::Dice;
use crate::gateway::support::{Gateway, Upstream};

/// How many requests each caller sends, and how many callers do so at once, so that several connections are free.
const REQUESTS: usize = 500;
const CALLERS: usize = 4;

/// Serves a few requests of a connection and closes it, without saying so before: behind an answer, or when the next
/// request has come already.
fn fickle() -> Upstream {
    let seed = AtomicU64::new(1);
    Upstream::scripted(move |wire| {
        let mut dice = Dice::new(seed.fetch_add(1, Ordering::Relaxed));
        for _ in 0..=dice.below(4) {
            if wire.request().is_none() {
                return;
            }
            wire.send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello");
        }
        if dice.below(2) == 0 {
            wire.request();
        }
    })
}

#[test]
fn no_get_fails_because_a_kept_connection_was_closed() {
    let upstream = fickle();
    let gateway = Gateway::before(&upstream, "");
    let statuses: Vec<u16> = thread::scope(|scope| {
        let ask = || gateway.statuses(REQUESTS, "/", &[]);
        let callers: Vec<_> = (0..CALLERS).map(|_| scope.spawn(ask)).collect();
        callers.into_iter().flat_map(|caller| caller.join().unwrap()).collect()
    });
    let failed: Vec<&u16> = statuses.iter().filter(|status| **status != 200).collect();
    assert!(failed.is_empty(), "{} of {} failed: {failed:?}", failed.len(), statuses.len());
    assert!(upstream.connections() > statuses.len() / 4, "{} connections", upstream.connections());
}
