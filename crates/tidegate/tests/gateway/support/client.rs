//! A caller who writes its requests by hand.

use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::ops::{Deref, DerefMut};

use socket2::{Domain, Socket, Type};

use super::message::Message;
use super::wire::Wire;

/// One connection to a gateway.
#[derive(Debug)]
pub struct Client(Wire);

impl Client {
    pub fn connect(to: SocketAddr) -> Self {
        Self(Wire::new(TcpStream::connect(to).unwrap()))
    }

    /// From another address of this machine.
    pub fn connect_from(from: Ipv4Addr, to: SocketAddr) -> Self {
        Self(Wire::new(socket_from(from, to)))
    }

    pub const fn over(wire: Wire) -> Self {
        Self(wire)
    }

    /// Sends a request without a body and reads its answer.
    pub fn get(&mut self, target: &str, fields: &[(&str, &str)]) -> Message {
        self.ask("GET", target, fields, "")
    }

    /// Sends a request and reads its answer.
    pub fn ask(&mut self, method: &str, target: &str, fields: &[(&str, &str)], body: &str) -> Message {
        self.send(request(method, target, fields, body)).response()
    }
}

/// A connection from another address of this machine.
pub fn socket_from(from: Ipv4Addr, to: SocketAddr) -> TcpStream {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.bind(&SocketAddr::from((from, 0)).into()).unwrap();
    socket.connect(&to.into()).unwrap();
    socket.into()
}

impl Deref for Client {
    type Target = Wire;

    fn deref(&self) -> &Wire {
        &self.0
    }
}

impl DerefMut for Client {
    fn deref_mut(&mut self) -> &mut Wire {
        &mut self.0
    }
}

/// A request as it stands on the wire. It has a Host unless `fields` name one, and a length unless its body is empty.
pub fn request(method: &str, target: &str, fields: &[(&str, &str)], body: &str) -> String {
    let mut text = format!("{method} {target} HTTP/1.1\r\n");
    if !fields.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
        text.push_str("Host: service.test\r\n");
    }
    for (name, value) in fields {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    if !body.is_empty() {
        text.push_str(&format!("Content-Length: {}\r\n", body.len()));
    }
    text + "\r\n" + body
}
