//! One connection, on which any bytes can be sent and whole messages be read.

use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::PATIENCE;
use super::message::{Fields, Message};

/// What bytes go over: a socket, or an encrypted one.
pub trait Stream: Read + Write + Send {}

impl<S: Read + Write + Send> Stream for S {}

pub struct Wire {
    stream: Box<dyn Stream>,
    socket: TcpStream,
    /// What has been read and not been taken yet.
    read: Vec<u8>,
    /// All bytes that came, for whoever wants to know that there were none.
    came: Arc<AtomicUsize>,
}

impl fmt::Debug for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wire").field("socket", &self.socket).finish_non_exhaustive()
    }
}

impl Wire {
    pub fn new(socket: TcpStream) -> Self {
        let stream = socket.try_clone().unwrap();
        Self::over(Box::new(stream), socket)
    }

    /// Over `stream`, which goes through `socket`.
    pub fn over(stream: Box<dyn Stream>, socket: TcpStream) -> Self {
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket.set_write_timeout(Some(PATIENCE)).unwrap();
        socket.set_nodelay(true).unwrap();
        Self { stream, socket, read: Vec::new(), came: Arc::default() }
    }

    pub fn counting(self, came: Arc<AtomicUsize>) -> Self {
        Self { came, ..self }
    }

    /// Sends bytes as they are.
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) -> &mut Self {
        self.try_send(bytes).unwrap();
        self
    }

    /// Sends bytes to somebody who may have gone.
    pub fn try_send(&mut self, bytes: impl AsRef<[u8]>) -> io::Result<()> {
        self.stream.write_all(bytes.as_ref())?;
        self.stream.flush()
    }

    /// Closes the side we send on; answers still come.
    pub fn finish_sending(&mut self) {
        self.socket.shutdown(Shutdown::Write).unwrap();
    }

    /// Ends the connection at once.
    pub fn cut(&mut self) {
        drop(self.socket.shutdown(Shutdown::Both));
    }

    /// Reads some more; false at the end. A connection that the other side reset has ended too.
    fn more(&mut self) -> bool {
        let mut bytes = [0; 16 * 1024];
        match self.stream.read(&mut bytes) {
            Ok(count) => {
                self.came.fetch_add(count, Ordering::SeqCst);
                self.read.extend_from_slice(&bytes[..count]);
                count > 0
            }
            Err(error) if is_timeout(&error) => panic!("nothing came; before: {:?}", self.seen()),
            Err(_) => false,
        }
    }

    fn seen(&self) -> String {
        String::from_utf8_lossy(&self.read).into_owned()
    }

    /// Whether the other side has closed, with nothing more to be read.
    pub fn is_closed(&mut self) -> bool {
        self.read.is_empty() && !self.more()
    }

    /// Everything up to the other side's close.
    pub fn rest(&mut self) -> Vec<u8> {
        while self.more() {}
        std::mem::take(&mut self.read)
    }

    /// Reads exactly so many bytes.
    pub fn take(&mut self, count: usize) -> Vec<u8> {
        while self.read.len() < count {
            assert!(self.more(), "closed after {:?}", self.seen());
        }
        let rest = self.read.split_off(count);
        std::mem::replace(&mut self.read, rest)
    }

    /// Reads up to `end`, which is taken too and not given; none when the connection ends before.
    pub fn until(&mut self, end: &[u8]) -> Option<Vec<u8>> {
        loop {
            if let Some(at) = self.read.windows(end.len()).position(|window| window == end) {
                let mut taken = self.take(at + end.len());
                taken.truncate(at);
                return Some(taken);
            }
            if !self.more() {
                return None;
            }
        }
    }

    /// Reads a head; none when the connection ends instead.
    pub fn head(&mut self) -> Option<Fields> {
        let head = self.until(b"\r\n\r\n")?;
        Some(Fields::parse(&head))
    }

    /// Reads a whole request; none when the connection ends before it does.
    pub fn request(&mut self) -> Option<Message> {
        let head = self.head()?;
        self.body_of(head, false)
    }

    /// Reads a whole answer; none when the connection ends before it does.
    pub fn try_response(&mut self) -> Option<Message> {
        let head = self.head()?;
        self.body_of(head, true)
    }

    /// Reads a whole answer.
    pub fn response(&mut self) -> Message {
        self.try_response().unwrap_or_else(|| panic!("closed without an answer: {:?}", self.seen()))
    }

    /// Reads an answer that has a head only, as to HEAD.
    pub fn response_head(&mut self) -> Message {
        let head = self.head().expect("an answer");
        Message { head, ..Message::default() }
    }

    fn body_of(&mut self, head: Fields, is_answer: bool) -> Option<Message> {
        if head.get("transfer-encoding").is_some() {
            return self.chunked(head);
        }
        let length = head.get("content-length").map(|length| length.parse::<usize>().unwrap());
        let has_none = ["HTTP/1.1 1", "HTTP/1.1 204", "HTTP/1.1 304"];
        let body = match length {
            _ if has_none.iter().any(|none| head.first_line.starts_with(none)) => Vec::new(),
            Some(length) => {
                while self.read.len() < length {
                    if !self.more() {
                        return None;
                    }
                }
                self.take(length)
            }
            None if is_answer => self.rest(),
            None => Vec::new(),
        };
        Some(Message { head, body, trailers: Fields::default() })
    }

    fn chunked(&mut self, head: Fields) -> Option<Message> {
        let mut body = Vec::new();
        while let Some(chunk) = self.chunk()? {
            body.extend(chunk);
        }
        let mut trailers = Vec::new();
        loop {
            let line = String::from_utf8(self.until(b"\r\n")?).unwrap();
            if line.is_empty() {
                return Some(Message { head, body, trailers: Fields::parse_trailers(&trailers) });
            }
            trailers.push(line);
        }
    }

    /// One chunk; the inner none is the last one, behind which trailers stand. None when the connection ends.
    pub fn chunk(&mut self) -> Option<Option<Vec<u8>>> {
        let size = String::from_utf8(self.until(b"\r\n")?).unwrap();
        let digits = size.split(';').next().unwrap_or_default();
        let size = usize::from_str_radix(digits, 16).unwrap_or_else(|_| panic!("no chunk: {size:?}"));
        if size == 0 {
            return Some(None);
        }
        while self.read.len() < size + 2 {
            if !self.more() {
                return None;
            }
        }
        let mut chunk = self.take(size + 2);
        chunk.truncate(size);
        Some(Some(chunk))
    }
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}
