//! Callers of an encrypted port who do not encrypt: most often a URL with the wrong scheme.

use std::io;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Whether a caller of an encrypted port does not encrypt: a method begins with a letter, and nothing of TLS does.
pub(crate) async fn is_so(stream: &TcpStream) -> io::Result<bool> {
    let mut first = [0];
    let count = stream.peek(&mut first).await?;
    Ok(count == 1 && first[0].is_ascii_alphabetic())
}

/// What such a caller is told. It may not know TLS at all, so these are plain words.
const ANSWER: &str = "HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain; charset=utf-8\r\n\
    content-length: 47\r\ncache-control: no-store\r\nconnection: close\r\n\r\n\
    This port speaks HTTPS; ask again by https://.\n";

/// How much of the rest is read, so that the system does not throw the answer away with it.
const MOST_READ: usize = 16 * 1024;

/// Says so, and lets the caller read it.
pub(crate) async fn tell(mut stream: TcpStream) -> io::Result<()> {
    stream.write_all(ANSWER.as_bytes()).await?;
    stream.shutdown().await?;
    let (mut rest, mut read) = ([0; 1024], 0);
    while read < MOST_READ {
        match stream.read(&mut rest).await? {
            0 => break,
            count => read += count,
        }
    }
    Ok(())
}
