//! Just enough HTTP/1.1 for one question and its answer: a connection each, closed by the other side.
//!
//! A wrong port is easily typed, and what listens there may answer anything in JSON. So `/livez`, which is open to all, is
//! asked first: only who marks its answer as an admin API does gets the question, and with it the token.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use serde_json::Value;
use tidegate_policy::escaped;

use super::Failure;
use crate::admin::{MARK, Token};

const CONNECT_TIME: Duration = Duration::from_secs(5);
const ANSWER_TIME: Duration = Duration::from_secs(30);
/// More than any answer of ours.
const LONGEST_ANSWER: u64 = 64 << 20;

/// What is sent.
#[derive(Debug)]
pub(super) struct Question {
    pub(super) method: &'static str,
    pub(super) path: String,
    /// With its media type.
    pub(super) body: Option<(&'static str, Vec<u8>)>,
}

/// What came back.
#[derive(Debug)]
pub(super) struct Answer {
    /// Whether it comes from an admin API.
    is_marked: bool,
    pub(super) status: u16,
    pub(super) body: Vec<u8>,
}

/// Where it is sent.
#[derive(Debug)]
pub(super) struct Client {
    address: String,
    token: Option<Token>,
}

impl Client {
    pub(super) fn new(address: &str, token: Option<Token>) -> Result<Self, Failure> {
        if address.starts_with("https://") {
            return Err(Failure::new("the admin API speaks no TLS; write --admin HOST:PORT"));
        }
        let address = address.strip_prefix("http://").unwrap_or(address).trim_end_matches('/').to_owned();
        let is_sendable = address.bytes().all(|byte| byte.is_ascii_graphic());
        let has_port = address.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
        if !(is_sendable && has_port) {
            return Err(Failure::new(format!("`{address}` is not an address; write --admin HOST:PORT")));
        }
        Ok(Self { address, token })
    }

    pub(super) fn ask(&self, question: &Question) -> Result<Answer, Failure> {
        let probe = Question { method: "GET", path: "/livez".to_owned(), body: None };
        drop(self.send(&probe, None)?);
        self.send(question, self.token.as_ref())
    }

    fn send(&self, question: &Question, token: Option<&Token>) -> Result<Answer, Failure> {
        let failed = |what: &str, problem: &io::Error| {
            Failure::new(format!("the admin API at {} {what}: {problem}", self.address))
        };
        let mut stream = self.connect().map_err(|problem| failed("cannot be reached", &problem))?;
        let answered = stream
            .write_all(&self.written(question, token))
            .and_then(|()| {
                let mut bytes = Vec::new();
                stream.take(LONGEST_ANSWER).read_to_end(&mut bytes)?;
                Ok(bytes)
            })
            .map_err(|problem| failed("does not answer", &problem))?;
        let answer = Answer::read(&answered).filter(|answer| answer.is_marked);
        answer.ok_or_else(|| Failure::new(format!("{} is not a Tidegate admin API", self.address)))
    }

    fn connect(&self) -> io::Result<TcpStream> {
        let mut last = io::Error::new(io::ErrorKind::NotFound, "the name leads nowhere");
        for address in self.address.to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, CONNECT_TIME) {
                Ok(stream) => {
                    stream.set_read_timeout(Some(ANSWER_TIME))?;
                    stream.set_write_timeout(Some(ANSWER_TIME))?;
                    return Ok(stream);
                }
                Err(problem) => last = problem,
            }
        }
        Err(last)
    }

    fn written(&self, question: &Question, token: Option<&Token>) -> Vec<u8> {
        let Question { method, path, body } = question;
        let mut head = format!("{method} {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n", self.address);
        if let Some(token) = token {
            head.push_str(&format!("authorization: {}\r\n", token.field()));
        }
        if let Some((media_type, body)) = body {
            head.push_str(&format!("content-type: {media_type}\r\ncontent-length: {}\r\n", body.len()));
        } else if *method != "GET" {
            head.push_str("content-length: 0\r\n");
        }
        head.push_str("\r\n");
        let mut bytes = head.into_bytes();
        bytes.extend(body.iter().flat_map(|(_, body)| body));
        bytes
    }
}

impl Answer {
    /// Reads an answer whose length is told and which is there as a whole.
    fn read(bytes: &[u8]) -> Option<Self> {
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")?;
        let (head, body) = (std::str::from_utf8(&bytes[..end]).ok()?, &bytes[end + 4..]);
        let mut lines = head.split("\r\n");
        let mut first = lines.next()?.splitn(3, ' ');
        first.next().filter(|version| version.starts_with("HTTP/1."))?;
        let status = first.next()?.parse().ok()?;
        let fields: Vec<(&str, &str)> = lines.filter_map(|line| line.split_once(':')).collect();
        let field = |name: &str| fields.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        let (_, length) = field("content-length")?;
        let body = body.get(..length.trim().parse().ok()?)?.to_vec();
        Some(Self { is_marked: field(MARK).is_some(), status, body })
    }

    pub(super) fn json(&self) -> Result<Value, Failure> {
        serde_json::from_slice(&self.body)
            .map_err(|problem| Failure::new(format!("the answer is not JSON: {problem}")))
    }

    /// What the other side says about why not.
    pub(super) fn complaint(&self) -> String {
        let detail = self.json().ok().and_then(|value| Some(escaped(value["detail"].as_str()?).into_owned()));
        let token = "; give the token with --token-file, or in $TIDEGATE_TOKEN";
        match (self.status, detail) {
            (401, Some(detail)) => format!("{detail}{token}"),
            (_, Some(detail)) => detail,
            (status, None) => format!("the answer is {status}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_answers_are_read_and_broken_ones_are_not() {
        let answer = Answer::read(b"HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\n{}").unwrap();
        assert_eq!((answer.status, answer.body.as_slice()), (404, &b"{}"[..]));
        assert!(!answer.is_marked);
        let ours = b"HTTP/1.1 200 OK\r\nTidegate-Admin: v1\r\ncontent-length: 0\r\n\r\n";
        assert!(Answer::read(ours).unwrap().is_marked);
        for broken in [
            &b""[..],
            b"HTTP/1.1 200 OK\r\n",
            b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\n{}",
            b"HTTP/1.1 200 OK\r\n\r\n{}",
            b"SSH-2.0-x\r\n\r\n",
        ] {
            assert!(Answer::read(broken).is_none());
        }
    }

    #[test]
    fn addresses_have_a_port_and_no_tls() {
        for (address, is_fine) in [
            ("127.0.0.1:9900", true),
            ("http://localhost:9900/", true),
            ("[::1]:9900", true),
            ("localhost", false),
            ("https://localhost:9900", false),
            ("a b:1", false),
        ] {
            assert_eq!(Client::new(address, None).is_ok(), is_fine, "{address}");
        }
    }
}
