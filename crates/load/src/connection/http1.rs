//! HTTP/1.1 as a load generator needs it: a request goes out as it is, and of the answer only its end is looked for.
//!
//! The lane's own task writes and reads. A client that keeps a task for every connection is woken twice for an answer
//! and makes much ado about a new connection; under overload, when callers give up and connect anew all the time,
//! the generator is then what falls behind first, and what it measures is itself.

use std::io;
use std::net::SocketAddr;

use bytes::{Buf, Bytes};
use http::{Method, Request, StatusCode, header};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::ReadHalf;

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
    /// Room to read.
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
        let (answer, is_sent) = connection.ask(request).await?;
        let is_last = request.headers().get(header::CONNECTION).is_some_and(|said| said == "close");
        Ok((answer.status, (is_sent && answer.is_kept && !is_last).then_some(connection)))
    }

    /// Whether the server has neither closed it, as is its right between requests, nor said anything unasked, as far as
    /// the runtime has noticed.
    fn lives(&self) -> bool {
        let looked = self.stream.try_read(&mut [0]);
        looked.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
    }

    /// The answer to a request, and whether that was sent as a whole. A server may answer sooner, or want no more; it may
    /// also answer part by part while it reads.
    async fn ask(&mut self, request: &Request<Bytes>) -> Result<(Answer, bool), Failure> {
        let (mut reading, mut writing) = self.stream.split();
        let mut out = Bytes::from(head(request)).chain(request.body().clone());
        let sending = async { writing.write_all_buf(&mut out).await.is_ok() };
        let answer = read(&mut reading, &mut self.buffer, request.method());
        tokio::pin!(sending, answer);
        let (mut is_sending, mut is_sent) = (true, false);
        loop {
            tokio::select! {
                biased;
                sent = &mut sending, if is_sending => (is_sending, is_sent) = (false, sent),
                answer = &mut answer => return Ok((answer?, is_sent)),
            }
        }
    }
}

async fn read(from: &mut ReadHalf<'_>, buffer: &mut Vec<u8>, method: &Method) -> Result<Answer, Failure> {
    buffer.clear();
    let (length, mut answer) = loop {
        if fill(from, buffer).await? == 0 {
            return Err(Failure::Reset);
        }
        if let Some(found) = Answer::read(buffer, method)? {
            break found;
        }
        if buffer.len() > LONGEST_HEAD {
            return Err(Failure::Protocol);
        }
    };
    answer.rest = answer.rest.after(buffer.get(length..).unwrap_or_default())?;
    while !answer.rest.is_over() {
        buffer.clear();
        match fill(from, buffer).await? {
            0 if answer.rest == Rest::UntilClose => break,
            0 => return Err(Failure::Reset),
            _ => answer.rest = answer.rest.after(buffer)?,
        }
    }
    Ok(answer)
}

/// Reads once, and says how much; nothing when the server has said all it will.
async fn fill(from: &mut ReadHalf<'_>, buffer: &mut Vec<u8>) -> Result<usize, Failure> {
    buffer.reserve(READ);
    from.read_buf(buffer).await.map_err(|_| Failure::Reset)
}

/// The head of a request as it goes over the wire.
fn head(request: &Request<Bytes>) -> Vec<u8> {
    let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
    let mut head = format!("{} {path} HTTP/1.1\r\n", request.method()).into_bytes();
    let mut add = |name: &str, value: &[u8]| {
        for part in [name.as_bytes(), b": ", value, b"\r\n"] {
            head.extend_from_slice(part);
        }
    };
    request.headers().iter().for_each(|(name, value)| add(name.as_str(), value.as_bytes()));
    let length = request.body().len();
    if length > 0 {
        add(header::CONTENT_LENGTH.as_str(), length.to_string().as_bytes());
    }
    head.extend_from_slice(b"\r\n");
    head
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_written_with_its_query_its_fields_and_the_length_of_its_body() {
        let mut request = Request::new(Bytes::from_static(b"abc"));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = "/v1/items?page=2".parse().unwrap();
        request.headers_mut().append("x-tag", "a".parse().unwrap());
        request.headers_mut().append("x-tag", "b".parse().unwrap());
        let written = "POST /v1/items?page=2 HTTP/1.1\r\nx-tag: a\r\nx-tag: b\r\ncontent-length: 3\r\n\r\n";
        assert_eq!(String::from_utf8(head(&request)).unwrap(), written);
    }
}
