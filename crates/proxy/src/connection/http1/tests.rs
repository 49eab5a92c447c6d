//! The codec over a stream in memory, polled by hand.

mod given;

use std::future::{Ready, pending, ready};
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Waker;

use http::{HeaderMap, Method, Version};
use http_body::Frame;
use http_body_util::BodyExt;
use proptest::prelude::*;
use tidegate_core::{Moment, WallTime};
use tidegate_policy::policy::Listener;
use tidegate_policy::{Attributes, Gate, Now, Refused, Source};
use tidegate_tower::Respond;
use tidegate_tower::respond::Speech;

use self::given::Given;
use super::feed::READ_LARGE;
use super::*;
use crate::connection::watch::Order;
use crate::http1::test_bodies::{TestBody, frames, full};
use crate::ticks::Ticks;

/// A request that is served, with memory of its own.
type Whole = Result<Request<CallerBody>, Unserved>;

const LIMITS: Limits = Limits { max_header_bytes: 8 * 1024, max_headers: 20 };

fn text(text: impl Into<Bytes>) -> Response<TestBody> {
    Response::new(full(text))
}

fn watch() -> Arc<Watch> {
    Arc::new(Watch::new(Arc::new(Ticks::new(Now::default()))))
}

/// Polls until nothing moves any more; whether it has ended.
fn run<A, F>(connection: &mut Connection<Given, A, F, TestBody>) -> bool
where
    A: FnMut(Asked<'_, '_>) -> Begun<F, TestBody>,
    F: Future<Output = Response<TestBody>>,
{
    let mut cx = Context::from_waker(Waker::noop());
    loop {
        let before = connection.stream.moved();
        if connection.poll_served(&mut cx).is_ready() {
            return true;
        }
        if connection.stream.moved() == before {
            return false;
        }
    }
}

/// Serves all that is asked for by futures.
fn serving<F>(mut serve: impl FnMut(Whole) -> F) -> impl FnMut(Asked<'_, '_>) -> Begun<F, TestBody> {
    move |asked| Begun::Serving(serve(asked.and_then(|request| Ok(request.whole()?.0))))
}

/// What is answered to these bytes, without dates, and whether the connection has ended.
fn told<F>(given: Given, serve: impl FnMut(Whole) -> F) -> (String, bool)
where
    F: Future<Output = Response<TestBody>>,
{
    let mut connection = Connection::new(given, LIMITS, watch(), serving(serve));
    let has_ended = run(&mut connection);
    (connection.stream.told(), has_ended)
}

/// Says what was asked, with its body.
async fn echo(asked: Whole) -> Response<TestBody> {
    let request = match asked {
        Ok(request) => request,
        Err(Unserved::Unclear(flaw)) => return status(400, flaw),
        Err(Unserved::TooLarge) => return status(431, ""),
        Err(Unserved::TooLong) => return status(414, ""),
    };
    let (parts, body) = request.into_parts();
    let Ok(collected) = body.collect().await else { return status(500, "the body broke off") };
    let trailers = collected.trailers().cloned().unwrap_or_default();
    let body = collected.to_bytes();
    let body = String::from_utf8_lossy(&body);
    let mut said = format!("{} {} {body}", parts.method, parts.uri);
    for (name, value) in &trailers {
        said += &format!(" {name}={}", value.to_str().unwrap());
    }
    text(said)
}

fn status(status: u16, said: &'static str) -> Response<TestBody> {
    Response::builder().status(status).body(full(said)).unwrap()
}

fn get(response: fn() -> Response<TestBody>) -> impl FnMut(Whole) -> Ready<Response<TestBody>> {
    move |_| ready(response())
}

const ASKED: &str = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

/// A request that a quota refuses, and when.
fn refused() -> (Now, Refused) {
    let policy = "[rule.all]\nkey = \"global\"\nquota = \"1/h\"\n";
    let (policy, _) = tidegate_policy::read(Source::named("a.toml", policy.as_bytes()), None).unwrap();
    let now = Now { moment: Moment::ORIGIN, wall: WallTime::from_unix_nanos(0) };
    let gate = Gate::new(policy, 1, now).unwrap();
    let request =
        Attributes { method: "GET", path: "/", host: "", headers: &(), client: None, criticality: None };
    drop(gate.decide(now, &request));
    (now, gate.decide(now, &request).refused().unwrap())
}

#[test]
fn a_page_is_answered_as_the_same_response_would_be() {
    let (now, refused) = refused();
    let respond = Respond::default();
    let page = || respond.page(now, &refused, Speech::Http).unwrap();
    for asked in [
        ASKED,
        "GET / HTTP/1.1\r\nConnection: close\r\n\r\n",
        "GET / HTTP/1.0\r\n\r\n",
        "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
        "HEAD / HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\n",
        "POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabcGET / HTTP/1.1\r\n\r\n",
        "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\nGET / HTTP/1.1\r\n\r\n",
        "POST / HTTP/1.1\r\nContent-Length: 999999999999\r\n\r\nabc",
        "POST / HTTP/1.1\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n",
    ] {
        let response = || respond.refused(now, &refused, Speech::Http).map(full);
        let by_response = told(Given::at_once(asked), |_| ready(response()));
        let serve = |_: Asked<'_, '_>| Begun::<Ready<Response<TestBody>>, TestBody>::Refused(page());
        let mut connection = Connection::new(Given::at_once(asked), LIMITS, watch(), serve);
        let has_ended = run(&mut connection);
        assert_eq!((connection.stream.told(), has_ended), by_response, "{asked}");
        assert!(by_response.0.starts_with("HTTP/1."), "{asked}");
    }
}

#[test]
fn requests_are_answered_in_order() {
    let asked = "GET /1 HTTP/1.1\r\n\r\n\r\nPOST /2 HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc\
                 POST /3 HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3;x\r\nabc\r\n2\r\nde\r\n0\r\nT: 1\r\n\r\n\
                 PUT /4 HTTP/1.1\r\nContent-Length: 0\r\n\r\n";
    let (told, has_ended) = told(Given::at_once(asked), echo);
    let bodies: Vec<_> = told.split("HTTP/1.1 200 OK\r\n").skip(1).collect();
    assert_eq!(
        bodies,
        [
            "content-length: 7\r\n\r\nGET /1 ",
            "content-length: 11\r\n\r\nPOST /2 abc",
            "content-length: 17\r\n\r\nPOST /3 abcde t=1",
            "content-length: 7\r\n\r\nPUT /4 ",
        ]
    );
    assert!(!has_ended);
}

#[test]
fn what_can_be_read_in_two_ways_is_refused() {
    for (asked, why) in [
        ("POST / HTTP/1.1\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n", "has both"),
        ("POST / HTTP/1.1\r\ntransfer-encoding:CHUNKED\r\ncontent-length:4\r\n\r\n", "has both"),
        ("POST / HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", "other than chunked"),
        ("POST / HTTP/1.1\r\nTransfer-Encoding: chunked, chunked\r\n\r\n", "other than chunked"),
        (
            "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
            "other than chunked",
        ),
        ("POST / HTTP/1.1\r\nTransfer-Encoding:\r\n\r\n", "other than chunked"),
        ("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", "HTTP/1.0"),
        ("POST / HTTP/1.1\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\n", "several lengths"),
        ("POST / HTTP/1.1\r\nContent-Length: 4, 4\r\n\r\n", "no number"),
        ("POST / HTTP/1.1\r\nContent-Length: +4\r\n\r\n", "no number"),
        ("POST / HTTP/1.1\r\nContent-Length:\r\n\r\n", "no number"),
        ("POST / HTTP/1.1\r\nContent-Length: 18446744073709551616\r\n\r\n", "no number"),
        ("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: x\r\n\r\n", "no number"),
        ("GET / HTTP/1.1\nHost: a\r\n\r\n", "carriage return"),
        ("GET / HTTP/1.1\r\nHost: a\n\r\n", "carriage return"),
        ("GET / HTTP/1.1\r\nHost: a\r\n\n", "carriage return"),
        ("\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", "carriage return"),
        ("GET / HTTP/1.1\r\nHost: a\r\n b\r\n\r\n", "field cannot be read"),
        ("GET / HTTP/1.1\r\nHost : a\r\n\r\n", "field cannot be read"),
        ("GET / HTTP/1.1\r\n: a\r\n\r\n", "field cannot be read"),
        ("GET / HTTP/1.1\r\nHost: a\rb\r\n\r\n", "field cannot be read"),
        ("GET / HTTP/1.1\r\nHost: a\0b\r\n\r\n", "field cannot be read"),
        ("GET / HTTP/2.0\r\nHost: a\r\n\r\n", "not spoken here"),
        ("GET / HTTP/1.10\r\nHost: a\r\n\r\n", "first line"),
        ("GET  / HTTP/1.1\r\nHost: a\r\n\r\n", "first line"),
        ("GET /a b HTTP/1.1\r\nHost: a\r\n\r\n", "first line"),
        ("GET /\x7f HTTP/1.1\r\nHost: a\r\n\r\n", "first line"),
        ("GET /\r\nHost: a\r\n\r\n", "first line"),
        (" GET / HTTP/1.1\r\nHost: a\r\n\r\n", "first line"),
        ("\r\r\nHost: a\r\n\r\n", "first line"),
        ("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n", "size cannot be read"),
        ("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\nabc\r\n", "size cannot be read"),
        ("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n", "longer than it says"),
        ("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: y\n\r\n", "carriage return"),
        ("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\n", "carriage return"),
    ] {
        for given in [Given::at_once(&format!("{asked}{ASKED}")), Given::by_byte(&format!("{asked}{ASKED}"))]
        {
            let (told, _) = told(given, echo);
            assert!(told.starts_with("HTTP/1.1 400 Bad Request\r\n"), "{asked:?}: {told}");
            assert!(told.contains("\r\nconnection: close\r\n"), "{asked:?}: {told}");
            assert!(told.contains(why), "{asked:?}: {told}");
            assert_eq!(told.matches("HTTP/1.1").count(), 1, "{asked:?}: {told}");
        }
    }
}

#[test]
fn heads_have_a_bound() {
    let long = "a".repeat(8 * 1024);
    for head in [
        format!("GET /{long} HTTP/1.1\r\n\r\n"),
        format!("GET / HTTP/1.1\r\nX: {long}"),
        format!("GET / HTTP/1.1\r\n{}\r\n", "X: y\r\n".repeat(21)),
        "\r\n".repeat(4 * 1024),
    ] {
        for given in [Given::at_once(&head), Given::by_byte(&head)] {
            let (told, _) = told(given, echo);
            assert!(told.starts_with("HTTP/1.1 431 "), "{head:.40}: {told}");
        }
    }
    let fields = format!("GET / HTTP/1.1\r\n{}\r\n", "X: y\r\n".repeat(20));
    assert!(told(Given::at_once(&fields), echo).0.starts_with("HTTP/1.1 200 "));
    let limits = Limits { max_header_bytes: 1 << 20, ..LIMITS };
    let long = format!("GET /{} HTTP/1.1\r\n\r\n", "a".repeat(1 << 16));
    let mut connection = Connection::new(Given::at_once(&long), limits, watch(), serving(echo));
    run(&mut connection);
    assert!(connection.stream.told().starts_with("HTTP/1.1 414 "));
}

#[test]
fn answers_are_framed_by_what_is_known() {
    let chunks = || {
        let trailers = HeaderMap::from_iter([(http::header::ETAG, "x".parse().unwrap())]);
        let data = |text: &'static str| Frame::data(Bytes::from_static(text.as_bytes()));
        Response::new(frames(vec![data("hello, "), data("world"), Frame::trailers(trailers)]))
    };
    for (asked, response, told_to_be, ends) in [
        (ASKED, text as fn(&'static str) -> _, "HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\nx", false),
        ("HEAD / HTTP/1.1\r\n\r\n", text, "HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n", false),
        (
            "GET / HTTP/1.1\r\nConnection: x, Close\r\n\r\n",
            text,
            "HTTP/1.1 200 OK\r\ncontent-length: 1\r\nconnection: close\r\n\r\nx",
            true,
        ),
        ("GET / HTTP/1.0\r\n\r\n", text, "HTTP/1.0 200 OK\r\ncontent-length: 1\r\n\r\nx", true),
        (
            "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
            text,
            "HTTP/1.0 200 OK\r\ncontent-length: 1\r\nconnection: keep-alive\r\n\r\nx",
            false,
        ),
    ] {
        assert_eq!(told(Given::at_once(asked), |_| ready(response("x"))), (told_to_be.to_owned(), ends));
    }
    let begin = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n7\r\nhello, \r\n5\r\nworld\r\n0\r\n";
    assert_eq!(told(Given::at_once(ASKED), |_| ready(chunks())), (format!("{begin}\r\n"), false));
    assert_eq!(
        told(Given::at_once("GET / HTTP/1.1\r\nTE: trailers\r\n\r\n"), |_| ready(chunks())),
        (format!("{begin}etag: x\r\n\r\n"), false)
    );
    assert_eq!(
        told(Given::at_once("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"), |_| ready(chunks())),
        ("HTTP/1.0 200 OK\r\n\r\nhello, world".to_owned(), true)
    );
}

#[test]
fn answers_without_a_body_say_nothing_of_one() {
    let of = |status: u16, length: Option<&str>| {
        let mut response = Response::builder().status(status).header("connection", "x");
        if let Some(length) = length {
            response = response.header("content-length", length).header("transfer-encoding", "chunked");
        }
        response.body(full("")).unwrap()
    };
    for (asked, status, length, told_to_be) in [
        (ASKED, 200, None, "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"),
        (ASKED, 200, Some("7"), "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"),
        (ASKED, 204, Some("7"), "HTTP/1.1 204 No Content\r\n\r\n"),
        (ASKED, 304, Some("7"), "HTTP/1.1 304 Not Modified\r\ncontent-length: 7\r\n\r\n"),
        ("HEAD / HTTP/1.1\r\n\r\n", 200, Some("7"), "HTTP/1.1 200 OK\r\ncontent-length: 7\r\n\r\n"),
        ("HEAD / HTTP/1.1\r\n\r\n", 200, None, "HTTP/1.1 200 OK\r\n\r\n"),
        (ASKED, 599, None, "HTTP/1.1 599 \r\ncontent-length: 0\r\n\r\n"),
    ] {
        let (told, has_ended) = told(Given::at_once(asked), |_| ready(of(status, length)));
        assert_eq!((told.as_str(), has_ended), (told_to_be, false));
    }
}

#[test]
fn every_answer_has_one_date() {
    let dated = || Response::builder().header("date", "today").body(full("")).unwrap();
    for (response, date) in [(get(|| text("x")), None), (get(dated), Some("today"))] {
        let mut connection = Connection::new(Given::at_once(ASKED), LIMITS, watch(), serving(response));
        run(&mut connection);
        let told = String::from_utf8(connection.stream.written.clone()).unwrap();
        let dates: Vec<_> = told.lines().filter_map(|line| line.strip_prefix("date: ")).collect();
        assert_eq!(dates.len(), 1, "{told}");
        assert!(date.map_or_else(|| dates[0].ends_with(" GMT"), |date| date == dates[0]), "{told}");
    }
}

#[test]
fn a_large_answer_goes_out_as_it_is() {
    let large = "x".repeat(100_000);
    let body = Bytes::from(large.clone());
    let (told, _) = told(Given::at_once(ASKED), |_| ready(text(body.clone())));
    assert!(told == format!("HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n{large}"));
}

#[test]
fn whoever_waits_to_be_told_is_told_when_the_body_is_wanted() {
    let head = "POST / HTTP/1.1\r\nExpect: 100-Continue\r\nContent-Length: 3\r\n\r\n";
    let mut connection = Connection::new(Given::at_once(head), LIMITS, watch(), serving(echo));
    assert!(!run(&mut connection));
    assert_eq!(connection.stream.told(), "HTTP/1.1 100 Continue\r\n\r\n");
    connection.stream.give("abc");
    assert!(!run(&mut connection));
    assert!(connection.stream.told().ends_with("\r\n\r\nPOST / abc"));
    let (told, _) = told(Given::at_once(&format!("{head}abc")), echo);
    assert!(told.starts_with("HTTP/1.1 200 OK\r\n"), "it did not wait: {told}");
}

#[test]
fn whoever_is_refused_is_not_told_to_go_on() {
    let head = "POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n";
    let (told, _) = told(Given::at_once(head), get(|| text("no")));
    assert_eq!(told, "HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nno");
}

#[test]
fn a_body_that_nobody_wants_is_read_away_or_ends_the_connection() {
    for (length, is_kept) in [(3, true), (60_000, true), (70_000, false)] {
        let post = format!("POST / HTTP/1.1\r\nContent-Length: {length}\r\n\r\n{}", "a".repeat(length));
        let (told, _) = told(Given::at_once(&(post + ASKED)), get(|| text("no")));
        assert_eq!(told.matches("HTTP/1.1 200").count(), if is_kept { 2 } else { 1 }, "{length}: {told}");
        assert_eq!(told.contains("connection: close"), !is_kept, "{length}: {told}");
    }
    let post = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
    for (chunk, is_kept) in [("3\r\nabc\r\n", true), ("x\r\n", false)] {
        let asked = format!("{post}{chunk}0\r\n\r\n{ASKED}");
        let (told, _) = told(Given::at_once(&asked), get(|| text("no")));
        assert_eq!(told.matches("HTTP/1.1 200").count(), if is_kept { 2 } else { 1 }, "{chunk}: {told}");
    }
}

#[test]
fn no_more_is_read_than_is_wanted() {
    let head = "POST / HTTP/1.1\r\nContent-Length: 1000000\r\n\r\n";
    let bodies = Arc::new(std::sync::Mutex::new(Vec::new()));
    let kept = Arc::clone(&bodies);
    let serve = move |asked: Whole| {
        kept.lock().unwrap().push(asked.unwrap().into_body());
        pending::<Response<TestBody>>()
    };
    let given = Given::in_pieces([head.into(), vec![b'a'; 1_000_000]]);
    let mut connection = Connection::new(given, LIMITS, watch(), serving(serve));
    assert!(!run(&mut connection));
    assert_eq!(connection.stream.read, head.len(), "nobody wants it yet");
    let mut cx = Context::from_waker(Waker::noop());
    let mut taken = 0;
    while taken < 1_000_000 {
        let mut bodies = bodies.lock().unwrap();
        let body = Pin::new(&mut bodies[0]);
        assert_eq!(body.size_hint().exact(), Some(1_000_000 - taken));
        match body.poll_frame(&mut cx) {
            Poll::Ready(frame) => taken += frame.unwrap().unwrap().into_data().unwrap().len() as u64,
            Poll::Pending => drop((bodies, run(&mut connection))),
        }
        let ahead = connection.stream.read as u64 - head.len() as u64 - taken;
        assert!(ahead <= READ_LARGE as u64, "{ahead} bytes were read ahead");
    }
}

/// Tells when it is dropped.
struct Guard(Arc<AtomicBool>);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn what_serves_a_caller_who_went_away_is_dropped() {
    for asked in [ASKED, "POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\na"] {
        let is_dropped = Arc::new(AtomicBool::new(false));
        let serve = |asked: Whole| {
            let guard = Guard(Arc::clone(&is_dropped));
            async move {
                let _guard = guard;
                drop(asked.unwrap().into_body().collect().await);
                pending().await
            }
        };
        let mut connection = Connection::new(Given::at_once(asked), LIMITS, watch(), serving(serve));
        assert!(!run(&mut connection) && !is_dropped.load(Ordering::Relaxed));
        connection.stream.end();
        assert!(run(&mut connection) && is_dropped.load(Ordering::Relaxed), "{asked:?}");
        assert_eq!(connection.stream.told(), "");
    }
}

#[test]
fn a_body_in_other_hands_breaks_off_with_its_connection() {
    let mut body = None;
    let asked = "POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\na";
    let serve = |asked: Whole| {
        body = Some(asked.unwrap().into_body());
        pending::<Response<TestBody>>()
    };
    let mut connection = Connection::new(Given::at_once(asked), LIMITS, watch(), serving(serve));
    assert!(!run(&mut connection));
    drop(connection);
    let collected = tokio::runtime::Builder::new_current_thread().build().unwrap();
    assert!(collected.block_on(body.unwrap().collect()).is_err());
}

#[test]
fn draining_ends_an_idle_connection_and_finishes_what_has_begun() {
    let mut idle = Connection::new(Given::at_once(ASKED), LIMITS, watch(), serving(get(|| text("x"))));
    assert!(!run(&mut idle));
    idle.drain();
    assert!(run(&mut idle));
    for asked in [ASKED, "GET / HTTP"] {
        let mut begun = Connection::new(Given::at_once(asked), LIMITS, watch(), serving(get(|| text("x"))));
        begun.drain();
        begun.stream.give(ASKED.strip_prefix(asked).unwrap_or("/1.1\r\n\r\n"));
        assert!(run(&mut begun));
        assert!(begun.stream.told().contains("connection: close"), "{asked:?}");
    }
}

#[test]
fn another_protocol_gets_what_was_read_already() {
    let turn = || {
        let response = Response::builder().status(101).header("connection", "upgrade");
        response.header("upgrade", "x").body(full("theirs")).unwrap()
    };
    let asked = "GET / HTTP/1.1\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\nearly";
    let mut connection = Connection::new(Given::at_once(asked), LIMITS, watch(), serving(get(turn)));
    assert!(run(&mut connection));
    assert_eq!(
        connection.stream.told(),
        "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n"
    );
    let (_, unread, _) = connection.into_turned().unwrap();
    assert_eq!(unread, "early");
}

#[test]
fn an_idle_connection_holds_no_memory() {
    let post = format!("POST / HTTP/1.1\r\nContent-Length: 30000\r\n\r\n{}", "a".repeat(30_000));
    let mut connection = Connection::new(Given::at_once(&post), LIMITS, watch(), serving(echo));
    assert!(!run(&mut connection));
    assert_eq!((connection.buffer.capacity(), connection.out.capacity()), (0, 0));
}

#[test]
fn what_is_awaited_follows_the_bytes() {
    let second = std::time::Duration::from_secs(1);
    let limits = Listener {
        head_timeout: second,
        body_idle_timeout: second * 10,
        idle_timeout: second * 100,
        ..Listener::new("a", ([127, 0, 0, 1], 0).into())
    };
    let watch = watch();
    let mut connection = Connection::new(Given::at_once(""), LIMITS, Arc::clone(&watch), serving(echo));
    for (bytes, limit) in [
        ("", 1),
        ("POST /", 1),
        (" HTTP/1.1\r\nContent-Length: 2\r\n\r\n", 10),
        ("a", 10),
        ("b", 100),
        ("G", 1),
        ("ET / HTTP/1.1\r\n\r\n", 100),
    ] {
        connection.stream.give(bytes);
        assert!(!run(&mut connection));
        let overdue = |seconds: u64| watch.overdue(seconds * 1000, &limits);
        let order = if limit == 100 { Order::Drain } else { Order::Close };
        assert_eq!((overdue(limit), overdue(limit + 1)), (None, Some(order)), "behind {bytes:?}");
    }
}

const MESSAGES: &[&str] = &[
    "POST /a HTTP/1.1\r\nContent-Length: 3\r\n\r\nabcGET /b HTTP/1.1\r\nHost: x\r\n\r\n",
    "POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1;x=y\r\nc\r\n0\r\nT: 1\r\n\r\nHEAD /b HTTP/1.1\r\n\r\n",
    "GET /a HTTP/1.1\r\n\r\nPOST /b HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "GET /a HTTP/1.0\r\nConnection: keep-alive\r\n\r\n\r\nGET /b HTTP/1.0\r\n\r\nGET /c HTTP/1.0\r\n\r\n",
];

proptest! {
    #[test]
    fn any_cut_gives_the_same_answers(
        which in 0..MESSAGES.len(),
        mut cuts in prop::collection::vec(0_usize..200, 0..8),
    ) {
        let bytes = MESSAGES[which].as_bytes();
        cuts.retain(|cut| *cut < bytes.len());
        cuts.push(bytes.len());
        cuts.sort_unstable();
        let mut from = 0;
        let pieces = cuts.into_iter().map(|cut| bytes[std::mem::replace(&mut from, cut)..cut].to_vec());
        prop_assert_eq!(told(Given::in_pieces(pieces), echo).0, told(Given::at_once(MESSAGES[which]), echo).0);
    }

    #[test]
    fn no_bytes_are_too_strange(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let begin = b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
        told(Given::in_pieces([bytes.clone()]), echo);
        told(Given::in_pieces([begin.to_vec(), bytes]), echo);
    }
}

#[test]
fn methods_are_as_they_were_asked() {
    let serve = |asked: Whole| {
        let request = asked.unwrap();
        assert_eq!((request.method(), request.version()), (&Method::PATCH, Version::HTTP_11));
        ready(text("x"))
    };
    told(Given::at_once("PATCH http://b:81/x?y HTTP/1.1\r\n\r\n"), serve);
}
