//! HTTP/2 requests field by field, as no library would send them, and what becomes of them.

use std::net::{Ipv4Addr, SocketAddr};

use crate::frames::{END_HEADERS, END_STREAM, GOAWAY, HEADERS, Peer, RST_STREAM, Sent, field, frame};

/// Tells the gateway to remember no fields of its answers, so that each can be read by itself.
const NO_TABLE: (u16, u32) = (1, 0);

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Became {
    Answered(u16),
    /// Its stream was reset, with this code.
    Reset(u32),
    /// The connection has ended.
    Ended,
}

impl Became {
    /// Whether it was told to be malformed.
    pub fn is_refused(self) -> bool {
        matches!(self, Self::Answered(400) | Self::Reset(1))
    }
}

/// One connection, whose requests have no body.
#[derive(Debug)]
pub struct RawH2 {
    peer: Peer,
    next: u32,
}

impl RawH2 {
    pub fn connect(to: SocketAddr) -> Self {
        Self::connect_from(Ipv4Addr::LOCALHOST, to)
    }

    /// From another address of this machine.
    pub fn connect_from(from: Ipv4Addr, to: SocketAddr) -> Self {
        Self { peer: Peer::connect_from(from, to, &[NO_TABLE]), next: 1 }
    }

    /// Sends fields, those with a colon before their name first, and waits for what becomes of them.
    pub fn ask(&mut self, fields: &[(&str, &[u8])]) -> Became {
        let sent = self.next;
        self.next += 2;
        let block: Vec<u8> = fields.iter().flat_map(|(name, value)| field(name, value)).collect();
        if self.peer.send(&frame(HEADERS, END_HEADERS | END_STREAM, sent, &block)) != Sent::All {
            return Became::Ended;
        }
        loop {
            match self.peer.next() {
                None | Some((GOAWAY, ..)) => return Became::Ended,
                Some((HEADERS, stream, block)) if stream == sent => return Became::Answered(status(&block)),
                Some((RST_STREAM, stream, code)) if stream == sent => {
                    return Became::Reset(u32::from_be_bytes(code.try_into().unwrap()));
                }
                Some(_) => {}
            }
        }
    }

    /// GET of a path at `service.test`, with more fields.
    pub fn get(&mut self, path: &str, fields: &[(&str, &[u8])]) -> Became {
        let usual: [(&str, &[u8]); 4] = [
            (":method", b"GET"),
            (":scheme", b"http"),
            (":authority", b"service.test"),
            (":path", path.as_bytes()),
        ];
        self.ask(&[&usual[..], fields].concat())
    }
}

/// The status, which an answer begins with: a number of the static table, or three digits in Huffman's code.
fn status(block: &[u8]) -> u16 {
    // Changes of the table's size come first.
    let begin = block.iter().position(|byte| byte >> 5 != 1).unwrap();
    match block[begin] {
        indexed @ 0x88..=0x8e => [200, 204, 206, 304, 400, 404, 500][usize::from(indexed - 0x88)],
        _ => digits(&block[begin + 1..]),
    }
}

/// Digits behind their length (RFC 7541, appendix B).
fn digits(text: &[u8]) -> u16 {
    let (length, coded) = (usize::from(text[0] & 0x7f), text[0] & 0x80 != 0);
    let text = &text[1..=length];
    if !coded {
        return std::str::from_utf8(text).unwrap().parse().unwrap();
    }
    let bits: String = text.iter().map(|byte| format!("{byte:08b}")).collect();
    let (mut number, mut rest) = (0, bits.as_str());
    for _ in 0..3 {
        let (digit, length) = match &rest[..5] {
            "00000" => (0, 5),
            "00001" => (1, 5),
            "00010" => (2, 5),
            _ => (u16::from_str_radix(&rest[..6], 2).unwrap() - 0x19 + 3, 6),
        };
        number = number * 10 + digit;
        rest = &rest[length..];
    }
    number
}
