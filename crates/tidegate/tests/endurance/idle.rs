//! Connections that are kept and not used.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Instant;

use crate::gateway::support::{Gateway, PATIENCE, Upstream};
use crate::regular::FAST;
use crate::vitals::{KIB, memory, need_files};

const CONNECTIONS: usize = 10_000;

/// What a connection may cost that does nothing.
const EACH: u64 = 40 * KIB;

/// A request and its answer, over a connection that is kept.
fn ask(stream: &mut TcpStream) {
    stream.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    let mut bytes = [0; 1024];
    while !answer.ends_with(b"\r\n\r\nhello") {
        let count = stream.read(&mut bytes).unwrap();
        assert!(count > 0, "closed after {:?}", String::from_utf8_lossy(&answer));
        answer.extend_from_slice(&bytes[..count]);
    }
    assert!(answer.starts_with(b"HTTP/1.1 200 "));
}

fn connect(to: SocketAddr) -> TcpStream {
    let mut stream = TcpStream::connect(to).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    ask(&mut stream);
    stream
}

fn connect_all(to: SocketAddr, count: usize) -> Vec<TcpStream> {
    let part = move || (0..count / 4).map(|_| connect(to)).collect::<Vec<_>>();
    let threads: Vec<_> = (0..4).map(|_| std::thread::spawn(part)).collect();
    threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
}

fn is_open(stream: &TcpStream) -> bool {
    stream.set_nonblocking(true).unwrap();
    let is_open = matches!(stream.peek(&mut [0]), Err(error) if error.kind() == ErrorKind::WouldBlock);
    stream.set_nonblocking(false).unwrap();
    is_open
}

#[test]
fn ten_thousand_idle_connections_cost_little_and_stay() {
    // Callers have two thirds of them.
    need_files(CONNECTIONS as u64 + 6000);
    let upstream = Upstream::ok();
    let gateway = Gateway::start(&format!(
        "upstream = \"{}\"\n[[listener]]\nbind = \"127.0.0.1:0\"\nidle_timeout = \"10min\"\n\
         max_connections = 12_000\nmax_connections_per_address = 12_000\n",
        upstream.url()
    ));
    // What the first connections need is made once.
    drop(connect_all(gateway.address(), 40));
    let before = memory(&gateway);
    let mut connections = connect_all(gateway.address(), CONNECTIONS);
    let each = memory(&gateway).saturating_sub(before) / CONNECTIONS as u64;
    assert!(each <= EACH, "{each} bytes each");
    assert_eq!(connections.iter().filter(|stream| is_open(stream)).count(), CONNECTIONS);

    let begun = Instant::now();
    connections.iter_mut().step_by(100).for_each(ask);
    let kept = begun.elapsed() / 100;
    let begun = Instant::now();
    drop(connect(gateway.address()));
    let new = begun.elapsed();
    assert!(kept < FAST && new < FAST, "an answer took {kept:?} on a kept connection, {new:?} on a new one");
    eprintln!("{CONNECTIONS} idle connections: {each} bytes each; then {kept:?} kept, {new:?} new");
}
