//! HTTP/1.1 as a load generator needs it: a request is written as a whole, and of the answer only its end is looked for.
//!
//! The lane's own task writes and reads. A client that keeps a task for every connection is woken twice for an answer
//! and makes much ado about a new connection; under overload, when callers give up and connect anew all the time,
//! the generator is then what falls behind first, and what it measures is itself.

use std::io::{self, Write};
use std::net::SocketAddr;

use bytes::Bytes;
use http::{Method, Request, StatusCode, header};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::answer::{Answer, Rest};
use super::{Failure, connect};

/// The longest head of an answer that is read.
const LONGEST_HEAD: usize = 64 * 1024;

/// How much is read at once, at least.
const READ: usize = 2 * 1024;

/// A connection that is free for the next request.
#[derive(Debug)]
pub(crate) struct Http1 {
    stream: TcpStream,
    /// What is read and written, one after the other.
    buffer: Vec<u8>,
}

impl Http1 {
    /// Sends the request, over the kept connection if it still lives, and reads the answer to its last byte. With the
    /// status comes the connection, if it can be kept.
    pub(crate) async fn exchange(
        kept: Option<Self>,
        addresses: &[SocketAddr],
        request: &Request<Bytes>,
    ) -> Result<(StatusCode, Option<Self>), Failure> {
        let mut connection = match kept.filter(Self::lives) {
            Some(connection) => connection,
            None => Self { stream: connect(addresses).await?, buffer: Vec::new() },
        };
        connection.buffer.clear();
        write(request, &mut connection.buffer).map_err(|_| Failure::Protocol)?;
        connection.stream.write_all(&connection.buffer).await.map_err(|_| Failure::Reset)?;
        let answer = connection.read(request.method() == Method::HEAD).await?;
        Ok((answer.status, answer.is_kept.then_some(connection)))
    }

    /// Whether the server has neither closed it, as is its right between requests, nor said anything unasked.
    fn lives(&self) -> bool {
        let looked = self.stream.try_read(&mut [0]);
        looked.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
    }

    async fn read(&mut self, is_bodiless: bool) -> Result<Answer, Failure> {
        self.buffer.clear();
        let (length, mut answer) = loop {
            self.fill().await?.ok_or(Failure::Reset)?;
            if let Some(found) = Answer::read(&self.buffer, is_bodiless)? {
                break found;
            }
            if self.buffer.len() > LONGEST_HEAD {
                return Err(Failure::Protocol);
            }
        };
        answer.rest = answer.rest.after(self.buffer.get(length..).unwrap_or_default())?;
        while !answer.rest.is_over() {
            self.buffer.clear();
            match self.fill().await? {
                Some(()) => answer.rest = answer.rest.after(&self.buffer)?,
                None if answer.rest == Rest::UntilClose => break,
                None => return Err(Failure::Reset),
            }
        }
        Ok(answer)
    }

    /// Reads once; nothing when the server has said all it will.
    async fn fill(&mut self) -> Result<Option<()>, Failure> {
        self.buffer.reserve(READ);
        let count = self.stream.read_buf(&mut self.buffer).await.map_err(|_| Failure::Reset)?;
        Ok((count > 0).then_some(()))
    }
}

/// Writes a request as it goes over the wire.
fn write(request: &Request<Bytes>, out: &mut Vec<u8>) -> io::Result<()> {
    let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
    write!(out, "{} {path} HTTP/1.1\r\n", request.method())?;
    for (name, value) in request.headers() {
        out.extend_from_slice(name.as_str().as_bytes());
        out.extend_from_slice(b": ");
        out.extend_from_slice(value.as_bytes());
        out.extend_from_slice(b"\r\n");
    }
    let body = request.body();
    if !body.is_empty() && !request.headers().contains_key(header::CONTENT_LENGTH) {
        write!(out, "content-length: {}\r\n", body.len())?;
    }
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(body);
    Ok(())
}
