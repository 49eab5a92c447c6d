//! Nothing is lost on the way: every request that was due is in the report, whatever became of it.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method};
use rustix::net::{AddressFamily, SendFlags, SocketType, bind, getsockname, send, socket};
use tidegate_load::report::ClassReport;
use tidegate_load::service::{Service, Spec, Work};
use tidegate_load::{
    Class, Draw, Keys, Pacing, Place, Plan, Protocol, Rate, Report, Schedule, Share, Target,
};

/// What a server does with each connection, on a thread of its own.
fn server(act: impl Fn(TcpStream) + Send + Sync + Clone + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    thread::spawn(move || {
        for stream in listener.incoming() {
            let act = act.clone();
            thread::spawn(move || act(stream.expect("a connection")));
        }
    });
    address
}

/// Answers every request with the same bytes and hands on what it read.
fn answering(answer: &'static str) -> impl Fn(TcpStream) + Send + Sync + Clone + 'static {
    move |mut stream| {
        let mut read = [0; 4096];
        while stream.read(&mut read).is_ok_and(|count| count > 0) {
            if stream.write_all(answer.as_bytes()).is_err() {
                return;
            }
        }
    }
}

fn plan(address: SocketAddr, rate: f64, millis: u64) -> Plan {
    let rate = Rate::per_second(rate).expect("a rate");
    let schedule = Schedule::new(Pacing::Even).steady(rate, Duration::from_millis(millis));
    Plan::new(Target::at(address), schedule)
}

fn run(plan: &Plan) -> Report {
    let report = plan.start().expect("it starts").wait();
    for class in report.classes.iter().chain([&report.total]) {
        assert_eq!(class.sent, class.answers.sum() + class.failures.sum() + class.cut_off, "{class:?}");
        let line =
            |pick: fn(&tidegate_load::report::Stretch) -> u64| class.timeline.iter().map(pick).sum::<u64>();
        assert_eq!((line(|at| at.sent), line(|at| at.unsent)), (class.sent, class.unsent));
        assert_eq!(line(|at| at.admitted), class.answers.ok);
        assert_eq!(line(|at| at.refused), class.answers.refused());
        assert_eq!(line(|at| at.failed), class.failures.sum());
    }
    report
}

fn total(plan: &Plan) -> ClassReport {
    run(plan).total
}

#[test]
fn an_answer_counts_that_comes_before_the_request_is_sent() {
    let hasty = server(|mut stream| {
        // It knows from the head that the body is too large, and reads no more of it.
        drop(stream.read(&mut [0; 1024]));
        drop(stream.write_all(b"HTTP/1.1 413 Content Too Large\r\ncontent-length: 0\r\n\r\n"));
        thread::park();
    });
    let mut plan = plan(hasty, 100.0, 50);
    plan.classes[0].method = Method::POST;
    plan.classes[0].body = vec![b'x'; 16 << 20].into();
    assert_eq!(total(&plan).answers.caller_error, 5);
}

#[test]
fn an_answer_may_come_part_by_part_while_the_request_is_sent() {
    const LENGTH: usize = 16 << 20;
    let echoing = server(|mut stream| {
        drop(stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n"));
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {LENGTH}\r\n\r\n");
        drop(stream.write_all(head.as_bytes()));
        let (mut read, mut left) = ([0; 65_536], LENGTH);
        while left > 0 {
            let count = stream.read(&mut read).expect("a request").min(left);
            left -= count;
            stream.write_all(&read[..count]).expect("somebody who reads");
        }
        thread::park();
    });
    let mut plan = plan(echoing, 100.0, 20);
    plan.classes[0].method = Method::POST;
    plan.classes[0].body = vec![b'x'; LENGTH].into();
    assert_eq!(total(&plan).answers.ok, 2);
}

#[test]
fn statuses_are_counted_by_class_and_refusals_exactly() {
    let status = |answer| total(&plan(server(answering(answer)), 100.0, 100));
    let refused = status("HTTP/1.1 429 Too Many Requests\r\ncontent-length: 0\r\n\r\n");
    assert_eq!((refused.answers.caller_error, refused.answers.too_many_requests), (10, 10));
    assert_eq!((refused.refused.unwrap().count, refused.admitted), (10, None));
    let unavailable = status("HTTP/1.1 503 Service Unavailable\r\ncontent-length: 2\r\n\r\nno");
    assert_eq!((unavailable.answers.server_error, unavailable.answers.unavailable), (10, 10));
    assert_eq!(unavailable.answers.refused(), 10);
    let missing = status("HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n");
    assert_eq!((missing.answers.caller_error, missing.answers.refused(), missing.refused), (10, 0, None));
    let moved = status("HTTP/1.1 302 Found\r\ntransfer-encoding: chunked\r\n\r\n2\r\nno\r\n0\r\n\r\n");
    assert_eq!(moved.answers.redirected, 10);
}

#[test]
fn goodput_is_what_was_answered_well_while_the_schedule_ran() {
    let report = total(&plan(server(answering("HTTP/1.1 204 No Content\r\n\r\n")), 200.0, 500));
    assert_eq!(report.answers.ok, 100);
    assert!((150.0..=200.0).contains(&report.goodput), "{}", report.goodput);
}

#[test]
fn connections_that_nobody_takes_are_failures_to_connect() {
    // Bound, so that nobody else gets the port, and not listened at.
    let held = socket(AddressFamily::INET, SocketType::STREAM, None).expect("a socket");
    bind(&held, &SocketAddr::from(([127, 0, 0, 1], 0))).expect("a free port");
    let address = getsockname(&held).expect("it is bound").try_into().expect("an IPv4 address");
    let report = total(&plan(address, 100.0, 200));
    assert_eq!((report.sent, report.failures.connect, report.latency), (20, 20, None));
}

#[test]
fn connections_that_end_too_early_are_resets() {
    let slammed = server(|mut stream| {
        let mut read = [0; 4096];
        drop(stream.read(&mut read));
    });
    assert_eq!(total(&plan(slammed, 100.0, 200)).failures.reset, 20);
    let cut_short = server(|mut stream| {
        let mut read = [0; 4096];
        drop(stream.read(&mut read));
        drop(stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nfive!"));
    });
    assert_eq!(total(&plan(cut_short, 100.0, 200)).failures.reset, 20);
}

#[test]
fn a_server_may_close_between_requests() {
    for said in ["connection: close\r\n", ""] {
        let answer = format!("HTTP/1.1 200 OK\r\n{said}content-length: 2\r\n\r\nok");
        let closing = server(move |mut stream| {
            let mut read = [0; 4096];
            drop(stream.read(&mut read));
            // More is said to follow, so the system sends the answer together with the end. Were there time in between,
            // the next request could be on its way before the end is.
            send(&stream, answer.as_bytes(), SendFlags::MORE).expect("somebody who reads");
        });
        let plan = Plan { connections: 2, ..plan(closing, 100.0, 300) };
        assert_eq!(total(&plan).answers.ok, 30, "{said:?}");
    }
}

#[test]
fn what_is_not_http_is_said_so() {
    let report = total(&plan(server(answering("SSH-2.0-OpenSSH\r\n\r\n")), 100.0, 100));
    assert_eq!(report.failures.protocol, 10, "{:?}", report.failures);
}

/// Takes every connection and says nothing.
fn silent() -> SocketAddr {
    server(|mut stream| {
        let mut read = [0; 4096];
        while stream.read(&mut read).is_ok_and(|count| count > 0) {}
    })
}

#[test]
fn silence_is_a_time_out() {
    let started = Instant::now();
    for protocol in [Protocol::Http1, Protocol::H2 { streams: 100 }] {
        let plan = Plan { timeout: Duration::from_millis(200), protocol, ..plan(silent(), 100.0, 200) };
        let report = total(&plan);
        assert_eq!((report.failures.timed_out, report.unsent), (20, 0), "{protocol:?}");
        let latency = report.latency.unwrap();
        assert!((199..1000).contains(&latency.p50.as_millis()), "{latency:?}");
    }
    assert!(started.elapsed() < Duration::from_secs(5));
}

#[test]
fn what_finds_no_connection_in_time_is_unsent() {
    // A hundred at once, and one connection that is blocked until their time is over.
    let plan = Plan { timeout: Duration::from_millis(200), connections: 1, ..plan(silent(), 100_000.0, 1) };
    let report = total(&plan);
    assert_eq!(report.due(), 100);
    assert_eq!(report.sent, report.failures.timed_out);
    assert!(report.unsent > 0, "{report:?}");
}

#[test]
fn what_finds_no_room_to_wait_is_unsent() {
    let plan =
        Plan { timeout: Duration::from_secs(1), connections: 3, waiting: 10, ..plan(silent(), 500.0, 200) };
    let report = total(&plan);
    // Three are under way, ten wait, and 87 find no room. When the three have timed out, the next three are sent.
    assert_eq!((report.due(), report.sent), (100, report.failures.timed_out));
    assert!((3..=13).contains(&report.sent), "{report:?}");
}

#[test]
fn waiting_in_line_takes_nothing_from_the_time_for_the_answer() {
    // Twice what one connection can carry, for much longer than the time-out.
    let service = Service::start(&Spec::new(1, Work::Fixed(Duration::from_millis(10)))).unwrap();
    let plan =
        Plan { timeout: Duration::from_millis(200), connections: 1, ..plan(service.address(), 200.0, 1500) };
    let report = total(&plan);
    assert!(report.unsent > 50 && report.answers.ok > 50, "{report:?}");
    assert_eq!(report.failures.sum(), 0, "the server was never late: {report:?}");
    assert!(report.latency.unwrap().p90 > Duration::from_millis(180), "{:?}", report.latency);
}

#[test]
fn a_run_that_is_stopped_reports_what_it_has() {
    let plan = Plan { connections: 5, ..plan(silent(), 100.0, 3_600_000) };
    let run = plan.start().unwrap();
    let stopper = run.stopper();
    let (reached, stop) = std::sync::mpsc::channel::<()>();
    let waiter = thread::spawn(move || run.wait());
    // Long enough for some to be under way; how many does not matter.
    assert!(stop.recv_timeout(Duration::from_millis(300)).is_err());
    stopper.stop();
    drop(reached);
    let report = waiter.join().unwrap();
    assert!(report.is_stopped && report.length < Duration::from_secs(60), "{:?}", report.length);
    assert_eq!((report.total.cut_off, report.total.sent), (5, 5));
    assert!(report.total.unsent > 0);
}

#[test]
fn classes_keys_fields_and_bodies_arrive_as_planned() {
    let (seen, requests) = std::sync::mpsc::channel();
    let address = server(move |mut stream| {
        let mut read = [0; 4096];
        while let Ok(count @ 1..) = stream.read(&mut read) {
            seen.send(String::from_utf8_lossy(&read[..count]).into_owned()).unwrap();
            drop(stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"));
        }
    });
    let mut plan = plan(address, 50.0, 200);
    let keys = |place, draw| Some(Keys { place, format: "key-%".to_owned(), draw });
    plan.classes = vec![
        Class {
            keys: keys(Place::Header(HeaderName::from_static("x-api-key")), Draw::One),
            headers: [(HeaderName::from_static("a"), HeaderValue::from_static("b"))].into_iter().collect(),
            method: Method::POST,
            body: Bytes::from_static(b"hello"),
            ..Class::get("post", "/charges?x=1")
        },
        Class {
            keys: keys(Place::Path, Draw::Uniform { keys: 3 }),
            share: Share::Own(plan.schedule.clone()),
            ..Class::get("get", "/items/{key}/parts")
        },
    ];
    let report = run(&plan);
    assert_eq!((report.classes[0].answers.ok, report.classes[1].answers.ok), (10, 10));
    let seen: Vec<String> = requests.try_iter().collect();
    let (posts, gets): (Vec<&String>, Vec<&String>) = seen.iter().partition(|text| text.starts_with("POST"));
    assert_eq!((posts.len(), gets.len()), (10, 10));
    for post in posts {
        assert!(post.starts_with("POST /charges?x=1 HTTP/1.1\r\n"), "{post}");
        for field in ["a: b\r\n", "x-api-key: key-1\r\n", "content-length: 5\r\n", "\r\n\r\nhello"] {
            assert!(post.contains(field), "{post}");
        }
        assert!(post.contains(&format!("host: {address}\r\n")), "{post}");
    }
    for key in 1..=3 {
        assert!(gets.iter().any(|get| get.starts_with(&format!("GET /items/key-{key}/parts HTTP/1.1\r\n"))));
    }
}

#[test]
fn threads_share_the_work_and_the_report() {
    let address = server(answering("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"));
    let plan = Plan { threads: 2, connections: 3, ..plan(address, 500.0, 400) };
    assert_eq!(total(&plan).answers.ok, 200);
}
