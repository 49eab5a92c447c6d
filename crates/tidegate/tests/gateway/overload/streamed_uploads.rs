//! Uploads over HTTP/2, whose end is a frame that may come with the last byte, later, or never.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::Request;
use http_body_util::BodyExt;
use http_body_util::combinators::BoxBody;
use hyper::body::{Body, Frame};
use tokio::sync::oneshot;

use super::{Guarded, ONE};
use crate::support::{H2Client, Latch, Upstream, full};

/// A body of one piece, which comes when the test says so and is never ended.
struct Endless {
    piece: Option<oneshot::Receiver<Bytes>>,
}

impl Body for Endless {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let Some(piece) = &mut self.piece else { return Poll::Pending };
        let piece = ready!(Pin::new(piece).poll(cx)).unwrap();
        self.piece = None;
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }
}

fn post(guarded: &Guarded, body: BoxBody<Bytes, Infallible>) -> Request<BoxBody<Bytes, Infallible>> {
    Request::post(format!("http://{}/held", guarded.gateway.address())).body(body).unwrap()
}

#[test]
fn an_upload_counts_from_its_last_byte_although_its_end_is_held_back() {
    let latch = Latch::default();
    let upstream = Upstream::holding(&latch);
    let guarded = Guarded::before(&upstream, ONE, "");
    let client = H2Client::connect(guarded.gateway.address());
    let (send, piece) = oneshot::channel();
    let mut request = post(&guarded, Endless { piece: Some(piece) }.boxed());
    request.headers_mut().insert("content-length", 5.into());
    let mut sender = client.sender();
    let answer = client.runtime().spawn(async move { sender.send_request(request).await });
    guarded.until(|orders| orders["in_flight"] == 0);
    send.send(Bytes::from_static(b"hello")).unwrap();
    guarded.until(|orders| orders["in_flight"] == 1);
    assert_eq!(upstream.wait_for(1)[0].text(), "hello", "the service is at work");
    assert_eq!(guarded.gateway.get("/", &[]).status(), 503);
    latch.open();
    assert_eq!(client.runtime().block_on(answer).unwrap().unwrap().status(), 200);
    guarded.until(|orders| orders["in_flight"] == 0);
}

#[test]
fn uploads_that_are_here_pass_the_limit_no_more_than_others_do() {
    let latch = Latch::default();
    let upstream = Upstream::holding(&latch);
    let two = "algorithm = 'fixed'\nmax = 2\nqueue = { timeout = '60s' }";
    let guarded = Guarded::before(&upstream, two, "");
    let client = H2Client::connect(guarded.gateway.address());
    let answers: Vec<_> = (0..20)
        .map(|_| {
            let (mut sender, request) = (client.sender(), post(&guarded, full("hello")));
            client.runtime().spawn(async move { sender.send_request(request).await })
        })
        .collect();
    guarded.until(|orders| orders["waiting"] == 18);
    assert_eq!(guarded.orders()["in_flight"], 2);
    latch.open();
    for answer in answers {
        assert_eq!(client.runtime().block_on(answer).unwrap().unwrap().status(), 200);
    }
    assert_eq!(upstream.most_open(), 2, "the service was asked for two at a time");
}
