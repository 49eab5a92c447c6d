//! A client that knows just enough HTTP/1.1: one request after another on a connection that stays.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

/// A connection that is kept between requests.
pub struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

/// What came back.
#[derive(Debug, PartialEq, Eq)]
pub struct Answer {
    /// Its status.
    pub status: u16,
    /// Its whole body.
    pub body: Vec<u8>,
}

/// No answer on loopback takes that long, unless something hangs.
const PATIENCE: Duration = Duration::from_secs(5);

impl Connection {
    /// Connects.
    pub fn open(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect_timeout(&address, PATIENCE)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(Self { stream, buffer: Vec::with_capacity(4096) })
    }

    /// Asks for `/` with this key in `x-api-key` and reads the whole answer.
    pub fn get(&mut self, key: &str) -> io::Result<Answer> {
        let request = format!("GET / HTTP/1.1\r\nhost: bench\r\nx-api-key: {key}\r\n\r\n");
        self.stream.write_all(request.as_bytes())?;
        self.buffer.clear();
        let mut piece = [0; 4096];
        loop {
            if let Some((answer, length)) = parse(&self.buffer)? {
                return if self.buffer.len() == length { Ok(answer) } else { Err(invalid("too much came")) };
            }
            match self.stream.read(&mut piece)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                count => self.buffer.extend_from_slice(&piece[..count]),
            }
        }
    }
}

/// Everything that is answered to a request for `path`, head included, as text. Over a connection of its own, which the
/// server closes; so it does not matter how it says where the answer ends.
pub fn ask(address: SocketAddr, path: &str) -> io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let host = address.ip();
    let request = format!("GET {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

/// An address on loopback that nobody listens on.
pub fn free_address() -> io::Result<SocketAddr> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()
}

/// The answer in `bytes` and its length, once all of it is there.
fn parse(bytes: &[u8]) -> io::Result<Option<(Answer, usize)>> {
    let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else { return Ok(None) };
    let head = str::from_utf8(&bytes[..end]).map_err(|_| invalid("the head is not text"))?;
    let mut lines = head.split("\r\n");
    let status = lines.next().and_then(|line| line.split(' ').nth(1)?.parse().ok());
    let status = status.ok_or_else(|| invalid("no status"))?;
    let mut fields = lines.filter_map(|line| line.split_once(':'));
    let length = fields.find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    let length: usize = length
        .and_then(|(_, value)| value.trim().parse().ok())
        .ok_or_else(|| invalid("no content-length"))?;
    let whole = end + 4 + length;
    Ok(bytes.get(end + 4..whole).map(|body| (Answer { status, body: body.to_vec() }, whole)))
}

fn invalid(problem: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, problem)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_complete_with_the_last_byte_of_its_body() {
        let bytes = b"HTTP/1.1 429 Too Many Requests\r\nContent-Length: 2\r\n\r\nno";
        for cut in 0..bytes.len() {
            assert_eq!(parse(&bytes[..cut]).unwrap(), None, "{cut} bytes");
        }
        let answer = Answer { status: 429, body: b"no".to_vec() };
        assert_eq!(parse(bytes).unwrap(), Some((answer, bytes.len())));
    }

    #[test]
    fn an_answer_whose_end_cannot_be_known_is_refused() {
        assert!(parse(b"HTTP/1.1 200 OK\r\n\r\n").is_err());
        assert!(parse(b"hello\r\n\r\n").is_err());
    }
}
