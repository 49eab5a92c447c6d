//! HTTP/1.1 as a load generator needs it: a request goes out as it is, and of the answer only its end is looked for.
//!
//! The lane's own task writes and reads. A client that keeps a task for every connection is woken twice for an answer
//! and makes much ado about a new connection; under overload, when callers give up and connect anew all the time,
//! the generator is then what falls behind first, and what it measures is itself.
//!
//! Callers have machines of their own, ours share one. A caller who gives up needs a new connection the next time,
//! which takes four times as long as a request. So when all have given up once, because a server was paused for a second,
//! there is more to do than one core can; and whatever makes callers give up for want of time to look after them
//! lasts until the flood ends. Therefore [a connection](super::dial) and a request that is written wait for nobody,
//! and whoever is out of time asks the system once more for an answer that the runtime has not noticed.

use std::io;
use std::net::SocketAddr;

use bytes::{Buf, Bytes};
use http::{Method, Request, StatusCode, header};
use rustix::buffer::spare_capacity;
use rustix::io::Errno;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::ReadHalf;
use tokio::time::{Instant, timeout_at};

use super::Failure;
use super::answer::{Answer, Rest};
use super::dial::dial;

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
    /// Sends the request, over the kept connection if it still lives, and reads the answer to its last byte, or what of
    /// it is here at the deadline. With the status comes the connection, if it can be kept.
    pub(crate) async fn exchange(
        kept: Option<Self>,
        addresses: &[SocketAddr],
        request: &Request<Bytes>,
        deadline: Instant,
    ) -> Result<(StatusCode, Option<Self>), Failure> {
        let mut connection = match kept.filter(Self::lives) {
            Some(connection) => connection,
            None => {
                let dialled = timeout_at(deadline, dial(addresses)).await.map_err(|_| Failure::TimedOut)?;
                Self { stream: dialled.map_err(|_| Failure::Connect)?, buffer: Vec::new() }
            }
        };
        let (answer, is_sent) = match timeout_at(deadline, connection.ask(request)).await {
            Ok(answered) => answered?,
            // A head is sent at once; of a body nobody knows here.
            Err(_) => (connection.unread(request.method())?, request.body().is_empty()),
        };
        let is_last = request.headers().get(header::CONNECTION).is_some_and(|said| said == "close");
        Ok((answer.status, (is_sent && answer.is_kept && !is_last).then_some(connection)))
    }

    /// Whether the server has neither closed it, as is its right between requests, nor said anything unasked. Asks the
    /// system, since the runtime may not have noticed.
    fn lives(&self) -> bool {
        rustix::io::read(&self.stream, &mut [0]) == Err(Errno::AGAIN)
    }

    /// The answer to a request, and whether that was sent as a whole. A server may answer sooner, or want no more; it may
    /// also answer part by part while it reads.
    async fn ask(&mut self, request: &Request<Bytes>) -> Result<(Answer, bool), Failure> {
        let mut out = Bytes::from(head(request)).chain(request.body().clone());
        // The system takes it at once, also from a connection that the runtime has not looked at yet; if not, the runtime
        // tries again, and says what is wrong.
        let mut parts = [io::IoSlice::new(&[]); 2];
        let count = out.chunks_vectored(&mut parts);
        let taken = rustix::io::writev(&self.stream, parts.get(..count).unwrap_or_default()).unwrap_or(0);
        out.advance(taken);
        let (mut reading, mut writing) = self.stream.split();
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

    /// The answer if all of it has come and none of it was read. Asks the system, since the runtime has not noticed.
    fn unread(&mut self, method: &Method) -> Result<Answer, Failure> {
        if !self.buffer.is_empty() {
            return Err(Failure::TimedOut);
        }
        self.buffer.reserve(READ);
        let room = spare_capacity(&mut self.buffer);
        rustix::io::read(&self.stream, room).map_err(|_| Failure::TimedOut)?;
        let (length, answer) = Answer::read(&self.buffer, method)?.ok_or(Failure::TimedOut)?;
        let rest = answer.rest.after(self.buffer.get(length..).unwrap_or_default())?;
        if rest.is_over() { Ok(answer) } else { Err(Failure::TimedOut) }
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
    // What was read first stays, as a sign that something was.
    let first = buffer.len();
    while !answer.rest.is_over() {
        buffer.truncate(first);
        match fill(from, buffer).await? {
            0 if answer.rest == Rest::UntilClose => break,
            0 => return Err(Failure::Reset),
            _ => answer.rest = answer.rest.after(buffer.get(first..).unwrap_or_default())?,
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
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::pin::pin;
    use std::task::{Context, Waker};
    use std::time::Duration;

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

    /// What is found when time is over, if so much has come and the runtime has not noticed.
    async fn found_late(come: &[u8]) -> Result<StatusCode, Failure> {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = dial(&[server.local_addr().unwrap()]).await.unwrap();
        let (mut accepted, _) = server.accept().unwrap();
        accepted.write_all(come).unwrap();
        let mut connection = Http1 { stream, buffer: Vec::new() };
        connection.unread(&Method::GET).map(|answer| answer.status)
    }

    #[tokio::test]
    async fn an_answer_that_has_come_is_found_when_time_is_over() {
        let whole = b"HTTP/1.1 503 Busy\r\ncontent-length: 2\r\n\r\nno";
        assert_eq!(found_late(whole).await, Ok(StatusCode::SERVICE_UNAVAILABLE));
        for come in [&b""[..], b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n1"] {
            assert_eq!(found_late(come).await, Err(Failure::TimedOut));
        }
    }

    #[tokio::test]
    async fn a_request_is_with_the_server_before_the_runtime_looks() {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let addresses = [server.local_addr().unwrap()];
        let request = Request::new(Bytes::new());
        let deadline = Instant::now() + Duration::from_mins(1);
        let mut exchange = pin!(Http1::exchange(None, &addresses, &request, deadline));
        assert!(exchange.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        let (mut accepted, _) = server.accept().unwrap();
        let mut asked = [0; 14];
        accepted.read_exact(&mut asked).unwrap();
        assert_eq!(&asked, b"GET / HTTP/1.1");
    }
}
