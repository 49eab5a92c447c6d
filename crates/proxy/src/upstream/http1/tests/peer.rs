//! Against a server that somebody else wrote.

use http_body_util::{Either, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;

use super::*;

/// Echoes what comes in; by its path an answer is framed in one way or another.
async fn serve(stream: DuplexStream) {
    let service = service_fn(async |request: Request<Incoming>| {
        let path = request.uri().path().to_owned();
        let echoed = request.into_body();
        let response = Response::builder().header("trailer", "x-sum").header("x-path", &path);
        let body = match path.as_str() {
            "/length" => Either::Left(Full::new(echoed.collect().await.unwrap().to_bytes())),
            _ => Either::Right(echoed),
        };
        Ok::<_, Infallible>(response.body(body).unwrap())
    });
    hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await.ok();
}

fn large() -> Vec<Frame<Bytes>> {
    (0..50_usize).map(|number| Frame::data(Bytes::from(vec![b'z'; number * 997]))).collect()
}

#[test]
fn many_requests_go_over_one_connection() {
    run(async {
        let (ours, theirs) = duplex(4096);
        let mut connection = TestConnection::new(ours);
        let asking = async {
            for round in 0..3 {
                for (method, path, body, length) in [
                    ("GET", "/length", nothing(), 0),
                    ("HEAD", "/length", nothing(), 0),
                    ("POST", "/length", full("hello"), 5),
                    ("POST", "/length", frames(large()), 997 * 49 * 25),
                    ("PUT", "/chunks", full("hello"), 5),
                    ("PUT", "/chunks", frames(large()), 997 * 49 * 25),
                ] {
                    let request = Request::builder().method(method).uri(path).header("host", "a");
                    let heard = exchange(&mut connection, request.body(body).unwrap()).await.unwrap();
                    let heard = (heard.status, heard.body.len(), heard.is_reusable);
                    assert_eq!(heard, (200, length, true), "{round} {method} {path}");
                }
                connection.tidy();
            }
            drop(connection);
        };
        tokio::join!(asking, serve(theirs));
    });
}

#[test]
fn trailers_go_there_and_back() {
    run(async {
        let (ours, theirs) = duplex(4096);
        let mut connection = TestConnection::new(ours);
        let asking = async {
            let mut trailers = HeaderMap::new();
            trailers.insert("x-sum", "5".parse().unwrap());
            let body =
                frames(vec![Frame::data(Bytes::from_static(b"hello")), Frame::trailers(trailers.clone())]);
            let request = Request::post("/chunks").header("host", "a").header("te", "trailers");
            let heard = exchange(&mut connection, request.body(body).unwrap()).await.unwrap();
            assert_eq!((heard.body.as_slice(), heard.trailers), (&b"hello"[..], Some(trailers)));
            drop(connection);
        };
        tokio::join!(asking, serve(theirs));
    });
}
