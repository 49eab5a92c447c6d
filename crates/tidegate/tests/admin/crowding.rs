//! Callers that take all connections of the admin API, and operators who ask all the same.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use crate::http::{connect, connect_from, get};
use crate::station::Running;

/// More than there is room for, from both addresses.
const MANY: usize = 200;

/// What a health check may take. Far beyond what it does, for the machine has other work during tests.
const FAST: Duration = Duration::from_secs(2);

fn crowd(address: SocketAddr) -> Vec<TcpStream> {
    (0..MANY)
        .map(|number| if number % 2 == 0 { connect(address) } else { connect_from([127, 0, 0, 2], address) })
        .collect()
}

/// Operators ask again and again, and are always answered: health checks at once, the rest when those that came before have
/// been, each with one question.
#[track_caller]
fn all_is_answered(address: SocketAddr) {
    for path in ["/livez", "/readyz", "/metrics", "/api/v1/status", "/api/v1/rules"].repeat(5) {
        let begun = Instant::now();
        assert_eq!(get(address, path).status, 200, "{path}");
        assert!(begun.elapsed() < FAST || !path.ends_with('z'), "{path} took {:?}", begun.elapsed());
    }
}

#[test]
fn silent_callers_give_way_to_newcomers() {
    let running = Running::start();
    let mut held = crowd(running.address());
    all_is_answered(running.address());
    // Those that came first have lost their seats.
    assert_eq!(held[0].read(&mut [0]).unwrap(), 0);
    assert_eq!(held[1].read(&mut [0]).unwrap(), 0);
}

#[test]
fn callers_that_ask_and_do_not_read_keep_nobody_out() {
    let running = Running::start();
    let mut held = crowd(running.address());
    let asked = "GET /metrics HTTP/1.1\r\nhost: localhost\r\n\r\n".repeat(2000);
    for stream in &mut held {
        stream.set_nonblocking(true).unwrap();
    }
    let begun = Instant::now();
    let mut count = 0;
    // They go on asking while operators do.
    while begun.elapsed() < Duration::from_secs(2) || count < 3 {
        for stream in &mut held {
            match stream.write(asked.as_bytes()) {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                // It has lost its seat, and comes back.
                Err(_) => *stream = connect(running.address()),
            }
        }
        all_is_answered(running.address());
        count += 1;
    }
}

#[test]
fn callers_that_feed_their_connections_keep_nobody_out() {
    let running = Running::start();
    let mut held = crowd(running.address());
    for _ in 0..5 {
        for stream in &mut held {
            // It may have lost its seat.
            drop(stream.write_all(b"G"));
        }
        all_is_answered(running.address());
    }
}

#[test]
fn a_crowd_of_listeners_that_do_not_read_keeps_nobody_out() {
    let running = Running::start();
    let mut held = crowd(running.address());
    for stream in &mut held {
        drop(stream.write_all(b"GET /api/v1/stream HTTP/1.1\r\nhost: localhost\r\n\r\n"));
    }
    all_is_answered(running.address());
}
