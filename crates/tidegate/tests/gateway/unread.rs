//! Callers who do not read their answers, and what is left for the others.

use std::time::{Duration, Instant};

use bytes::Bytes;
use http::Response;

use crate::support::{Client, Gateway, H2Client, H2Upstream, full, request};

/// For how long others are served beside callers who do not read: until their answers fill all there is to be filled.
const BESIDE: Duration = Duration::from_secs(2);

/// More than sockets hold.
const LARGE: usize = 64 << 20;

fn before_large_answers() -> (H2Upstream, Gateway) {
    let large = Bytes::from(vec![b'x'; LARGE]);
    let upstream = H2Upstream::answering(move |request| match request.head.uri.path() {
        "/large" => Response::new(full(large.clone())),
        _ => Response::new(full("hello")),
    });
    let gateway = Gateway::start(&format!(
        "listen = '127.0.0.1:0'\n[upstream.service]\nendpoints = ['{}']\nprotocol = 'h2'\n[server]\nworkers = 1",
        upstream.url()
    ));
    (upstream, gateway)
}

/// Asks for a large answer and takes no more than its head.
fn unread(gateway: &Gateway) -> Client {
    let mut client = gateway.connect();
    client.send(request("GET", "/large", &[], ""));
    assert!(client.head().is_some());
    client
}

#[test]
fn slow_readers_do_not_stop_others_on_a_connection_to_a_service() {
    let (_upstream, gateway) = before_large_answers();
    let _readers: Vec<Client> = (0..20).map(|_| unread(&gateway)).collect();
    let mut others = gateway.connect();
    let begun = Instant::now();
    while begun.elapsed() < BESIDE {
        assert_eq!(others.get("/", &[]).text(), "hello");
    }
}

#[test]
fn slow_readers_over_http_2_do_not_either() {
    let (_upstream, gateway) = before_large_answers();
    let readers = H2Client::connect(gateway.address());
    let heads: Vec<_> = (0..20)
        .map(|_| {
            let mut sender = readers.sender();
            let request = http::Request::get("http://a/large").body(full("")).unwrap();
            readers.runtime().block_on(sender.send_request(request)).unwrap()
        })
        .collect();
    let others = H2Client::connect(gateway.address());
    let begun = Instant::now();
    while begun.elapsed() < BESIDE {
        assert_eq!(others.get("http://a/", &[]).body, "hello");
    }
    assert!(heads.iter().all(|head| head.status() == 200));
}

#[test]
fn large_answers_that_are_read_come_whole() {
    let (_upstream, gateway) = before_large_answers();
    assert_eq!(gateway.get("/large", &[]).body.len(), LARGE);
}
