//! What callers do who mean harm, from one address that is not the honest caller's.
//!
//! All of them are connections that begin with some bytes and then go on in one of a few ways. They are bounded in number and
//! in time, and only ever go to loopback.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use socket2::{Domain, Socket, Type};

use crate::frames;

/// Where they come from.
const FROM: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

/// How often they go on.
const BEAT: Duration = Duration::from_millis(100);

/// How many connections are made anew in a beat where they were closed: two thousand a second.
const AGAIN: usize = 200;

/// How much is written to one connection in a beat.
const MOST_AT_ONCE: usize = 256 * 1024;

/// What is done to a gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Attack {
    /// Nothing: what the honest caller gets without any.
    Nothing,
    Uploads,
    UploadsOverH2,
    Unread,
    UnreadOverH2,
    HalfHeads,
    HalfPrefaces,
    Flood,
    Pipelining,
    ChunkExtensions,
    /// One of two endpoints drops the packets of those who want to connect. Nobody attacks.
    DeafEndpoint,
}

/// How connections go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum GoesOn {
    /// Not at all.
    Not,
    /// With a byte in a beat.
    Dripping,
    /// With the same again, as fast as it is taken.
    Repeating,
    /// They end, and others come.
    Ending,
}

impl Attack {
    pub(crate) const ALL: [Self; 11] = [
        Self::Nothing,
        Self::Uploads,
        Self::UploadsOverH2,
        Self::Unread,
        Self::UnreadOverH2,
        Self::HalfHeads,
        Self::HalfPrefaces,
        Self::Flood,
        Self::Pipelining,
        Self::ChunkExtensions,
        Self::DeafEndpoint,
    ];

    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Uploads => "900 uploads that drip, HTTP/1.1",
            Self::UploadsOverH2 => "5 × 250 uploads that stall, HTTP/2",
            Self::Unread => "900 large answers that nobody reads, HTTP/1.1",
            Self::UnreadOverH2 => "5 × 250 large answers that nobody reads, HTTP/2",
            Self::HalfHeads => "900 heads that drip",
            Self::HalfPrefaces => "900 half prefaces of HTTP/2",
            Self::Flood => "2000 connections a second",
            Self::Pipelining => "128 connections that pipeline and do not read",
            Self::ChunkExtensions => "16 connections with endless chunk extensions",
            Self::DeafEndpoint => "one of two endpoints drops packets",
        }
    }

    /// How many of a hundred requests are as fast as without an attack. That an endpoint is deaf is found out by waiting for it.
    pub(crate) const fn held_percent(self) -> usize {
        if matches!(self, Self::DeafEndpoint) { 90 } else { 99 }
    }

    const fn is_over_h2(self) -> bool {
        matches!(self, Self::UploadsOverH2 | Self::UnreadOverH2 | Self::HalfPrefaces)
    }

    const fn connections(self) -> usize {
        match self {
            Self::Nothing | Self::DeafEndpoint => 0,
            Self::Uploads | Self::Unread | Self::HalfHeads | Self::HalfPrefaces => 900,
            Self::UploadsOverH2 | Self::UnreadOverH2 => 5,
            Self::Flood => AGAIN,
            Self::Pipelining => 128,
            Self::ChunkExtensions => 16,
        }
    }

    /// What a connection begins with.
    fn beginning(self) -> Vec<u8> {
        const UPLOAD: &str = "POST / HTTP/1.1\r\nHost: bench\r\nContent-Length: 1000000\r\n\r\nx";
        match self {
            Self::Nothing | Self::DeafEndpoint | Self::Flood | Self::Pipelining => Vec::new(),
            Self::Uploads => UPLOAD.into(),
            Self::UploadsOverH2 => frames::uploads(250),
            Self::Unread => b"GET /large HTTP/1.1\r\nHost: bench\r\n\r\n".to_vec(),
            Self::UnreadOverH2 => frames::downloads(250),
            Self::HalfHeads => b"GET / HTTP/1.1\r\nHost: bench\r\nX-A: ".to_vec(),
            Self::HalfPrefaces => frames::PREFACE[..8].to_vec(),
            Self::ChunkExtensions => {
                b"POST / HTTP/1.1\r\nHost: bench\r\nTransfer-Encoding: chunked\r\n\r\n1".to_vec()
            }
        }
    }

    const fn goes_on(self) -> GoesOn {
        match self {
            Self::Uploads | Self::HalfHeads => GoesOn::Dripping,
            Self::Pipelining | Self::ChunkExtensions => GoesOn::Repeating,
            Self::Flood => GoesOn::Ending,
            Self::Nothing
            | Self::UploadsOverH2
            | Self::Unread
            | Self::UnreadOverH2
            | Self::HalfPrefaces
            | Self::DeafEndpoint => GoesOn::Not,
        }
    }

    /// What it goes on with.
    fn rest(self) -> Vec<u8> {
        match self {
            Self::Pipelining => b"GET / HTTP/1.1\r\nHost: bench\r\n\r\n".repeat(512),
            Self::ChunkExtensions => b";a=b".repeat(4096),
            _ => b"a".to_vec(),
        }
    }

    /// Attacks until it is told to stop. Connections that the gateway closes are made again.
    pub(crate) fn run(self, to: [SocketAddr; 2], must_stop: &AtomicBool) {
        let to = to[usize::from(self.is_over_h2())];
        let (beginning, rest) = (self.beginning(), self.rest());
        let mut open: Vec<Attacker> = Vec::new();
        while !must_stop.load(Ordering::Relaxed) {
            let missing = self.connections().saturating_sub(open.len()).min(AGAIN);
            let more = (0..missing).take_while(|_| !must_stop.load(Ordering::Relaxed));
            open.extend(more.filter_map(|_| Attacker::begin(to, &beginning).ok()));
            match self.goes_on() {
                GoesOn::Ending => open.clear(),
                GoesOn::Not => open.retain(Attacker::is_open),
                GoesOn::Dripping => open.retain_mut(|one| one.drip(&rest) && one.is_open()),
                GoesOn::Repeating => open.retain_mut(|one| one.pour(&rest)),
            }
            thread::sleep(BEAT);
        }
    }
}

/// A connection that does not wait for anything.
struct Attacker {
    stream: TcpStream,
    /// How much of what it goes on with was taken so far.
    written: usize,
}

impl Attacker {
    fn begin(to: SocketAddr, beginning: &[u8]) -> io::Result<Self> {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
        // A port from which another gateway was attacked a moment ago is as good as any.
        socket.set_reuse_address(true)?;
        // As little as the kernel allows: what is not read is the gateway's to keep.
        socket.set_recv_buffer_size(1)?;
        socket.bind(&SocketAddr::from((FROM, 0)).into())?;
        socket.connect_timeout(&to.into(), Duration::from_millis(50))?;
        let mut stream = TcpStream::from(socket);
        stream.set_nonblocking(true)?;
        stream.write_all(beginning)?;
        Ok(Self { stream, written: 0 })
    }

    /// Whether the gateway has not closed it, as far as can be told without reading what it sent.
    fn is_open(&self) -> bool {
        match (self.stream.take_error(), self.stream.peek(&mut [0])) {
            (Ok(None), Ok(count)) => count > 0,
            (Ok(None), Err(error)) => error.kind() == ErrorKind::WouldBlock,
            _ => false,
        }
    }

    /// Writes a byte; false if it was closed. An answer of a few bytes is read away, so that a close is seen.
    fn drip(&mut self, rest: &[u8]) -> bool {
        let is_at_end = self.stream.read(&mut [0; 512]).is_ok_and(|count| count == 0);
        !is_at_end && self.write(&rest[..1]).is_some()
    }

    /// Writes the same again and again, as much as is taken in a beat; false if it was closed.
    fn pour(&mut self, rest: &[u8]) -> bool {
        let until = self.written + MOST_AT_ONCE;
        while self.written < until {
            match self.write(&rest[self.written % rest.len()..]) {
                Some(0) => return true,
                Some(_) => {}
                None => return false,
            }
        }
        true
    }

    /// How much of it was taken; nothing if it was closed.
    fn write(&mut self, bytes: &[u8]) -> Option<usize> {
        match self.stream.write(bytes) {
            Ok(count) => {
                self.written += count;
                Some(count)
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => Some(0),
            Err(_) => None,
        }
    }
}
