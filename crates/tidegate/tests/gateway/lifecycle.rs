//! Listeners, reloads and the end, one of each; what happens to them under load is tested elsewhere.

use std::net::TcpStream;

use crate::support::{Client, Gateway, Signal, Upstream, Wire, request};

fn policy(upstream: &Upstream, quota: &str) -> String {
    format!("listen = '127.0.0.1:0'\nupstream = '{}'\n[rule.shared]\nquota = '{quota}'", upstream.url())
}

#[test]
fn several_listeners_serve_one_policy() {
    let upstream = Upstream::ok();
    let gateway = Gateway::start(&format!(
        "listen = '127.0.0.1:0'
        upstream = '{}'
        [[listener]]
        name = 'inside'
        bind = '127.0.0.1:0'
        [[listener]]
        name = 'six'
        bind = '[::1]:0'
        [rule.shared]
        quota = '2/h'",
        upstream.url()
    ));
    let statuses: Vec<u16> =
        gateway.addresses().iter().map(|address| Client::connect(*address).get("/", &[]).status()).collect();
    assert_eq!(statuses, [200, 200, 429], "they share the counter");
}

#[test]
fn a_signal_brings_another_policy() {
    let upstream = Upstream::ok();
    let gateway = Gateway::start(&policy(&upstream, "2/h"));
    assert_eq!(gateway.statuses(3, "/", &[]), [200, 200, 429]);
    gateway.rewrite(&policy(&upstream, "5/h"));
    gateway.signal(Signal::HUP);
    assert!(gateway.errors().find(|line| line.contains("version 2")).is_some());
    assert_eq!(gateway.statuses(4, "/", &[]), [200, 200, 200, 429], "what was consumed stays consumed");
}

#[test]
fn a_bad_policy_changes_nothing() {
    let upstream = Upstream::ok();
    let gateway = Gateway::start(&policy(&upstream, "2/h"));
    gateway.rewrite("listen = 'nonsense'");
    gateway.signal(Signal::HUP);
    assert!(gateway.errors().find(|line| line.contains("the running one (version 1) stays")).is_some());
    assert_eq!(gateway.statuses(3, "/", &[]), [200, 200, 429]);
}

#[test]
fn callers_who_left_before_they_were_looked_at_take_nothing() {
    let upstream = Upstream::ok();
    let gateway = Gateway::start(&policy(&upstream, "2/h"));
    gateway.while_stopped(|| {
        for _ in 0..20 {
            let mut caller = Wire::new(TcpStream::connect(gateway.address()).unwrap());
            caller.send(request("GET", "/", &[], ""));
        }
    });
    assert_eq!(gateway.statuses(3, "/", &[]), [200, 200, 429]);
}

#[test]
fn it_ends_when_it_is_told_to() {
    let upstream = Upstream::ok();
    let mut gateway = Gateway::start(&policy(&upstream, "2/h"));
    let mut client = gateway.connect();
    assert_eq!(client.get("/", &[]).status(), 200);
    gateway.signal(Signal::TERM);
    assert_eq!(gateway.wait().code(), Some(0));
    assert!(client.is_closed());
}
