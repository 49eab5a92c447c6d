//! How it ends.

use std::net::{SocketAddr, TcpStream};
use std::sync::mpsc;
use std::time::Instant;

use crate::gateway::support::{Answer, Latch, Message, PATIENCE, Signal, Upstream};
use crate::operated::Operated;
use crate::published::assert_is;

/// A request that its upstream answers when the latch is opened; its answer comes over the channel.
fn in_flight(rest: &str) -> (Operated, Upstream, Latch, mpsc::Receiver<Message>) {
    let latch = Latch::default();
    let waited = latch.clone();
    let upstream = Upstream::answering(move |request| {
        if request.target() == "/slow" {
            waited.wait();
        }
        Answer::text("done")
    });
    let gateway = Operated::before(&upstream, rest);
    let mut client = gateway.gateway.connect();
    let (sender, answer) = mpsc::channel();
    std::thread::spawn(move || sender.send(client.get("/slow", &[])));
    upstream.wait_for(1);
    (gateway, upstream, latch, answer)
}

fn until_refused(address: SocketAddr) {
    let begun = Instant::now();
    while TcpStream::connect(address).is_ok() {
        assert!(begun.elapsed() < PATIENCE, "it still listens");
        std::thread::yield_now();
    }
}

#[test]
fn what_is_in_flight_is_finished_before_it_ends() {
    let (mut gateway, _upstream, latch, answer) = in_flight("");
    gateway.gateway.signal(Signal::TERM);
    gateway.says("tidegate: draining");
    until_refused(gateway.gateway.address());
    let ready = gateway.ask("GET", "/readyz", "");
    assert_eq!((ready.status(), ready.text()), (503, "draining\n"));
    assert_eq!(gateway.ask("GET", "/livez", "").status(), 200, "operators can look until the end");
    assert_eq!(gateway.get("/api/v1/status")["verdict"], "Draining: 1 request in flight.");
    assert!(answer.try_recv().is_err(), "it is still in flight");
    latch.open();
    let answer = answer.recv_timeout(PATIENCE).unwrap();
    assert_eq!((answer.status(), answer.text()), (200, "done"));
    assert_eq!(gateway.gateway.wait().code(), Some(0));
}

#[test]
fn it_is_not_ready_for_a_while_before_it_stops_listening() {
    let upstream = Upstream::ok();
    let mut gateway = Operated::before(&upstream, "server.drain_delay = \"3s\"\n");
    assert_eq!(gateway.ask("GET", "/readyz", "").status(), 200);
    gateway.gateway.signal(Signal::TERM);
    gateway.says("tidegate: draining");
    assert_eq!(gateway.ask("GET", "/readyz", "").status(), 503);
    assert_eq!(gateway.gateway.get("/", &[]).status(), 200, "who did not look yet is still served");
    assert_eq!(gateway.gateway.wait().code(), Some(0));
}

#[test]
fn operators_end_it_over_the_api() {
    let (mut gateway, _upstream, latch, answer) = in_flight("");
    let mut frames = gateway.frames();
    assert_eq!(frames.next().unwrap()["stage"], "ready");
    let asked = gateway.ask("POST", "/api/v1/drain", "");
    assert_eq!(asked.status(), 202, "{asked:?}");
    assert_is("Status", &asked.json());
    assert_eq!(asked.json()["stage"], "draining");
    assert_eq!(gateway.ask("GET", "/readyz", "").status(), 503);
    assert_eq!(gateway.ask("POST", "/api/v1/drain", "").status(), 202, "asking twice changes nothing");
    until_refused(gateway.gateway.address());
    assert_eq!(frames.last().unwrap()["stage"], "draining", "the stream ends with it");
    latch.open();
    assert_eq!(answer.recv_timeout(PATIENCE).unwrap().status(), 200);
    assert_eq!(gateway.gateway.wait().code(), Some(0));
}

#[test]
fn time_for_the_end_is_bounded() {
    let (mut gateway, _upstream, _latch, _answer) = in_flight("server.drain = \"100ms\"\n");
    gateway.gateway.signal(Signal::TERM);
    assert_eq!(gateway.gateway.wait().code(), Some(0));
}

#[test]
fn whoever_interrupts_twice_does_not_wait() {
    let (mut gateway, _upstream, _latch, _answer) = in_flight("server.drain = \"10min\"\n");
    gateway.gateway.signal(Signal::INT);
    gateway.says("tidegate: draining");
    gateway.gateway.signal(Signal::INT);
    assert_eq!(gateway.gateway.wait().code(), Some(130));
    gateway.says("tidegate: ended before everything in flight had");
}
