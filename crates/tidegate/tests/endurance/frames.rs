//! HTTP/2 written by hand, for what no honest client would send.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

use socket2::{Domain, Socket, Type};

pub const DATA: u8 = 0x0;
pub const HEADERS: u8 = 0x1;
pub const RST_STREAM: u8 = 0x3;
pub const SETTINGS: u8 = 0x4;
pub const PING: u8 = 0x6;
pub const GOAWAY: u8 = 0x7;
pub const WINDOW_UPDATE: u8 = 0x8;
pub const CONTINUATION: u8 = 0x9;

const ACK: u8 = 0x1;
pub const END_STREAM: u8 = 0x1;
pub const END_HEADERS: u8 = 0x4;

pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// A frame.
pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// The fields of a GET from `service.test`.
pub fn get(path: &str) -> Vec<u8> {
    // Numbers in the static table: the method GET, the scheme http, the path / or another one, an authority.
    let path = if path == "/" { vec![0x84] } else { literal(0x04, path) };
    [vec![0x82, 0x86], path, literal(0x01, "service.test")].concat()
}

/// A field whose name has a number in the table below 15, and which is not remembered.
fn literal(name: u8, value: &str) -> Vec<u8> {
    [&[name, u8::try_from(value.len()).unwrap()], value.as_bytes()].concat()
}

/// A field with a new name. It is not remembered either.
pub fn field(name: &str, value: &[u8]) -> Vec<u8> {
    [&[0x00, u8::try_from(name.len()).unwrap()], name.as_bytes(), &length(value.len()), value].concat()
}

/// A field with a new name, which is remembered and has the number 62 then.
pub fn remembered(name: &str, value: &[u8]) -> Vec<u8> {
    let mut field = field(name, value);
    field[0] = 0x40;
    field
}

/// A length in seven bits, or in more bytes of seven bits each.
fn length(length: usize) -> Vec<u8> {
    let Some(mut rest) = length.checked_sub(127) else { return vec![u8::try_from(length).unwrap()] };
    let mut bytes = vec![127];
    while rest >= 128 {
        bytes.push(u8::try_from(rest % 128).unwrap() | 128);
        rest /= 128;
    }
    bytes.push(u8::try_from(rest).unwrap());
    bytes
}

/// A connection that follows no rule but its own.
#[derive(Debug)]
pub struct Peer {
    stream: TcpStream,
    read: Vec<u8>,
}

/// What came of sending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// Everything went out.
    All,
    /// The other side takes nothing more.
    Stalled,
    /// The other side has closed.
    Closed,
}

impl Peer {
    /// With settings, each a number and a value.
    pub fn connect(to: SocketAddr, settings: &[(u16, u32)]) -> Self {
        Self::over(TcpStream::connect(to).unwrap(), settings)
    }

    /// From another address of this machine.
    pub fn connect_from(from: Ipv4Addr, to: SocketAddr, settings: &[(u16, u32)]) -> Self {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        socket.bind(&SocketAddr::from((from, 0)).into()).unwrap();
        socket.connect(&to.into()).unwrap();
        Self::over(socket.into(), settings)
    }

    fn over(mut stream: TcpStream, settings: &[(u16, u32)]) -> Self {
        stream.set_nodelay(true).unwrap();
        stream.set_write_timeout(Some(Duration::from_secs(3))).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        stream.write_all(PREFACE).unwrap();
        let setting =
            |(number, value): &(u16, u32)| [&number.to_be_bytes()[..], &value.to_be_bytes()].concat();
        let settings: Vec<u8> = settings.iter().flat_map(setting).collect();
        stream.write_all(&frame(SETTINGS, 0, 0, &settings)).unwrap();
        Self { stream, read: Vec::new() }
    }

    pub fn send(&mut self, bytes: &[u8]) -> Sent {
        match self.stream.write_all(bytes) {
            Ok(()) => Sent::All,
            Err(error) if is_timeout(&error) => Sent::Stalled,
            Err(_) => Sent::Closed,
        }
    }

    /// The next frame: its kind, its stream and its payload. None when the other side has closed. Pings are answered,
    /// for whoever does not answer them is cut for that.
    pub fn next(&mut self) -> Option<(u8, u32, Vec<u8>)> {
        self.fill(9)?;
        let (length, stream) = (&self.read[..3], &self.read[5..9]);
        let length = usize::from(length[0]) << 16 | usize::from(length[1]) << 8 | usize::from(length[2]);
        let stream = u32::from_be_bytes(stream.try_into().unwrap());
        let (kind, flags) = (self.read[3], self.read[4]);
        self.fill(9 + length)?;
        let rest = self.read.split_off(9 + length);
        let payload = std::mem::replace(&mut self.read, rest).split_off(9);
        if kind == PING && flags & ACK == 0 {
            self.send(&frame(PING, ACK, 0, &payload));
        }
        Some((kind, stream, payload))
    }

    /// Reads until the other side has closed, which it must do by itself.
    pub fn until_closed(&mut self) {
        while self.next().is_some() {}
    }

    fn fill(&mut self, count: usize) -> Option<()> {
        let mut bytes = [0; 16 * 1024];
        while self.read.len() < count {
            match self.stream.read(&mut bytes) {
                Ok(0) => return None,
                Ok(count) => self.read.extend_from_slice(&bytes[..count]),
                Err(error) if is_timeout(&error) => panic!("nothing comes, and it is not closed"),
                Err(_) => return None,
            }
        }
        Some(())
    }

    /// Reads to the end; gives the body of the answer on a stream.
    pub fn answer(&mut self, wanted: u32) -> Option<Vec<u8>> {
        let mut body = None;
        while let Some((kind, stream, payload)) = self.next() {
            if kind == DATA && stream == wanted {
                body.get_or_insert_with(Vec::new).extend(payload);
            }
        }
        body
    }
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}
