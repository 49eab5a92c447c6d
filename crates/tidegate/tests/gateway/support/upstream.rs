//! A service that does what it is told and notes what it gets.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Instant;

use socket2::{Domain, Socket, Type};

use super::latch::Latch;
use super::message::Message;
use super::wire::Wire;
use super::{PATIENCE, tls};

/// A service on a port of its own.
#[derive(Debug)]
pub struct Upstream {
    address: SocketAddr,
    journal: Arc<Journal>,
}

/// What has come.
#[derive(Debug, Default)]
struct Journal {
    is_closing: AtomicBool,
    connections: AtomicUsize,
    open: AtomicUsize,
    most_open: AtomicUsize,
    bytes: Arc<AtomicUsize>,
    requests: Mutex<Vec<Message>>,
    arrivals: Mutex<Vec<(String, Instant)>>,
    changed: Condvar,
}

/// What is sent for a request.
#[derive(Clone, Debug)]
pub struct Answer {
    bytes: Vec<u8>,
    then: Then,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Then {
    NextRequest,
    Close,
    Hang,
}

impl Answer {
    /// 200 with a body.
    pub fn text(body: &str) -> Self {
        Self::with(&[], body)
    }

    /// 200 with fields and a body.
    pub fn with(fields: &[(&str, &str)], body: &str) -> Self {
        let fields: String = fields.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        Self::raw(format!("HTTP/1.1 200 OK\r\n{fields}Content-Length: {}\r\n\r\n{body}", body.len()))
    }

    /// Any bytes.
    pub fn raw(bytes: impl AsRef<[u8]>) -> Self {
        Self { bytes: bytes.as_ref().to_vec(), then: Then::NextRequest }
    }

    /// Nothing, with the connection left open.
    pub const fn silence() -> Self {
        Self { bytes: Vec::new(), then: Then::Hang }
    }

    /// The same, and then the connection is closed.
    pub fn closing(self) -> Self {
        Self { then: Then::Close, ..self }
    }

    /// The same, and then nothing more.
    pub fn hanging(self) -> Self {
        Self { then: Then::Hang, ..self }
    }
}

impl Upstream {
    /// Answers every request.
    pub fn answering(answer: impl Fn(&Message) -> Answer + Send + Sync + 'static) -> Self {
        Self::noting(answer_all(answer))
    }

    /// Answers every request with the same short text.
    pub fn ok() -> Self {
        Self::answering(|_| Answer::text("hello"))
    }

    /// Answers what begins with `/held` only once the latch is open.
    pub fn holding(latch: &Latch) -> Self {
        let latch = latch.clone();
        Self::answering(move |request| {
            if request.target().starts_with("/held") {
                latch.wait();
            }
            Answer::text("hello")
        })
    }

    /// Does to every connection as told; it is closed when that is done.
    pub fn scripted(script: impl Fn(&mut Wire) + Send + Sync + 'static) -> Self {
        Self::noting(move |wire, _| script(wire))
    }

    fn noting(script: impl Fn(&mut Wire, &dyn Fn(&Message)) + Send + Sync + 'static) -> Self {
        Self::listening(Wire::new, script)
    }

    /// Answers every request over encrypted connections.
    pub fn answering_over_tls(answer: impl Fn(&Message) -> Answer + Send + Sync + 'static) -> Self {
        Self::listening(tls::accept, answer_all(answer))
    }

    fn listening(
        accept: impl Fn(TcpStream) -> Wire + Send + Copy + 'static,
        script: impl Fn(&mut Wire, &dyn Fn(&Message)) + Send + Sync + 'static,
    ) -> Self {
        let listener = listen();
        let (address, journal) = (listener.local_addr().unwrap(), Arc::new(Journal::default()));
        let (noted, script) = (Arc::clone(&journal), Arc::new(script));
        std::thread::spawn(move || {
            for socket in listener.incoming().map_while(Result::ok) {
                if noted.is_closing.load(Ordering::SeqCst) {
                    return;
                }
                let (journal, script) = (Arc::clone(&noted), Arc::clone(&script));
                journal.opened();
                std::thread::spawn(move || {
                    let mut wire = accept(socket).counting(Arc::clone(&journal.bytes));
                    script(&mut wire, &|request| journal.note(request));
                    drop(wire);
                    journal.open.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        Self { address, journal }
    }

    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// As a policy names it.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What it got so far.
    pub fn requests(&self) -> Vec<Message> {
        self.journal.requests.lock().unwrap().clone()
    }

    /// The only request it got.
    pub fn only_request(&self) -> Message {
        let requests = self.requests();
        assert_eq!(requests.len(), 1, "{requests:#?}");
        requests.into_iter().next().unwrap()
    }

    /// The targets of the requests it got, in order.
    pub fn targets(&self) -> Vec<String> {
        self.requests().iter().map(|request| request.target().to_owned()).collect()
    }

    /// The targets of the requests it got, and when each had come.
    pub fn arrivals(&self) -> Vec<(String, Instant)> {
        self.journal.arrivals.lock().unwrap().clone()
    }

    /// Waits until so many requests have come.
    pub fn wait_for(&self, count: usize) -> Vec<Message> {
        let requests = self.journal.requests.lock().unwrap();
        let is_short = |requests: &mut Vec<Message>| requests.len() < count;
        let (requests, _) = self.journal.changed.wait_timeout_while(requests, PATIENCE, is_short).unwrap();
        assert!(requests.len() >= count, "only {requests:#?}");
        requests.clone()
    }

    /// How many connections were made to it.
    pub fn connections(&self) -> usize {
        self.journal.connections.load(Ordering::SeqCst)
    }

    /// How many were open at the same time, at most.
    pub fn most_open(&self) -> usize {
        self.journal.most_open.load(Ordering::SeqCst)
    }

    /// How many bytes came.
    pub fn bytes(&self) -> usize {
        self.journal.bytes.load(Ordering::SeqCst)
    }
}

/// A port of its own, with room for many who connect in the same instant.
fn listen() -> TcpListener {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
    socket.listen(4096).unwrap();
    socket.into()
}

/// What is done to a connection whose requests are answered one after another.
fn answer_all(answer: impl Fn(&Message) -> Answer) -> impl Fn(&mut Wire, &dyn Fn(&Message)) {
    move |wire, note| {
        while let Some(request) = wire.request() {
            note(&request);
            let answer = answer(&request);
            if wire.try_send(&answer.bytes).is_err() {
                return;
            }
            match answer.then {
                Then::NextRequest => {}
                Then::Close => return,
                Then::Hang => {
                    // Until the other side gives up.
                    wire.rest();
                    return;
                }
            }
        }
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.journal.is_closing.store(true, Ordering::SeqCst);
        // One more connection, for the thread that waits for it.
        drop(TcpStream::connect(self.address));
    }
}

impl Journal {
    fn opened(&self) {
        self.connections.fetch_add(1, Ordering::SeqCst);
        let open = self.open.fetch_add(1, Ordering::SeqCst) + 1;
        self.most_open.fetch_max(open, Ordering::SeqCst);
    }

    fn note(&self, request: &Message) {
        self.arrivals.lock().unwrap().push((request.target().to_owned(), Instant::now()));
        self.requests.lock().unwrap().push(request.clone());
        self.changed.notify_all();
    }
}
