//! The PROXY protocol: for whom a proxy opened this connection.
//!
//! It is read only from peers the policy lists, and from them it is required: guessing whether it is there would let
//! a caller pretend. Both versions are understood:
//!
//! ```text
//! PROXY TCP4 203.0.113.7 198.51.100.1 51234 443\r\n
//! \r\n\r\n\0\r\nQUIT\n  0x21 0x11  length  addresses ...
//! ```
//!
//! A header may name no address: a proxy speaks for itself (`UNKNOWN`, `LOCAL`), or for a caller on another kind of
//! socket. What stands behind the addresses is skipped.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use tokio::io::{AsyncRead, AsyncReadExt};

const SIGNATURE: [u8; 12] = *b"\r\n\r\n\0\r\nQUIT\n";

/// The longest first version, line end included.
const LONGEST_LINE: usize = 107;

/// More than this behind the addresses is not read.
const LONGEST_BLOCK: usize = 4096;

/// Other families, and the length of their addresses.
const UNCOUNTED: [(u8, usize); 4] = [(0x12, 12), (0x22, 36), (0x31, 216), (0x32, 216)];

/// Reads the header. None when it names no address, as for the proxy's own health checks.
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
        ["PROXY", family @ ("TCP4" | "TCP6"), source, destination, port, other_port] => {
            let address: IpAddr = source.parse().map_err(|_| malformed())?;
            let other: IpAddr = destination.parse().map_err(|_| malformed())?;
            let is_v4 = *family == "TCP4";
            if address.is_ipv4() != is_v4 || other.is_ipv4() != is_v4 {
                return Err(malformed());
            }
            number(other_port)?;
            Ok(Some(SocketAddr::new(address, number(port)?)))
        }
        _ => Err(malformed()),
    }
}

/// A port: digits, and no sign before them.
fn number(text: &str) -> io::Result<u16> {
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok()).flatten().ok_or_else(malformed)
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
        // The proxy itself, or a caller on a socket of which nothing is known.
        (0x20, _) | (0x21, 0x00) => Ok(None),
        (0x21, 0x11) => {
            let (addresses, _) = block.split_first_chunk::<12>().ok_or_else(malformed)?;
            let [a, b, c, d, _, _, _, _, high, low, _, _] = *addresses;
            Ok(Some(SocketAddr::new(Ipv4Addr::new(a, b, c, d).into(), u16::from_be_bytes([high, low]))))
        }
        (0x21, 0x21) => {
            let (addresses, _) = block.split_first_chunk::<36>().ok_or_else(malformed)?;
            let (address, rest) = addresses.split_first_chunk::<16>().ok_or_else(malformed)?;
            let [high, low, ..] = *rest.last_chunk::<4>().ok_or_else(malformed)?;
            Ok(Some(SocketAddr::new(Ipv6Addr::from(*address).into(), u16::from_be_bytes([high, low]))))
        }
        // Datagrams and Unix sockets have addresses that nothing here counts by.
        (0x21, family) => match UNCOUNTED.iter().find(|(known, _)| *known == family) {
            Some((_, length)) if block.len() >= *length => Ok(None),
            Some(_) | None => Err(malformed()),
        },
        _ => Err(malformed()),
    }
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

    /// The second version, with a block of that length that begins with 203.0.113.7.
    fn block(family: u8, length: u8) -> Vec<u8> {
        let mut header = SIGNATURE.to_vec();
        header.extend([0x21, family, 0, length]);
        header.extend([203, 0, 113, 7].into_iter().chain(std::iter::repeat(0)).take(usize::from(length)));
        header
    }

    #[tokio::test]
    async fn sockets_without_a_counted_address_have_none() {
        for (family, length) in UNCOUNTED {
            let length = u8::try_from(length).unwrap();
            assert_eq!(read_all(&block(family, length)).await.0.unwrap(), None, "{family:#x}");
            assert!(read_all(&block(family, length - 1)).await.0.is_err(), "{family:#x} is too short");
        }
    }

    #[tokio::test]
    async fn addresses_must_be_whole() {
        assert!(read_all(&block(0x11, 12)).await.0.unwrap().is_some());
        for (family, length) in [(0x11, 11), (0x11, 0), (0x21, 35), (0x13, 12), (0x41, 36)] {
            assert!(read_all(&block(family, length)).await.0.is_err(), "{family:#x} of {length}");
        }
    }

    #[tokio::test]
    async fn anything_else_is_refused() {
        for bytes in [
            &b"GET / HTTP/1.1\r\n\r\n"[..],
            b"PROXY TCP4 ::1 ::1 1 2\r\n",
            b"PROXY TCP4 1.2.3.4 5.6.7.8 99999 2\r\n",
            b"PROXY TCP4 1.2.3.4 5.6.7.8 +1 2\r\n",
            b"PROXY TCP4 1.2.3.4 5.6.7.8 1 x\r\n",
            b"PROXY TCP4 1.2.3.4 5.6.7.8 1 2 3\r\n",
            b"PROXY TCP4  1.2.3.4 5.6.7.8 1 2\r\n",
            b"PROXY TCP4 1.2.3.4\r\n",
            &[b'P'; 200],
        ] {
            assert!(read_all(bytes).await.0.is_err(), "{bytes:?}");
        }
    }
}
