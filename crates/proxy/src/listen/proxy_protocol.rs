//! The PROXY protocol: for whom a proxy opened this connection.
//!
//! It is read only from peers the policy lists, and from them it is required: guessing whether it is there would let
//! a caller pretend. Both versions are understood:
//!
//! ```text
//! PROXY TCP4 203.0.113.7 198.51.100.1 51234 443\r\n
//! \r\n\r\n\0\r\nQUIT\n  0x21 0x11  length  addresses ...
//! ```

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use tokio::io::{AsyncRead, AsyncReadExt};

const SIGNATURE: [u8; 12] = *b"\r\n\r\n\0\r\nQUIT\n";

/// The longest first version, line end included.
const LONGEST_LINE: usize = 107;

/// More than this behind the addresses is not read.
const LONGEST_BLOCK: usize = 4096;

/// Reads the header. None when the proxy speaks for itself, as its health checks do.
pub(crate) async fn read<S: AsyncRead + Unpin>(stream: &mut S) -> io::Result<Option<SocketAddr>> {
    let mut begin = [0; SIGNATURE.len()];
    stream.read_exact(&mut begin).await?;
    if begin == SIGNATURE { second(stream).await } else { first(stream, &begin).await }
}

/// The first version: a line of text. Read byte by byte, since what follows it is not ours.
async fn first<S: AsyncRead + Unpin>(stream: &mut S, begin: &[u8]) -> io::Result<Option<SocketAddr>> {
    let mut line = begin.to_vec();
    while !line.ends_with(b"\r\n") {
        if line.len() >= LONGEST_LINE {
            return Err(malformed());
        }
        line.push(stream.read_u8().await?);
    }
    parse_line(&line)
}

fn parse_line(line: &[u8]) -> io::Result<Option<SocketAddr>> {
    let line = std::str::from_utf8(line).map_err(|_| malformed())?;
    let words: Vec<&str> = line.trim_end_matches("\r\n").split(' ').collect();
    match words.as_slice() {
        ["PROXY", "UNKNOWN", ..] => Ok(None),
        ["PROXY", family @ ("TCP4" | "TCP6"), source, destination, port, _port] => {
            let address: IpAddr = source.parse().map_err(|_| malformed())?;
            let other: IpAddr = destination.parse().map_err(|_| malformed())?;
            let is_v4 = *family == "TCP4";
            if address.is_ipv4() != is_v4 || other.is_ipv4() != is_v4 {
                return Err(malformed());
            }
            Ok(Some(SocketAddr::new(address, port.parse().map_err(|_| malformed())?)))
        }
        _ => Err(malformed()),
    }
}

async fn second<S: AsyncRead + Unpin>(stream: &mut S) -> io::Result<Option<SocketAddr>> {
    let (command, family) = (stream.read_u8().await?, stream.read_u8().await?);
    let length = usize::from(stream.read_u16().await?);
    if length > LONGEST_BLOCK {
        return Err(malformed());
    }
    let mut block = vec![0; length];
    stream.read_exact(&mut block).await?;
    match (command, family) {
        (0x20, _) | (0x21, 0x00) => Ok(None),
        (0x21, 0x11) => {
            let (address, rest) = block.split_first_chunk::<4>().ok_or_else(malformed)?;
            Ok(Some(SocketAddr::new(Ipv4Addr::from(*address).into(), port(rest, 4)?)))
        }
        (0x21, 0x21) => {
            let (address, rest) = block.split_first_chunk::<16>().ok_or_else(malformed)?;
            Ok(Some(SocketAddr::new(Ipv6Addr::from(*address).into(), port(rest, 16)?)))
        }
        _ => Err(malformed()),
    }
}

/// The source's port stands behind the destination's address.
fn port(rest: &[u8], skip: usize) -> io::Result<u16> {
    let bytes = rest.get(skip..).and_then(|rest| rest.first_chunk::<2>()).ok_or_else(malformed)?;
    Ok(u16::from_be_bytes(*bytes))
}

fn malformed() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the PROXY header is malformed")
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn read_all(mut bytes: &[u8]) -> (io::Result<Option<SocketAddr>>, usize) {
        let found = read(&mut bytes).await;
        (found, bytes.len())
    }

    #[tokio::test]
    async fn both_versions_are_read_to_their_end() {
        let line = b"PROXY TCP4 203.0.113.7 198.51.100.1 51234 443\r\nGET";
        let (found, left) = read_all(line).await;
        assert_eq!((found.unwrap().unwrap().to_string().as_str(), left), ("203.0.113.7:51234", 3));

        let mut block = SIGNATURE.to_vec();
        block.extend([0x21, 0x21, 0, 36]);
        block.extend(Ipv6Addr::LOCALHOST.octets());
        block.extend(Ipv6Addr::UNSPECIFIED.octets());
        block.extend([0x12, 0x34, 0, 80]);
        block.extend(b"GET");
        let (found, left) = read_all(&block).await;
        assert_eq!((found.unwrap().unwrap().to_string().as_str(), left), ("[::1]:4660", 3));
    }

    #[tokio::test]
    async fn a_proxy_may_speak_for_itself() {
        assert!(read_all(b"PROXY UNKNOWN\r\n").await.0.unwrap().is_none());
        let mut local = SIGNATURE.to_vec();
        local.extend([0x20, 0x00, 0, 0]);
        assert!(read_all(&local).await.0.unwrap().is_none());
    }

    #[tokio::test]
    async fn anything_else_is_refused() {
        for bytes in [
            &b"GET / HTTP/1.1\r\n\r\n"[..],
            b"PROXY TCP4 ::1 ::1 1 2\r\n",
            b"PROXY TCP4 1.2.3.4 5.6.7.8 99999 2\r\n",
            b"PROXY TCP4 1.2.3.4\r\n",
            &[b'P'; 200],
        ] {
            assert!(read_all(bytes).await.0.is_err(), "{bytes:?}");
        }
    }
}
