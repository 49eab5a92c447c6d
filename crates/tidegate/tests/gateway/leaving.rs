//! Callers who start work and leave: a limit holds as long as the service is at work, and leaving saves nothing.

mod costs;
mod resets;

use std::time::{Duration, Instant};

use http::Request;
use tidegate_load::service::{Faults, Service, Spec, Work};

use crate::frames::{DATA, END_HEADERS, HEADERS, Peer, RST_STREAM, frame, get};
use crate::support::{Answer, Gateway, H2Client, Latch, Upstream, full, request, until};

/// Longer than work goes on without its caller where nothing depends on its end.
const BEYOND_ANY_GRACE: Duration = Duration::from_millis(2_200);

const LOGGED: &str = "[telemetry]\naccess_log = { to = 'stdout' }";

const TWO: &str = "[rule.in_flight]\nkey = 'header:x-api-key'\nlimit = 2";

/// A gateway before this address, which logs every request.
fn before(url: &str, concurrency: &str, rest: &str) -> Gateway {
    Gateway::start(&format!(
        "listen = '127.0.0.1:0'
        [upstream.service]
        endpoints = ['{url}']
        {concurrency}
        {LOGGED}
        {rest}"
    ))
}

/// A service of many workers, who all stand still.
fn hung() -> Service {
    let service = Service::start(&Spec::new(100, Work::Fixed(Duration::from_millis(1)))).unwrap();
    service.set(Faults { is_hung: true, ..Faults::NONE }).unwrap();
    service
}

fn url(service: &Service) -> String {
    format!("http://{}", service.address())
}

/// Waits until the gateway knows of so many callers who left without an answer.
fn have_left(gateway: &Gateway, count: usize) {
    let left = || gateway.output().so_far().iter().filter(|line| line.contains("\"status\":499")).count();
    until(|| left() >= count);
}

/// Starts work over HTTP/1 and closes the connection.
fn start_and_close(gateway: &Gateway, service: &Service, key: &str) {
    let before = service.served().arrived;
    let mut client = gateway.connect();
    client.send(request("GET", "/", &[("x-api-key", key)], ""));
    until(|| service.served().arrived > before);
    client.cut();
}

/// Starts work over HTTP/2 and resets the stream.
fn start_and_reset(client: &H2Client, service: &Service, key: &str) {
    let before = service.served().arrived;
    client.runtime().block_on(async {
        let mut sender = client.sender();
        sender.ready().await.unwrap();
        let asked = Request::get("http://a/").header("x-api-key", key).body(full("")).unwrap();
        let asked = tokio::spawn(sender.send_request(asked));
        tokio::task::block_in_place(|| until(|| service.served().arrived > before));
        asked.abort();
        drop(asked.await);
    });
}

/// Whatever is asked for a while gets this status, and the service sees nothing of it.
fn stays_full(gateway: &Gateway, service: &Service, status: u16) {
    let (begun, arrived) = (Instant::now(), service.served().arrived);
    let h2 = H2Client::connect(gateway.address());
    while begun.elapsed() < BEYOND_ANY_GRACE {
        assert_eq!(gateway.get("/", &[("x-api-key", "alice")]).status(), status);
        assert_eq!(h2.get("http://a/", &[("x-api-key", "alice")]).status(), status);
    }
    assert_eq!((service.served().arrived, service.served().busy), (arrived, 2), "no more are at work");
}

fn is_free_again(gateway: &Gateway, service: &Service) {
    service.set(Faults::NONE).unwrap();
    until(|| gateway.get("/", &[("x-api-key", "alice")]).status() == 200);
    assert_eq!(gateway.statuses(5, "/", &[("x-api-key", "alice")]), [200; 5]);
}

#[test]
fn a_place_of_a_rule_is_held_while_the_service_is_at_work_for_who_has_left() {
    let service = hung();
    let gateway = before(&url(&service), "", TWO);
    start_and_close(&gateway, &service, "alice");
    start_and_reset(&H2Client::connect(gateway.address()), &service, "alice");
    have_left(&gateway, 2);
    stays_full(&gateway, &service, 429);
    is_free_again(&gateway, &service);
}

#[test]
fn the_same_holds_for_a_service_that_speaks_h2() {
    let service = hung();
    let gateway = before(&url(&service), "protocol = 'h2'", TWO);
    start_and_reset(&H2Client::connect(gateway.address()), &service, "alice");
    start_and_close(&gateway, &service, "alice");
    have_left(&gateway, 2);
    stays_full(&gateway, &service, 429);
    is_free_again(&gateway, &service);
}

#[test]
fn a_reserve_counts_work_whose_callers_have_left() {
    let service = hung();
    let rule = "[rule.fleet]\nkind = 'reserve'\ncapacity = 4\nreserve = { critical_plus = '50%' }";
    let gateway = before(&url(&service), "", rule);
    start_and_close(&gateway, &service, "alice");
    start_and_reset(&H2Client::connect(gateway.address()), &service, "alice");
    have_left(&gateway, 2);
    stays_full(&gateway, &service, 503);
    is_free_again(&gateway, &service);
}

#[test]
fn a_fixed_limit_of_an_upstream_counts_work_whose_callers_have_left() {
    let service = hung();
    let fixed = "concurrency = { algorithm = 'fixed', max = 2, queue = { timeout = '0s' } }";
    let gateway = before(&url(&service), fixed, "");
    start_and_close(&gateway, &service, "alice");
    start_and_reset(&H2Client::connect(gateway.address()), &service, "alice");
    have_left(&gateway, 2);
    stays_full(&gateway, &service, 503);
    is_free_again(&gateway, &service);
}

#[test]
fn a_crowd_that_comes_and_leaves_never_has_more_at_work_than_the_limit() {
    let service = Service::start(&Spec::new(100, Work::Fixed(Duration::from_millis(40)))).unwrap();
    let gateway = before(&url(&service), "", TWO);
    let (alice, begun) = ([("x-api-key", "alice")], Instant::now());
    let most = std::thread::scope(|scope| {
        let watching = scope.spawn(|| {
            let mut most = 0;
            while begun.elapsed() < Duration::from_secs(2) {
                most = most.max(service.served().busy);
                std::thread::yield_now();
            }
            most
        });
        while !watching.is_finished() {
            let mut client = gateway.connect();
            client.send(request("GET", "/", &alice, ""));
            let h2 = H2Client::connect(gateway.address());
            h2.runtime().block_on(async {
                let mut sender = h2.sender();
                sender.ready().await.unwrap();
                let asked = Request::get("http://a/").header("x-api-key", "alice").body(full("")).unwrap();
                let asked = tokio::spawn(sender.send_request(asked));
                tokio::task::yield_now().await;
                asked.abort();
            });
            // What was sent before has been decided about by then.
            gateway.get("/", &alice);
            client.cut();
        }
        watching.join().unwrap()
    });
    assert!((1..=2).contains(&most), "{most} at work");
    assert!(service.served().arrived > 5, "it went on");
}

#[test]
fn a_place_is_free_when_the_service_closes_its_connection() {
    let latch = Latch::default();
    let closes = latch.clone();
    let upstream = Upstream::scripted(move |wire| {
        while let Some(request) = wire.request() {
            if request.target() == "/held" {
                return closes.wait();
            }
            wire.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
        }
    });
    let gateway = before(&upstream.url(), "", "[rule.in_flight]\nlimit = 1");
    let mut client = gateway.connect();
    client.send(request("GET", "/held", &[], ""));
    until(|| upstream.bytes() > 0);
    client.cut();
    have_left(&gateway, 1);
    assert_eq!(gateway.get("/", &[]).status(), 429);
    latch.open();
    until(|| gateway.get("/", &[]).status() == 200);
}

#[test]
fn a_place_is_free_when_the_upstreams_time_is_over() {
    let upstream = Upstream::answering(|request| match request.target() {
        "/held" => Answer::silence(),
        _ => Answer::text("hello"),
    });
    let gateway = before(&upstream.url(), "timeout = '1s'", "[rule.in_flight]\nlimit = 1");
    let mut client = gateway.connect();
    client.send(request("GET", "/held", &[], ""));
    upstream.wait_for(1);
    let begun = Instant::now();
    client.cut();
    have_left(&gateway, 1);
    assert_eq!(gateway.get("/", &[]).status(), 429);
    until(|| gateway.get("/", &[]).status() == 200);
    assert!(begun.elapsed() > Duration::from_millis(900), "after {:?}", begun.elapsed());
}

/// A service that answers half, and the rest once the latch is open.
fn halting(latch: &Latch, kind: &'static str) -> Upstream {
    let latch = latch.clone();
    Upstream::scripted(move |wire| {
        while let Some(request) = wire.request() {
            let length = if request.target() == "/held" { 4 } else { 2 };
            wire.send(format!(
                "HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\r\nab"
            ));
            if request.target() == "/held" {
                latch.wait();
                // The gateway may have closed it.
                drop(wire.try_send("cd"));
            }
        }
    })
}

/// Begins to read an answer and leaves in its middle, over either protocol.
fn leave_in_the_middle(gateway: &Gateway, is_h2: bool) {
    if is_h2 {
        let client = H2Client::connect(gateway.address());
        client.runtime().block_on(async {
            let asked = Request::get("http://a/held").body(full("")).unwrap();
            drop(client.sender().send_request(asked).await.unwrap());
        });
        until(|| gateway.output().so_far().iter().any(|line| line.contains("/held")));
        return;
    }
    let mut client = gateway.connect();
    client.send(request("GET", "/held", &[], ""));
    assert!(client.head().is_some());
    client.cut();
    until(|| gateway.output().so_far().iter().any(|line| line.contains("/held")));
}

#[test]
fn leaving_in_the_middle_of_an_answer_frees_no_place_before_its_end() {
    for is_h2 in [false, true] {
        let latch = Latch::default();
        let upstream = halting(&latch, "text/plain");
        let gateway = before(&upstream.url(), "", "[rule.in_flight]\nlimit = 1");
        leave_in_the_middle(&gateway, is_h2);
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_millis(700) {
            assert_eq!(gateway.get("/", &[]).status(), 429);
        }
        latch.open();
        until(|| gateway.get("/", &[]).status() == 200);
    }
}

#[test]
fn a_stream_that_may_never_end_is_closed_a_little_after_its_reader_has_left() {
    let latch = Latch::default();
    let upstream = halting(&latch, "text/event-stream; charset=utf-8");
    let gateway = before(&upstream.url(), "", "[rule.in_flight]\nlimit = 1");
    leave_in_the_middle(&gateway, false);
    until(|| gateway.get("/", &[]).status() == 200);
    latch.open();
}

#[test]
fn who_stops_a_large_download_has_a_place_again_at_once() {
    let upstream = Upstream::scripted(|wire| {
        while let Some(request) = wire.request() {
            let length = if request.target() == "/held" { 1 << 30 } else { 0 };
            wire.send(format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n"));
            let piece = vec![b'x'; 64 * 1024];
            for _ in 0..length / piece.len() {
                if wire.try_send(&piece).is_err() {
                    return;
                }
            }
        }
    });
    let gateway = before(&upstream.url(), "", "[rule.in_flight]\nlimit = 1");
    leave_in_the_middle(&gateway, false);
    until(|| gateway.get("/", &[]).status() == 200);
}

#[test]
fn an_upload_that_breaks_off_holds_its_place_until_the_service_can_have_heard_of_it() {
    for is_h2 in [false, true] {
        let latch = Latch::default();
        let held = latch.clone();
        let upstream = Upstream::scripted(move |wire| {
            while let Some(head) = wire.head() {
                if head.first_line.contains("/held") {
                    return held.wait();
                }
                wire.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
            }
        });
        let gateway = before(&upstream.url(), "", "[rule.in_flight]\nlimit = 1");
        let begun = if is_h2 {
            let mut peer = Peer::connect(gateway.address(), &[]);
            let open = frame(HEADERS, END_HEADERS, 1, &get("/held"));
            peer.send(&[open, frame(DATA, 0, 1, b"hello")].concat());
            until(|| upstream.bytes() > 0);
            peer.send(&frame(RST_STREAM, 0, 1, &8_u32.to_be_bytes()));
            Instant::now()
        } else {
            let mut client = gateway.connect();
            client.send("POST /held HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n");
            until(|| upstream.bytes() > 0);
            client.cut();
            Instant::now()
        };
        until(|| gateway.get("/", &[]).status() == 200);
        assert!(begun.elapsed() > Duration::from_millis(400), "after {:?}", begun.elapsed());
        latch.open();
    }
}
