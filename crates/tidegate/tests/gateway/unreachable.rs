//! Endpoints that take long to fail are found out by few requests, and asked by few.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use http::Response;
use socket2::{Domain, Socket, Type};

use crate::support::{Answer, Gateway, H2Client, H2Upstream, Upstream, Wire, full, tls, until};

/// Slower than any answer here, and faster than any time-out.
const SLOW: Duration = Duration::from_millis(400);

/// An address that drops packets of those who want to connect: its queue is full, and nothing is taken from it.
struct Deaf {
    listener: Socket,
    _waiting: Vec<TcpStream>,
}

impl Deaf {
    fn new() -> Self {
        let listener = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        listener.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
        listener.listen(0).unwrap();
        let address = listener.local_addr().unwrap().as_socket().unwrap();
        let connect = || TcpStream::connect_timeout(&address, Duration::from_millis(200));
        let waiting = std::iter::from_fn(|| connect().ok()).collect();
        Self { listener, _waiting: waiting }
    }

    fn url(&self) -> String {
        format!("http://{}", self.listener.local_addr().unwrap().as_socket().unwrap())
    }

    /// Takes connections from now on.
    fn wake(self) -> TcpListener {
        self.listener.listen(128).unwrap();
        self.listener.into()
    }
}

fn start(endpoints: &[&str], keys: &str) -> Gateway {
    Gateway::start(&format!("listen = '127.0.0.1:0'\n[upstream.service]\nendpoints = {endpoints:?}\n{keys}"))
}

/// How many of so many requests were slow; all of them are answered by the service that is well.
fn slow(count: usize, mut ask: impl FnMut() -> u16) -> usize {
    let is_slow = |_: &usize| {
        let begun = Instant::now();
        assert_eq!(ask(), 200);
        begun.elapsed() >= SLOW
    };
    (0..count).filter(is_slow).count()
}

#[test]
fn an_endpoint_that_drops_packets_makes_few_requests_slow() {
    let (upstream, deaf) = (Upstream::ok(), Deaf::new());
    let gateway = start(&[&deaf.url(), &upstream.url()], "");
    let mut client = gateway.connect();
    let slow = slow(20, || client.get("/", &[]).status());
    assert!(slow <= 1, "{slow} of 20");
}

#[test]
fn it_is_tried_again_by_no_request() {
    let (upstream, deaf) = (Upstream::ok(), Deaf::new());
    let gateway = start(&[&deaf.url(), &upstream.url()], "connect_timeout = '500ms'");
    let mut client = gateway.connect();
    // Long enough for it to be tried again twice.
    let begun = Instant::now();
    let mut slow_ones = 0;
    while begun.elapsed() < Duration::from_millis(3_500) {
        slow_ones += slow(20, || client.get("/", &[]).status());
    }
    assert!(slow_ones <= 1, "{slow_ones}");
}

#[test]
fn callers_who_come_at_once_do_not_all_wait_for_it() {
    let (upstream, deaf) = (Upstream::ok(), Deaf::new());
    let gateway = start(&[&deaf.url(), &upstream.url()], "");
    // The first one finds out who is well.
    let first = slow(1, || gateway.get("/", &[]).status());
    let others: usize = std::thread::scope(|scope| {
        let callers: Vec<_> =
            (0..20).map(|_| scope.spawn(|| slow(1, || gateway.get("/", &[]).status()))).collect();
        callers.into_iter().map(|caller| caller.join().unwrap()).sum()
    });
    assert!(first + others <= 2, "{first} and {others} of 20");
}

#[test]
fn an_endpoint_that_comes_back_is_asked_again() {
    let (upstream, deaf) = (Upstream::ok(), Deaf::new());
    let gateway = start(&[&deaf.url(), &upstream.url()], "connect_timeout = '300ms'");
    let mut client = gateway.connect();
    // By chance it may not be the first to be asked.
    while slow(1, || client.get("/", &[]).status()) == 0 && upstream.requests().len() < 64 {}
    let woken = deaf.wake();
    let is_asked = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&is_asked);
    std::thread::spawn(move || {
        // The first ones are those that filled the queue.
        for socket in woken.incoming().map_while(Result::ok) {
            let told = Arc::clone(&told);
            std::thread::spawn(move || {
                let mut wire = Wire::new(socket);
                while wire.request().is_some() {
                    told.store(true, Ordering::SeqCst);
                    wire.send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello");
                }
            });
        }
    });
    until(|| {
        assert_eq!(client.get("/", &[]).status(), 200);
        is_asked.load(Ordering::SeqCst)
    });
}

#[test]
fn a_handshake_that_hangs_makes_few_requests_slow() {
    // The queue takes connections, and nobody says a word on them.
    let mute = TcpListener::bind("127.0.0.1:0").unwrap();
    let upstream = Upstream::answering_over_tls(|_| Answer::text("hello"));
    let policy = format!(
        "listen = '127.0.0.1:0'\n[upstream.service]\nendpoints = ['https://{}', 'https://{}']",
        mute.local_addr().unwrap(),
        upstream.address()
    );
    let gateway = Gateway::start_among(&[("SSL_CERT_FILE", tls::CERT_FILE)], &policy);
    let mut client = gateway.connect();
    let slow = slow(20, || client.get("/", &[]).status());
    assert!(slow <= 1, "{slow} of 20");
}

#[test]
fn it_is_the_same_over_http_2_on_both_sides() {
    let (upstream, deaf) = (H2Upstream::answering(|_| Response::new(full("hello"))), Deaf::new());
    let gateway = start(&[&deaf.url(), &upstream.url()], "protocol = 'h2'");
    let client = H2Client::connect(gateway.address());
    let slow = slow(20, || client.get("http://service.test/", &[]).status().as_u16());
    assert!(slow <= 1, "{slow} of 20");
}

#[test]
fn a_time_out_that_is_shorter_than_connecting_tells_as_much() {
    let (upstream, deaf) = (Upstream::ok(), Deaf::new());
    let gateway = start(&[&deaf.url(), &upstream.url()], "timeout = '500ms'\nconnect_timeout = '1s'");
    let mut client = gateway.connect();
    let statuses: Vec<u16> = (0..20).map(|_| client.get("/", &[]).status()).collect();
    assert!(statuses.iter().filter(|status| **status != 200).count() <= 1, "{statuses:?}");
}

#[test]
fn an_endpoint_that_takes_requests_and_never_answers_is_asked_by_few() {
    let (upstream, silent) = (Upstream::ok(), Upstream::answering(|_| Answer::silence()));
    let gateway = start(&[&silent.url(), &upstream.url()], "timeout = '1s'");
    let mut client = gateway.connect();
    let statuses: Vec<u16> = (0..200).map(|_| client.get("/", &[]).status()).collect();
    let failed = statuses.iter().filter(|status| **status == 504).count();
    assert!(failed <= 2, "{failed} of 200");
    assert_eq!(silent.requests().len(), failed);
}
