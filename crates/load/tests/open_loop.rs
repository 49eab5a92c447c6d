//! The reason for an open loop: a server that stalls must show it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use tidegate_load::service::{Service, Spec, Work};
use tidegate_load::{Pacing, Plan, Protocol, Rate, Report, Schedule, Target};

const STALL: Duration = Duration::from_secs(1);

/// Answers at once, but once, at the request with this number, nobody for a second.
fn stalling_server(at: u32) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    let served = Arc::new(Mutex::new(0));
    thread::spawn(move || {
        for stream in listener.incoming() {
            let (stream, served) = (stream.expect("a connection"), Arc::clone(&served));
            thread::spawn(move || converse(&stream, at, &served));
        }
    });
    address
}

fn converse(mut stream: &TcpStream, at: u32, served: &Mutex<u32>) {
    stream.set_nodelay(true).expect("a connection");
    for line in BufReader::new(stream).lines() {
        if !line.is_ok_and(|line| line.is_empty()) {
            continue;
        }
        // Whoever comes during the stall waits for the lock.
        let mut served = served.lock().expect("nobody panics");
        *served += 1;
        if *served == at {
            // The stall itself: nothing is waited for that could come sooner.
            thread::sleep(STALL);
        }
        drop(served);
        drop(stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"));
    }
}

fn open_loop(address: SocketAddr, connections: usize) -> Report {
    let rate = Rate::per_second(200.0).expect("a rate");
    let schedule = Schedule::new(Pacing::Even).steady(rate, Duration::from_secs(3));
    let plan = Plan { connections, ..Plan::new(Target::at(address), schedule) };
    plan.start().expect("it starts").wait()
}

/// Sends the next request when the last is answered, and counts from the moment it was sent.
fn closed_loop(address: SocketAddr, requests: u32) -> Vec<Duration> {
    let mut stream = TcpStream::connect(address).expect("a server");
    stream.set_nodelay(true).expect("a connection");
    let mut answers = BufReader::new(stream.try_clone().expect("a connection"));
    let mut latencies = Vec::new();
    for _ in 0..requests {
        let sent = Instant::now();
        stream.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").expect("a server");
        let mut line = String::new();
        while line != "\r\n" {
            line.clear();
            answers.read_line(&mut line).expect("an answer");
        }
        let mut body = [0; 2];
        answers.read_exact(&mut body).expect("a body");
        latencies.push(sent.elapsed());
    }
    latencies.sort();
    latencies
}

#[test]
fn a_stall_of_a_second_is_seen_by_all_who_came_meanwhile() {
    let report = open_loop(stalling_server(200), 500);
    let total = &report.total;
    assert_eq!((total.sent, total.unsent, total.answers.ok), (600, 0, 600));
    // 200 of 600 came during the stall, and the first of them waited longest.
    let latency = total.latency.unwrap();
    assert!(latency.p99 > STALL * 9 / 10, "{latency:?}");
    assert!(latency.p90 > STALL * 6 / 10, "{latency:?}");
    let worst = total.timeline.iter().filter_map(|second| second.p99).max();
    assert!(worst > Some(STALL * 8 / 10), "the time line shows when: {worst:?}");

    let closed = closed_loop(stalling_server(200), 600);
    assert!(closed[closed.len() * 99 / 100] < STALL / 2, "a closed loop would not have shown it");
}

#[test]
fn with_few_connections_the_stall_is_seen_just_the_same() {
    let report = open_loop(stalling_server(200), 2);
    let latency = report.total.latency.unwrap();
    assert_eq!(report.total.answers.ok, 600);
    assert!(latency.p99 > STALL * 9 / 10, "{latency:?}");
    assert!(latency.p90 > STALL * 6 / 10, "{latency:?}");
}

#[test]
fn every_request_of_a_schedule_is_sent_over_either_protocol() {
    let service = Service::start(&Spec::new(8, Work::Fixed(Duration::from_millis(1)))).unwrap();
    for protocol in [Protocol::Http1, Protocol::H2 { streams: 100 }] {
        let rate = Rate::per_second(500.0).unwrap();
        let schedule = Schedule::new(Pacing::Poisson).steady(rate, Duration::from_secs(1));
        let plan = Plan { protocol, connections: 8, ..Plan::new(Target::at(service.address()), schedule) };
        let due = plan.arrivals().unwrap().count() as u64;
        let report = plan.start().unwrap().wait();
        assert_eq!((report.total.due(), report.total.answers.ok), (due, due), "{protocol:?}");
    }
}
