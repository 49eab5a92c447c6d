//! Callers who go away at any point leave nothing behind.

use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use crate::dice::Dice;
use crate::gateway::support::{Gateway, H2Client, Upstream, Wire, full, request};
use crate::operated::Operated;

/// What is silent keeps the places of a rule until the upstream's time is over, which is soon.
fn before(upstream: &Upstream) -> String {
    let address = upstream.url();
    let upstream = format!("[upstream.default]\nendpoints = [\"{address}\"]\ntimeout = \"2s\"");
    format!("listen = \"127.0.0.1:0\"\nserver.admin = \"127.0.0.1:0\"\n{upstream}\n{PLACES}")
}

const PLACES: &str = "[rule.places]\nkind = \"concurrency\"\nkey = \"header:x-api-key\"\nlimit = 5000\n";

/// Never answers `/silent`, answers `/large` with more than anybody takes, and the rest at once.
fn upstream() -> Upstream {
    Upstream::scripted(|wire| {
        while let Some(request) = wire.request() {
            let sent = match request.target() {
                "/silent" => {
                    wire.rest();
                    return;
                }
                "/large" => large(wire),
                _ => wire.try_send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"),
            };
            if sent.is_err() {
                return;
            }
        }
    })
}

const LARGE: usize = 32 * 1024 * 1024;

fn large(wire: &mut Wire) -> std::io::Result<()> {
    wire.try_send(format!("HTTP/1.1 200 OK\r\nContent-Length: {LARGE}\r\n\r\n"))?;
    let part = [b'x'; 64 * 1024];
    (0..LARGE / part.len()).try_for_each(|_| wire.try_send(part))
}

/// One connection, left at a point that chance says.
fn abort(to: SocketAddr, dice: &mut Dice) {
    let mut client = Wire::new(TcpStream::connect(to).unwrap());
    let key = [("x-api-key", "hostile")];
    match dice.below(4) {
        // In the middle of a head.
        0 => {
            let head = request("GET", "/", &key, "");
            drop(client.try_send(&head[..dice.below(head.len())]));
        }
        // In the middle of a body.
        1 => {
            let whole = request("POST", "/", &key, &"b".repeat(2000));
            drop(client.try_send(&whole[..whole.len() - 1 - dice.below(1999)]));
        }
        // While it waits for an answer.
        2 => drop(client.try_send(request("GET", "/silent", &key, ""))),
        // While the answer comes.
        _ => {
            client.send(request("GET", "/large", &key, ""));
            assert!(client.head().is_some());
            client.take(dice.below(300_000));
        }
    }
    if dice.below(2) == 0 {
        client.cut();
    }
    // Whatever has come and was not read makes the system reset the connection instead of closing it.
}

/// Over HTTP/2, where only the stream goes away and the connection stays.
fn reset_streams(to: SocketAddr, count: usize) {
    let client = H2Client::connect(to);
    client.runtime().block_on(async {
        for number in 0..count {
            let mut sender = client.sender();
            sender.ready().await.unwrap();
            let path = if number % 2 == 0 { "silent" } else { "large" };
            let request = http::Request::get(format!("http://service.test/{path}"));
            let request = request.header("x-api-key", "hostile").body(full("")).unwrap();
            let answer = sender.send_request(request);
            // The head of a large answer comes; a silent one is given up.
            drop(tokio::time::timeout(Duration::from_millis(20), answer).await);
        }
    });
    assert_eq!(client.get("http://service.test/", &[]).status(), 200, "the connection is still good");
}

/// What is on its way to the upstream, and over how many connections.
fn on_the_way(gateway: &Operated) -> (u64, u64) {
    let endpoint = &gateway.get("/api/v1/upstreams")["upstreams"][0]["endpoints"][0];
    (endpoint["in_flight"].as_u64().unwrap(), endpoint["connections"].as_u64().unwrap())
}

#[test]
fn a_thousand_aborted_requests_leave_no_place_taken() {
    crate::vitals::need_files(4000);
    let upstream = upstream();
    let gateway = Operated::of(Gateway::start(&before(&upstream)));
    let to = gateway.gateway.address();
    std::thread::scope(|scope| {
        for seed in 0..4 {
            scope.spawn(move || {
                let mut dice = Dice::new(seed + 1);
                (0..200).for_each(|_| abort(to, &mut dice));
            });
        }
        scope.spawn(move || reset_streams(to, 200));
    });
    let nothing_left = |answer: &crate::gateway::support::Message| answer.json()["used"] == 0;
    gateway.until("/api/v1/counters/places/hostile", nothing_left);
    gateway.until("/api/v1/upstreams", |_| on_the_way(&gateway).0 == 0);
    // Half of what an upstream sends cannot be used again, so only those stay whose answers were read to the end.
    gateway.until("/api/v1/upstreams", |_| on_the_way(&gateway).1 <= 8);
    gateway.until("/metrics", |page| page.text().contains("tidegate_in_flight{route=\"default\"} 0\n"));
    assert_eq!(gateway.gateway.get("/", &[("x-api-key", "hostile")]).status(), 200);
}
