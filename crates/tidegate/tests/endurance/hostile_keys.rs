//! Keys that somebody makes up as fast as he can.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use crate::dice::Dice;
use crate::gateway::support::{Answer, Client, Gateway, PATIENCE, Upstream};
use crate::operated::{Operated, policy};
use crate::vitals::{Bound, MIB};

const KEYS: usize = 300_000;

/// Requests that are sent before the first answer is read.
const PIPELINED: usize = 64;

/// The table needs about 32 bytes a key, so a megabyte would do; buffers of connections are most of the rest.
const GROWTH: u64 = 16 * MIB;

const FIVE_AN_HOUR: &str = "server.ratelimit_fields = \"never\"\n\
    [rule.per_key]\nkey = \"header:x-api-key\"\nquota = \"5/h\"\nmax_keys = 10_000\n";

/// Sends requests with keys nobody had before. They ask for heads, so that answers end where their fields do.
fn flood(to: SocketAddr, seed: u64, count: usize) -> usize {
    let mut stream = TcpStream::connect(to).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let (mut dice, mut answers) = (Dice::new(seed), Heads::default());
    for _ in 0..count / PIPELINED {
        let mut batch = String::with_capacity(PIPELINED * 80);
        for _ in 0..PIPELINED {
            batch.push_str("HEAD / HTTP/1.1\r\nHost: a\r\nX-Api-Key: ");
            batch.push_str(&dice.roll().to_string());
            batch.push_str("\r\n\r\n");
        }
        stream.write_all(batch.as_bytes()).unwrap();
        answers.read(&mut stream, PIPELINED);
    }
    answers.refused
}

/// Counts answers as they come.
#[derive(Debug, Default)]
struct Heads {
    /// What has come of a head.
    begun: Vec<u8>,
    refused: usize,
}

impl Heads {
    fn read(&mut self, stream: &mut TcpStream, mut count: usize) {
        let mut bytes = [0; 64 * 1024];
        while count > 0 {
            let read = stream.read(&mut bytes).unwrap();
            assert!(read > 0, "closed with {count} answers missing");
            for line in bytes[..read].split_inclusive(|byte| *byte == b'\n') {
                self.begun.extend_from_slice(line);
                if self.begun.ends_with(b"\r\n\r\n") {
                    let status = &self.begun[..12];
                    self.refused += usize::from(status == b"HTTP/1.1 429");
                    assert!(matches!(status, b"HTTP/1.1 429" | b"HTTP/1.1 204"), "{:?}", self.begun);
                    self.begun.clear();
                    count -= 1;
                }
            }
        }
    }
}

#[test]
fn a_flood_of_keys_costs_little_memory_and_renews_nobodys_burst() {
    let upstream = Upstream::answering(|_| Answer::raw("HTTP/1.1 204 No Content\r\n\r\n"));
    let gateway = Operated::of(Gateway::start(&policy(&upstream, FIVE_AN_HOUR)));
    let alice = [("x-api-key", "alice")];
    let statuses = gateway.gateway.statuses(6, "/", &alice);
    assert_eq!(statuses, [204, 204, 204, 204, 204, 429]);
    let bound = Bound::of(&gateway.gateway, GROWTH);

    let to = gateway.gateway.address();
    let floods: Vec<_> = (1..=4).map(|seed| std::thread::spawn(move || flood(to, seed, KEYS / 4))).collect();
    let mut client = Client::connect(to);
    while floods.iter().any(|flood| !flood.is_finished()) {
        assert_eq!(client.get("/", &alice).status(), 429, "alice has a new burst");
    }
    let refused: usize = floods.into_iter().map(|flood| flood.join().unwrap()).sum();

    assert_eq!(client.get("/", &alice).status(), 429, "alice has a new burst");
    let overflowed = gateway.metric("tidegate_rule_overflow_total{rule=\"per_key\"}");
    let keys = gateway.metric("tidegate_rule_keys{rule=\"per_key\"}");
    // Whoever finds no room shares one counter, which is spent at once.
    assert!(refused > KEYS - 20_000, "{refused} of {KEYS} were refused");
    assert!(overflowed >= refused as u64 / 2, "{overflowed} shared a counter, {refused} were refused");
    assert!(keys <= 20_000, "{keys} keys");
    let grown = bound.check(&gateway.gateway);
    eprintln!(
        "{KEYS} keys: memory grew by {} KiB, {refused} refused, {overflowed} overflowed, {keys} kept",
        grown / 1024
    );
}
