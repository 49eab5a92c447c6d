//! Much data in either direction, whoever is slower.

use std::io::{self, ErrorKind, Write};
use std::net::{TcpListener, TcpStream};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::dice::Dice;
use crate::gateway::support::{Gateway, Latch, PATIENCE, Wire, request};
use crate::vitals::{Bound, KIB, MIB};

/// How much is sent.
const SIZE: usize = 100 * 1024 * 1024;

/// How much memory may be taken for it, buffers of both sides and whatever the allocator keeps.
const GROWTH: u64 = 32 * MIB;

const PART: usize = 16 * 1024;

/// The bytes that are sent: a stretch by chance, again and again, of a length that fits no buffer.
#[derive(Debug)]
struct Content {
    stretch: Vec<u8>,
    at: usize,
}

impl Content {
    fn new() -> Self {
        let mut dice = Dice::new(7);
        // Twice in a row, so that a part never wraps.
        let once: Vec<u8> = (0..LENGTH).map(|_| dice.roll().to_le_bytes()[3]).collect();
        Self { stretch: once.repeat(2), at: 0 }
    }

    /// The next bytes.
    fn next(&mut self, count: usize) -> &[u8] {
        let from = self.at % LENGTH;
        self.at += count;
        &self.stretch[from..from + count]
    }

    fn is_whole(&self) -> bool {
        self.at == SIZE
    }

    /// Checks bytes that came.
    fn check(&mut self, came: &[u8]) {
        let from = self.at;
        assert!(self.next(came.len()) == came, "other bytes came behind the first {from}");
    }
}

/// Longer than a part, and a prime.
const LENGTH: usize = 65_537;

#[derive(Clone, Copy, Debug)]
enum Framing {
    Length,
    Chunked,
}

impl Framing {
    const fn field(self) -> (&'static str, &'static str) {
        match self {
            Self::Length => ("Content-Length", "104857600"),
            Self::Chunked => ("Transfer-Encoding", "chunked"),
        }
    }

    /// Sends everything.
    fn send(self, stream: &mut impl Write) -> io::Result<()> {
        let mut content = Content::new();
        while !content.is_whole() {
            let part = content.next(PART);
            match self {
                Self::Length => stream.write_all(part)?,
                Self::Chunked => {
                    let chunk = [format!("{PART:x}\r\n").as_bytes(), part, b"\r\n"].concat();
                    stream.write_all(&chunk)?;
                }
            }
        }
        if let Self::Chunked = self { stream.write_all(b"0\r\n\r\n") } else { Ok(()) }
    }
}

/// Reads a head, and behind it everything, in whichever framing it comes.
fn receive(wire: &mut Wire) {
    let head = wire.head().unwrap();
    let mut content = Content::new();
    if head.get("transfer-encoding").is_some() {
        while let Some(chunk) = wire.chunk().expect("the whole body comes") {
            chunk.chunks(PART).for_each(|part| content.check(part));
        }
        wire.until(b"\r\n").unwrap();
    } else {
        (0..SIZE / PART).for_each(|_| content.check(&wire.take(PART)));
    }
    assert!(content.is_whole(), "{} bytes came", content.at);
}

/// Whoever sends. When the way is full up to him, he lets the other side begin to read.
#[derive(Debug)]
struct Sender {
    stream: TcpStream,
    reader: Latch,
    sent: u64,
    /// How much had been sent when nothing more could be.
    stalled: Option<u64>,
}

impl Sender {
    fn new(stream: TcpStream, reader: &Latch) -> Self {
        stream.set_write_timeout(Some(Duration::from_millis(200))).unwrap();
        Self { stream, reader: reader.clone(), sent: 0, stalled: None }
    }
}

impl Write for Sender {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let begun = Instant::now();
        loop {
            match self.stream.write(bytes) {
                Ok(count) => {
                    self.sent += count as u64;
                    return Ok(count);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock && begun.elapsed() < PATIENCE => {
                    self.stalled.get_or_insert(self.sent);
                    self.reader.open();
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A service of one connection.
fn service(serve: impl FnOnce(TcpStream) + Send + 'static) -> (Gateway, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let policy =
        format!("listen = \"127.0.0.1:0\"\nupstream = \"http://{}\"\n", listener.local_addr().unwrap());
    let serving = std::thread::spawn(move || serve(listener.accept().unwrap().0));
    (Gateway::start(&policy), serving)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reader {
    /// Reads what comes.
    Eager,
    /// Begins only when nothing more can be sent to it.
    Late,
}

impl Reader {
    fn latch(self) -> Latch {
        let latch = Latch::default();
        if self == Self::Eager {
            latch.open();
        }
        latch
    }

    /// Nothing piles up between a sender and a reader who is late.
    #[track_caller]
    fn check(self, sender: &Sender) {
        if self == Self::Late {
            let stalled = sender.stalled.expect("the sender has to wait for the reader");
            assert!(stalled < GROWTH, "{stalled} bytes were taken before the reader began");
        }
    }
}

fn upload(framing: Framing, reader: Reader) {
    let latch = reader.latch();
    let may_read = latch.clone();
    let (gateway, serving) = service(move |stream| {
        let mut wire = Wire::new(stream);
        may_read.wait();
        receive(&mut wire);
        wire.send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nwhole");
    });
    let bound = Bound::of(&gateway, GROWTH);
    let stream = TcpStream::connect(gateway.address()).unwrap();
    let mut sender = Sender::new(stream.try_clone().unwrap(), &latch);
    sender.write_all(request("POST", "/", &[framing.field()], "").as_bytes()).unwrap();
    framing.send(&mut sender).unwrap();
    assert_eq!(Wire::new(stream).response().text(), "whole");
    serving.join().unwrap();
    reader.check(&sender);
    eprintln!("up, {framing:?}, {reader:?} reader: memory grew by {} KiB", bound.check(&gateway) / KIB);
}

fn download(framing: Framing, reader: Reader) {
    let latch = reader.latch();
    let may_read = latch.clone();
    let (gateway, serving) = service(move |stream| {
        let mut wire = Wire::new(stream.try_clone().unwrap());
        wire.request().unwrap();
        let (name, value) = framing.field();
        let mut sender = Sender::new(stream, &latch);
        write!(sender, "HTTP/1.1 200 OK\r\n{name}: {value}\r\n\r\n").unwrap();
        framing.send(&mut sender).unwrap();
        reader.check(&sender);
    });
    let bound = Bound::of(&gateway, GROWTH);
    let mut client = gateway.connect();
    client.send(request("GET", "/", &[], ""));
    may_read.wait();
    receive(&mut client);
    serving.join().unwrap();
    eprintln!("down, {framing:?}, {reader:?} reader: memory grew by {} KiB", bound.check(&gateway) / KIB);
}

#[test]
fn a_hundred_megabytes_go_up_with_a_length() {
    upload(Framing::Length, Reader::Eager);
}

#[test]
fn a_hundred_megabytes_go_up_in_chunks_to_a_slow_service() {
    upload(Framing::Chunked, Reader::Late);
}

#[test]
fn a_hundred_megabytes_come_down_with_a_length_to_a_slow_caller() {
    download(Framing::Length, Reader::Late);
}

#[test]
fn a_hundred_megabytes_come_down_in_chunks() {
    download(Framing::Chunked, Reader::Eager);
}
