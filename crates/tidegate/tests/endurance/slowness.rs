//! Callers who are slow on purpose lose their connections, and nobody else notices.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Instant;

use crate::gateway::support::{Answer, Client, Gateway, Latch, PATIENCE, Upstream, request};
use crate::operated::Operated;
use crate::regular::Regular;

const MANY: usize = 500;

fn start(upstream: &Upstream, limits: &str) -> Operated {
    Operated::of(Gateway::start(&format!(
        "upstream = \"{}\"\nserver.admin = \"127.0.0.1:0\"\n[[listener]]\nbind = \"127.0.0.1:0\"\n{limits}",
        upstream.url()
    )))
}

/// Connections that send a byte now and then, until the other side closes them.
#[derive(Debug)]
struct Drip(Vec<TcpStream>);

impl Drip {
    fn begin(gateway: &Gateway, first: &str) -> Self {
        let one = |_| {
            let mut stream = TcpStream::connect(gateway.address()).unwrap();
            stream.write_all(first.as_bytes()).unwrap();
            stream.set_nonblocking(true).unwrap();
            stream
        };
        Self((0..MANY).map(one).collect())
    }

    /// Sends one byte on each; forgets those that were closed.
    fn drip(&mut self, byte: u8) {
        self.0.retain_mut(|stream| stream.write(&[byte]).is_ok() && is_open(stream));
    }

    /// Drips until all are closed.
    #[track_caller]
    fn until_closed(mut self, gateway: &Gateway, byte: Option<u8>) {
        let begun = Instant::now();
        let mut client = gateway.connect();
        while !self.0.is_empty() {
            assert!(begun.elapsed() < PATIENCE, "{} are still open", self.0.len());
            match byte {
                Some(byte) => self.drip(byte),
                None => self.0.retain_mut(is_open),
            }
            // This is what takes time between two bytes.
            (0..20).for_each(|_| assert_eq!(client.get("/", &[]).status(), 200));
        }
    }
}

/// Whether the other side has not closed. What it sent is read and forgotten.
fn is_open(stream: &mut TcpStream) -> bool {
    loop {
        match stream.read(&mut [0; 1024]) {
            Ok(0) => return false,
            Ok(_) => {}
            Err(error) => return error.kind() == ErrorKind::WouldBlock,
        }
    }
}

#[test]
fn heads_that_drip_are_cut_while_others_are_served() {
    let upstream = Upstream::ok();
    let gateway = start(&upstream, "head_timeout = \"1s\"\n").gateway;
    let regular = Regular::begin(&gateway);
    let head = "GET / HTTP/1.1\r\nHost: a\r\nX-Slow: ";
    Drip::begin(&gateway, head).until_closed(&gateway, Some(b'a'));
    regular.end();
}

#[test]
fn first_bytes_that_drip_are_cut_too() {
    let upstream = Upstream::ok();
    let gateway = start(&upstream, "head_timeout = \"1s\"\n").gateway;
    let regular = Regular::begin(&gateway);
    // What could become the preface of HTTP/2.
    Drip::begin(&gateway, "P").until_closed(&gateway, None);
    regular.end();
}

#[test]
fn bodies_that_stop_are_cut_and_their_places_are_free() {
    let upstream = Upstream::ok();
    let gateway = start(&upstream, "body_idle_timeout = \"1s\"\n");
    let regular = Regular::begin(&gateway.gateway);
    let fields = [("Content-Length", "1000000")];
    let head = request("POST", "/", &fields, "");
    Drip::begin(&gateway.gateway, &head).until_closed(&gateway.gateway, None);
    regular.end();
    gateway.until("/metrics", |page| page.text().contains("tidegate_in_flight{route=\"default\"} 0\n"));
}

#[test]
fn a_body_may_be_slow_as_long_as_it_comes() {
    let upstream = Upstream::ok();
    let gateway = start(&upstream, "body_idle_timeout = \"1s\"\n").gateway;
    let (mut slow, mut other) = (gateway.connect(), gateway.connect());
    let begun = Instant::now();
    slow.send("POST /slow HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
    while begun.elapsed().as_millis() < 2500 {
        slow.send("1\r\na\r\n");
        (0..20).for_each(|_| assert_eq!(other.get("/", &[]).status(), 200));
    }
    assert_eq!(slow.send("0\r\n\r\n").response().status(), 200);
}

#[test]
fn a_reader_who_takes_nothing_is_cut() {
    let cut = Latch::default();
    let told = cut.clone();
    // Larger than what sockets hold.
    let upstream = Upstream::scripted(move |wire| {
        while let Some(request) = wire.request() {
            if request.target() != "/large" {
                wire.send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello");
                continue;
            }
            wire.send("HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n");
            while wire.try_send([b'x'; 64 * 1024]).is_ok() {}
            told.open();
            return;
        }
    });
    let gateway = start(&upstream, "body_idle_timeout = \"1s\"\n");
    let regular = Regular::begin(&gateway.gateway);
    let mut reader = gateway.gateway.connect();
    reader.send(request("GET", "/large", &[], ""));
    assert!(reader.head().is_some());
    cut.wait();
    regular.end();
    gateway.until("/metrics", |page| page.text().contains("tidegate_in_flight{route=\"default\"} 0\n"));
}

#[test]
fn many_idle_connections_are_closed_in_time() {
    let upstream = Upstream::answering(|_| Answer::text("hello"));
    let gateway = start(&upstream, "idle_timeout = \"1s\"\n").gateway;
    let mut clients: Vec<Client> = (0..MANY).map(|_| gateway.connect()).collect();
    for client in &mut clients {
        assert_eq!(client.get("/", &[]).status(), 200);
    }
    assert!(clients.iter_mut().all(|client| client.is_closed()));
}
