//! The codec over streams in memory: byte by byte, and against hyper's server.

mod peer;

use std::convert::Infallible;
use std::future::poll_fn;

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body::Frame;
use http_body_util::BodyExt;
use proptest::prelude::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

use super::*;
use crate::http1::test_bodies::{TestBody, frames, full};

type TestConnection = Connection<DuplexStream, TestBody>;

const ROOM: usize = 64 * 1024;

fn nothing() -> TestBody {
    full("")
}

/// A body that never ends.
fn endless() -> TestBody {
    Endless.boxed_unsync()
}

struct Endless;

impl Body for Endless {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(Some(Ok(Frame::data(Bytes::from(vec![b'x'; ROOM])))))
    }
}

fn get() -> Request<TestBody> {
    Request::get("/").header("host", "a").body(nothing()).unwrap()
}

/// What an answer came to.
#[derive(Debug, PartialEq)]
struct Heard {
    status: u16,
    headers: HeaderMap,
    body: Vec<u8>,
    trailers: Option<HeaderMap>,
    is_reusable: bool,
}

async fn read_body(connection: &mut TestConnection) -> Result<(Vec<u8>, Option<HeaderMap>), Failure> {
    let (mut body, mut trailers) = (Vec::new(), None);
    while let Some(frame) = poll_fn(|cx| connection.poll_frame(cx)).await {
        match frame?.into_data() {
            Ok(data) => body.extend_from_slice(&data),
            Err(frame) => trailers = frame.into_trailers().ok(),
        }
    }
    Ok((body, trailers))
}

async fn exchange(connection: &mut TestConnection, mut request: Request<TestBody>) -> Result<Heard, Failure> {
    let response = connection.ask(&mut request, "d", nothing).await?;
    let (parts, ()) = response.into_parts();
    let (body, trailers) = read_body(connection).await?;
    let is_reusable = connection.is_reusable();
    Ok(Heard { status: parts.status.as_u16(), headers: parts.headers, body, trailers, is_reusable })
}

/// Asks somebody who answers with these pieces and closes, whatever was asked.
async fn hear(request: Request<TestBody>, pieces: &[&[u8]]) -> Result<Heard, Failure> {
    let (ours, mut theirs) = duplex(ROOM);
    let mut connection = Connection::new(ours);
    let answering = async {
        for piece in pieces {
            // Whoever has heard enough listens no longer.
            if theirs.write_all(piece).await.is_err() {
                return;
            }
            tokio::task::yield_now().await;
        }
        theirs.shutdown().await.unwrap();
        // What was asked is read only so that it does not fail.
        theirs.read_to_end(&mut Vec::new()).await.unwrap();
    };
    let asking = async {
        let heard = exchange(&mut connection, request).await;
        drop(connection);
        heard
    };
    tokio::join!(asking, answering).0
}

fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

fn heard(answer: &str) -> Result<Heard, Failure> {
    run(hear(get(), &[answer.as_bytes()]))
}

/// What is written for a request.
fn written(request: Request<TestBody>) -> String {
    run(async {
        let (ours, mut theirs) = duplex(ROOM);
        let mut connection = Connection::new(ours);
        let asking = async {
            let mut request = request;
            connection.ask(&mut request, "d", nothing).await.unwrap();
            drop(connection);
        };
        let reading = async {
            let mut bytes = vec![0; ROOM];
            let count = theirs.read(&mut bytes).await.unwrap();
            bytes.truncate(count);
            theirs.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await.unwrap();
            theirs.read_to_end(&mut bytes).await.unwrap();
            String::from_utf8(bytes).unwrap()
        };
        tokio::join!(asking, reading).1
    })
}

#[test]
fn requests_are_written_with_one_framing() {
    let request = |method: &str, body| {
        let request = Request::builder().method(method).uri("/a?b").header("host", "c");
        request.header("content-length", "77").header("transfer-encoding", "gzip").body(body).unwrap()
    };
    assert_eq!(
        written(request("GET", nothing())),
        "GET /a?b HTTP/1.1\r\nhost: c\r\ncontent-length: 0\r\n\r\n"
    );
    assert_eq!(
        written(request("PUT", full("hello"))),
        "PUT /a?b HTTP/1.1\r\nhost: c\r\ncontent-length: 5\r\n\r\nhello"
    );
    let mut trailers = HeaderMap::new();
    trailers.insert("x-sum", "5".parse().unwrap());
    trailers.insert("content-length", "5".parse().unwrap());
    let pieces =
        vec![Frame::data(Bytes::from_static(b"hello")), Frame::data(Bytes::new()), Frame::trailers(trailers)];
    assert_eq!(
        written(request("POST", frames(pieces))),
        "POST /a?b HTTP/1.1\r\nhost: c\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nx-sum: 5\r\n\r\n"
    );
    assert_eq!(written(get()), "GET / HTTP/1.1\r\nhost: a\r\n\r\n");
    let post = Request::post("/").body(nothing()).unwrap();
    assert_eq!(written(post), "POST / HTTP/1.1\r\nhost: d\r\ncontent-length: 0\r\n\r\n");
    let query = Request::options("http://a?b").body(nothing()).unwrap();
    assert!(written(query).starts_with("OPTIONS /?b HTTP/1.1\r\n"));
}

#[test]
fn answers_end_where_they_say() {
    for (answer, body, is_reusable) in [
        ("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello", "hello", true),
        ("HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 5, 5\r\n\r\nhello", "hello", true),
        ("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", "", true),
        ("HTTP/1.1 200 OK\r\ncontent-length: 5\r\nconnection: x, Close\r\n\r\nhello", "hello", false),
        ("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhelloHTTP/1.1 200 OK\r\n\r\n", "hello", false),
        ("HTTP/1.1 200 OK\r\n\r\nhello", "hello", false),
        ("HTTP/1.1 204 No Content\r\n\r\n", "", true),
        ("HTTP/1.1 204 No Content\r\ncontent-length: 3\r\n\r\n", "", false),
        ("HTTP/1.1 304 Not Modified\r\ncontent-length: 3\r\n\r\n", "", true),
        ("HTTP/1.0 200 OK\r\ncontent-length: 5\r\n\r\nhello", "hello", false),
        ("HTTP/1.0 200 OK\r\ncontent-length: 5\r\nconnection: keep-alive\r\n\r\nhello", "hello", true),
        ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", "hello", true),
        (
            "HTTP/1.1 200 OK\r\ntransfer-encoding: CHUNKED\r\n\r\nA;x=\"y\"\r\n0123456789\r\n0;z\r\n\r\n",
            "0123456789",
            true,
        ),
        (
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n000\r\n\r\n!",
            "hello",
            false,
        ),
        (
            "HTTP/1.1 200 OK\r\ncontent-length: 3\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
            "hello",
            false,
        ),
        (
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\na: b\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n",
            "",
            true,
        ),
    ] {
        let heard = heard(answer).unwrap_or_else(|failure| panic!("{answer}: {failure}"));
        assert_eq!(
            (std::str::from_utf8(&heard.body).unwrap(), heard.is_reusable),
            (body, is_reusable),
            "{answer}"
        );
        let lengths = heard.headers.get_all("content-length").iter().count();
        assert!(lengths <= usize::from(!heard.headers.contains_key("transfer-encoding")), "{answer}");
    }
}

#[test]
fn the_answer_to_head_has_no_body() {
    let head = Request::head("/").body(nothing()).unwrap();
    let heard = run(hear(head, &[b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n"])).unwrap();
    assert_eq!(
        (heard.body.len(), heard.is_reusable, &heard.headers["content-length"]),
        (0, true, &"5".parse().unwrap())
    );
}

#[test]
fn trailers_are_given_on_without_what_must_not_be_there() {
    let heard = heard(
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nx\r\n0\r\nx-sum: 5\r\ncontent-length: 9\r\n\r\n",
    );
    let heard = heard.unwrap();
    let trailers = heard.trailers.unwrap();
    assert_eq!((trailers.len(), &trailers["x-sum"]), (1, &"5".parse().unwrap()));
    assert!(heard.is_reusable);
}

#[test]
fn words_of_their_own_beside_the_status_are_kept() {
    for (answer, words) in
        [("HTTP/1.1 200 Fine\r\n\r\n", Some(&b"Fine"[..])), ("HTTP/1.1 200 OK\r\n\r\n", None)]
    {
        let (ours, mut theirs) = duplex(ROOM);
        let response: Response<()> = run(async {
            theirs.write_all(answer.as_bytes()).await.unwrap();
            TestConnection::new(ours).ask(&mut get(), "d", nothing).await.unwrap()
        });
        let kept = response.extensions().get::<hyper::ext::ReasonPhrase>();
        assert_eq!(kept.map(hyper::ext::ReasonPhrase::as_bytes), words);
    }
}

#[test]
fn what_can_be_read_in_two_ways_is_refused() {
    let many_fields = format!("HTTP/1.1 200 OK\r\n{}\r\n", "a: b\r\n".repeat(101));
    let long_head = format!("HTTP/1.1 200 OK\r\na: {}\r\n\r\n", "b".repeat(70_000));
    let interim = "HTTP/1.1 100 Continue\r\n\r\n".repeat(17) + "HTTP/1.1 200 OK\r\n\r\n";
    for answer in [
        "220 smtp ready\r\n",
        "HTTP/2 200 OK\r\n\r\n",
        "HTTP/1.1 99 No\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nhello!",
        "HTTP/1.1 200 OK\r\ncontent-length: 5, 6\r\n\r\nhello!",
        "HTTP/1.1 200 OK\r\ncontent-length: +5\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\ncontent-length:\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 18446744073709551616\r\n\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: gzip\r\n\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked, gzip\r\n\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        "HTTP/1.0 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\na: b\r\n c\r\n\r\n",
        "HTTP/1.1 200 OK\r\na : b\r\n\r\n",
        "HTTP/1.1 200 OK\r\na: b\rc\r\n\r\n",
        "HTTP/1.1 200 OK\r\na: b\0c\r\n\r\n",
        "HTTP/1.1 200 OK\r\n: b\r\n\r\n",
        "HTTP/1.1 200 OK\r\nab\r\n\r\n",
        "HTTP/1.1 200 OK\r\na: b\r\r\n\r\n",
        "HTTP/1.1 200 OK\r\na\tb: c\r\n\r\n",
        "HTTP/1.1 200 O\x01K\r\n\r\n",
        "HTTP/1.1 2000 OK\r\n\r\n",
        "HTTP/1.1  200 OK\r\n\r\n",
        "HTTP/1.2 200 OK\r\n\r\n",
        "HTTP/1.1\r\n\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\nhello\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello0\r\n\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n 5\r\nhello\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5 5\r\nhello\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0x5\r\nhello\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5;a\rb\r\nhello\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n00000000000000005\r\nhello\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\na b\r\n\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\n",
        &format!(
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5;{}\r\nhello\r\n0\r\n\r\n",
            "x".repeat(1024)
        ),
        &format!(
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\na: {}\r\n\r\n",
            "x".repeat(16_384)
        ),
        &many_fields,
        &long_head,
        &interim,
    ] {
        let heard = heard(answer);
        assert!(matches!(heard, Err(Failure::Malformed(_))), "{answer:.200}: {heard:?}");
    }
}

#[test]
fn what_breaks_off_is_no_answer() {
    assert_eq!(heard(""), Err(Failure::Closed));
    for answer in [
        "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhell",
        "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n",
        "HTTP/1.1 100 Continue\r\n\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5",
    ] {
        assert_eq!(heard(answer), Err(Failure::BrokenOff), "{answer}");
    }
}

#[test]
fn a_request_of_which_nothing_was_sent_is_given_back() {
    let (ours, theirs) = duplex(ROOM);
    drop(theirs);
    let mut request = Request::post("/").body(full("hello")).unwrap();
    // A body that was looked at is gone; one that waits is not.
    *request.body_mut() = Waiting.boxed_unsync();
    let failure = run(TestConnection::new(ours).ask(&mut request, "d", nothing)).unwrap_err();
    assert_eq!(failure, Failure::Unsent);
    assert!(!request.body().is_end_stream());
}

struct Waiting;

impl Body for Waiting {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Pending
    }
}

#[test]
fn an_early_answer_does_not_wait_for_the_upload() {
    for body in [endless(), Waiting.boxed_unsync()] {
        run(async {
            let (ours, mut theirs) = duplex(1024);
            theirs.write_all(b"HTTP/1.1 413 Too Large\r\ncontent-length: 2\r\n\r\nno").await.unwrap();
            let mut connection = TestConnection::new(ours);
            let request = Request::post("/").body(body).unwrap();
            // Nobody reads the request.
            let heard = exchange(&mut connection, request).await.unwrap();
            assert_eq!((heard.status, heard.body.as_slice(), heard.is_reusable), (413, &b"no"[..], false));
        });
    }
}

#[test]
fn an_upload_goes_on_while_the_answer_comes() {
    run(async {
        let (ours, theirs) = duplex(1024);
        let mut connection = TestConnection::new(ours);
        let pieces = (0..64).map(|_| Frame::data(Bytes::from(vec![b'y'; 20_000]))).collect();
        let request = Request::post("/").body(frames(pieces)).unwrap();
        let echoing = async {
            let (mut from, mut to) = tokio::io::split(theirs);
            to.write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n").await.unwrap();
            let mut head = [0; 1];
            let mut last = Vec::new();
            while !last.ends_with(b"\r\n\r\n") {
                from.read_exact(&mut head).await.unwrap();
                last.extend_from_slice(&head);
            }
            tokio::io::copy(&mut from, &mut to).await.unwrap();
        };
        let asking = async {
            let heard = exchange(&mut connection, request).await.unwrap();
            drop(connection);
            heard
        };
        let (heard, ()) = tokio::join!(asking, echoing);
        assert_eq!((heard.body.len(), heard.is_reusable), (64 * 20_000, true));
    });
}

#[test]
fn another_protocol_gets_what_was_read_already() {
    run(async {
        let (ours, mut theirs) = duplex(ROOM);
        theirs.write_all(b"HTTP/1.1 101 Switching\r\nupgrade: x\r\n\r\nfirst").await.unwrap();
        let mut connection = TestConnection::new(ours);
        let response = connection.ask(&mut get(), "d", nothing).await.unwrap();
        assert_eq!(response.status(), StatusCode::SWITCHING_PROTOCOLS);
        assert_eq!(connection.into_parts().1, "first");
    });
}

const ANSWERS: [&str; 5] = [
    "HTTP/1.1 200 OK\r\ncontent-length: 11\r\nserver: x\r\n\r\nhello world",
    "HTTP/1.1 103 Early\r\n\r\nHTTP/1.1 200 Very Well\r\ntransfer-encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n1\r\n!\r\n0\r\nx-sum: 1\r\n\r\n",
    "HTTP/1.1 200 OK\nset-cookie: a\nset-cookie: b\n\nuntil the end",
    "HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nabcHTTP/1.1 200 OK\r\n\r\n",
    "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello!\r\n0\r\n\r\n",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn any_cut_gives_the_same_answer(which in 0..ANSWERS.len(), mut cuts in prop::collection::vec(0_usize..200, 0..8)) {
        let bytes = ANSWERS[which].as_bytes();
        cuts.iter_mut().for_each(|cut| *cut %= bytes.len());
        cuts.push(bytes.len());
        cuts.sort_unstable();
        let mut from = 0;
        let pieces: Vec<_> = cuts.into_iter().map(|to| &bytes[std::mem::replace(&mut from, to)..to]).collect();
        let (whole, cut) = (run(hear(get(), &[bytes])), run(hear(get(), &pieces)));
        match (whole, cut) {
            // Garbage that has not come yet is found when the connection is to be used again.
            (Ok(whole), Ok(cut)) => prop_assert_eq!(
                (whole.status, whole.headers, whole.body, whole.trailers),
                (cut.status, cut.headers, cut.body, cut.trailers)
            ),
            (whole, cut) => prop_assert_eq!(whole, cut),
        }
    }

    #[test]
    fn no_bytes_are_too_strange(
        which in 0..ANSWERS.len(),
        changes in prop::collection::vec((0_usize..200, any::<u8>()), 0..6),
        tail in prop::collection::vec(any::<u8>(), 0..64),
    ) {
        let mut bytes = ANSWERS[which].as_bytes().to_vec();
        for (place, byte) in changes {
            let place = place % bytes.len();
            bytes[place] = byte;
        }
        bytes.extend(tail);
        let _heard = run(hear(get(), &[&bytes]));
    }
}
