//! A process that may open few files, and strangers who would take them all.

use std::net::TcpStream;

use crate::gateway::support::{Client, Gateway, Upstream, request};
use crate::operated::Operated;

/// More connections than the process may open files.
const CROWD: usize = 600;

fn start(upstream: &Upstream, more: &str) -> Operated {
    Operated::of(Gateway::start_limited(
        "ulimit -n 512",
        &format!(
            "upstream = '{}'
            [server]
            admin = '127.0.0.1:0'
            workers = 2
            [[listener]]
            bind = '127.0.0.1:0'
            {more}",
            upstream.url()
        ),
    ))
}

/// Everything that needs an open file still gets one.
#[track_caller]
fn all_goes_on(gateway: &Operated, upstream: &Upstream) {
    for _ in 0..20 {
        assert_eq!(gateway.gateway.get("/", &[]).status(), 200, "a newcomer is served");
        assert_eq!(gateway.ask("GET", "/livez", "").status(), 200);
    }
    let verdict = gateway.get("/api/v1/status")["verdict"].as_str().unwrap().to_owned();
    assert!(verdict.starts_with("Crowded: callers have all "), "{verdict}");
    assert!(verdict.contains("(512)"), "{verdict}");
    let version = gateway.policy_version();
    let policy =
        format!("upstream = '{}'\nlisten = '127.0.0.1:0'\nserver.admin = '127.0.0.1:0'", upstream.url());
    drop(gateway.put(&policy));
    assert!(gateway.policy_version() >= version);
}

#[test]
fn strangers_that_hold_connections_leave_files_for_the_rest() {
    let upstream = Upstream::ok();
    let gateway = start(&upstream, "");
    let held: Vec<TcpStream> =
        (0..CROWD).filter_map(|_| TcpStream::connect(gateway.gateway.address()).ok()).collect();
    all_goes_on(&gateway, &upstream);
    drop(held);
}

#[test]
fn strangers_that_ask_and_do_not_read_leave_files_for_the_rest() {
    let upstream = Upstream::ok();
    let gateway = start(&upstream, "");
    let mut held: Vec<Client> = (0..CROWD).map(|_| gateway.gateway.connect()).collect();
    for client in &mut held {
        // It may have been ended for another one.
        drop(client.try_send(request("GET", "/", &[], "").repeat(20)));
    }
    all_goes_on(&gateway, &upstream);
}

#[test]
fn a_caller_that_is_at_work_keeps_its_connection_in_a_crowd() {
    let upstream = Upstream::ok();
    let gateway = start(&upstream, "");
    let mut busy = gateway.gateway.connect();
    let mut held = Vec::new();
    for _ in 0..CROWD {
        held.push(TcpStream::connect(gateway.gateway.address()).unwrap());
        assert_eq!(busy.get("/", &[]).status(), 200);
    }
}

#[test]
fn when_the_crowd_leaves_all_is_well_again() {
    let upstream = Upstream::ok();
    let gateway = start(&upstream, "");
    let held: Vec<TcpStream> =
        (0..CROWD).map(|_| TcpStream::connect(gateway.gateway.address()).unwrap()).collect();
    gateway.until("/api/v1/status", |answer| answer.text().contains("Crowded"));
    drop(held);
    gateway.until("/api/v1/status", |answer| !answer.text().contains("Crowded"));
    assert_eq!(gateway.gateway.get("/", &[]).status(), 200);
}
