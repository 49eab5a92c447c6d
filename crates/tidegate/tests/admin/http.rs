//! Questions as bytes on a socket, and their answers.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;
use socket2::{Domain, Socket, Type};

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|problem| panic!("{problem}: {self:?}"))
    }

    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.into_iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// What a problem says.
    #[track_caller]
    pub(crate) fn detail(&self) -> String {
        assert_eq!(self.field("content-type"), Some("application/problem+json"), "{self:?}");
        let problem = self.json();
        assert_eq!(problem["status"], self.status, "{self:?}");
        problem["detail"].as_str().unwrap().to_owned()
    }
}

pub(crate) fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream
}

/// A connection from another address of this machine.
pub(crate) fn connect_from(from: [u8; 4], address: SocketAddr) -> TcpStream {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.bind(&SocketAddr::from((from, 0)).into()).unwrap();
    socket.connect(&address.into()).unwrap();
    let stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream
}

/// Sends a request with more fields, each with its line's end, and reads until the other side closes.
pub(crate) fn ask_with(address: SocketAddr, request: &str, fields: &str, body: &str) -> Answer {
    let host = if fields.contains("host:") { String::new() } else { format!("host: {address}\r\n") };
    let length = format!("content-length: {}\r\n", body.len());
    let head = format!("{request} HTTP/1.1\r\n{host}connection: close\r\n{length}{fields}\r\n");
    let mut stream = connect(address);
    stream.write_all(head.as_bytes()).unwrap();
    // Whoever refuses a body may close before all of it was sent.
    drop(stream.write_all(body.as_bytes()));
    let mut bytes = Vec::new();
    drop(stream.read_to_end(&mut bytes));
    let text = String::from_utf8(bytes).unwrap();
    let (head, body) =
        text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer to {request}: {text}"));
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Answer { status, head: head.to_owned(), body: body.to_owned() }
}

pub(crate) fn ask(address: SocketAddr, request: &str, body: &str) -> Answer {
    let json = if body.is_empty() { "" } else { "content-type: application/json\r\n" };
    ask_with(address, request, json, body)
}

pub(crate) fn get(address: SocketAddr, path: &str) -> Answer {
    ask(address, &format!("GET {path}"), "")
}
