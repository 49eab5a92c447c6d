//! HTTP/2 on both sides of the gateway, driven from plain tests: each end has a runtime of its own.

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http2::{self, SendRequest};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::runtime::Runtime;
use tokio_rustls::TlsAcceptor;

use super::{PATIENCE, tls};

/// Bodies with trailers, whole or in parts.
pub type Body = BoxBody<Bytes, Infallible>;

/// A message over HTTP/2, whole.
#[derive(Clone, Debug)]
pub struct Whole<H> {
    pub head: H,
    pub body: Bytes,
    pub trailers: Option<HeaderMap>,
}

impl Whole<http::response::Parts> {
    pub const fn status(&self) -> StatusCode {
        self.head.status
    }

    pub fn get(&self, name: &str) -> Option<&str> {
        self.head.headers.get(name).map(|value| value.to_str().unwrap())
    }
}

/// One connection to a gateway. Requests may be sent at the same time from clones of [`H2Client::sender`].
#[derive(Debug)]
pub struct H2Client {
    runtime: Runtime,
    sender: SendRequest<Body>,
}

impl H2Client {
    /// With prior knowledge, unencrypted.
    pub fn connect(to: SocketAddr) -> Self {
        let runtime = runtime();
        let stream = runtime.block_on(TcpStream::connect(to)).unwrap();
        stream.set_nodelay(true).unwrap();
        Self::over(runtime, stream)
    }

    /// The same from another address of this machine, with what a balancer writes before the first byte.
    pub fn connect_behind(from: Ipv4Addr, header: &[u8], to: SocketAddr) -> Self {
        let runtime = runtime();
        let stream = runtime.block_on(async {
            let socket = TcpSocket::new_v4().unwrap();
            socket.bind((from, 0).into()).unwrap();
            let mut stream = socket.connect(to).await.unwrap();
            stream.write_all(header).await.unwrap();
            stream
        });
        stream.set_nodelay(true).unwrap();
        Self::over(runtime, stream)
    }

    pub fn over<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(runtime: Runtime, stream: S) -> Self {
        let sender = runtime.block_on(async {
            let (sender, connection) =
                http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
            // Whoever waits for an answer over it is told by its sender.
            tokio::spawn(async { drop(connection.await) });
            sender
        });
        Self { runtime, sender }
    }

    pub const fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    pub fn sender(&self) -> SendRequest<Body> {
        self.sender.clone()
    }

    pub fn get(&self, uri: &str, fields: &[(&str, &str)]) -> Whole<http::response::Parts> {
        let request = fields.iter().fold(Request::get(uri), |it, (name, value)| it.header(*name, *value));
        self.ask(request.body(full("")).unwrap()).unwrap()
    }

    /// Sends a request and reads its answer to the end.
    pub fn ask(&self, request: Request<Body>) -> Result<Whole<http::response::Parts>, hyper::Error> {
        let mut sender = self.sender.clone();
        let answer = async {
            sender.ready().await?;
            let (head, body) = sender.send_request(request).await?.into_parts();
            let body = body.collect().await?;
            let trailers = body.trailers().cloned();
            Ok(Whole { head, body: body.to_bytes(), trailers })
        };
        let answer = async { tokio::time::timeout(PATIENCE, answer).await };
        self.runtime.block_on(answer).expect("an answer comes")
    }
}

/// A body that is known from the beginning.
pub fn full(body: impl Into<Bytes>) -> Body {
    Full::new(body.into()).boxed()
}

/// A body with trailers behind it.
pub fn with_trailers(body: impl Into<Bytes>, trailers: HeaderMap) -> Body {
    Full::new(body.into()).with_trailers(async { Some(Ok(trailers)) }).boxed()
}

/// A runtime whose work goes on while the test does something else.
pub fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
}

type Received = Whole<http::request::Parts>;

/// A service that speaks HTTP/2 with prior knowledge and notes what it gets.
#[derive(Debug)]
pub struct H2Upstream {
    _runtime: Runtime,
    address: SocketAddr,
    requests: Arc<Mutex<Vec<Received>>>,
}

impl H2Upstream {
    /// Answers every request once it is whole.
    pub fn answering(answer: impl Fn(&Received) -> Response<Body> + Send + Sync + 'static) -> Self {
        Self::listening(None, answer)
    }

    /// The same over encrypted connections.
    pub fn answering_over_tls(answer: impl Fn(&Received) -> Response<Body> + Send + Sync + 'static) -> Self {
        Self::listening(Some(tls::acceptor_h2()), answer)
    }

    fn listening(
        tls: Option<TlsAcceptor>,
        answer: impl Fn(&Received) -> Response<Body> + Send + Sync + 'static,
    ) -> Self {
        let runtime = runtime();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let (address, requests) = (listener.local_addr().unwrap(), Arc::default());
        let serve = Serve { tls, answer, requests: Arc::clone(&requests) };
        runtime.spawn(serve.accept(listener));
        Self { _runtime: runtime, address, requests }
    }

    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn requests(&self) -> Vec<Received> {
        self.requests.lock().unwrap().clone()
    }
}

struct Serve<A> {
    tls: Option<TlsAcceptor>,
    answer: A,
    requests: Arc<Mutex<Vec<Received>>>,
}

impl<A: Fn(&Received) -> Response<Body> + Send + Sync + 'static> Serve<A> {
    async fn accept(self, listener: TcpListener) {
        let serve = Arc::new(self);
        while let Ok((stream, _)) = listener.accept().await {
            let serve = Arc::clone(&serve);
            match serve.tls.clone() {
                None => drop(tokio::spawn(serve.connection(stream))),
                Some(tls) => drop(tokio::spawn(async move {
                    // A gateway that does not trust us goes away.
                    let Ok(stream) = tls.accept(stream).await else { return };
                    serve.connection(stream).await;
                })),
            }
        }
    }

    async fn connection<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(self: Arc<Self>, stream: S) {
        let service = service_fn(move |request| Arc::clone(&self).one(request));
        let server = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
        // It ends when the gateway does.
        drop(server.serve_connection(TokioIo::new(stream), service).await);
    }

    async fn one(self: Arc<Self>, request: Request<Incoming>) -> Result<Response<Body>, hyper::Error> {
        let (head, body) = request.into_parts();
        let body = body.collect().await?;
        let trailers = body.trailers().cloned();
        let request = Whole { head, body: body.to_bytes(), trailers };
        self.requests.lock().unwrap().push(request.clone());
        Ok((self.answer)(&request))
    }
}
