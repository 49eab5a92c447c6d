//! Connections as lanes use them: opened when needed, kept while they last.

use std::future::Future;
use std::net::SocketAddr;
use std::rc::Rc;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http2;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::sync::Mutex;
use tokio::task::JoinHandle;

use self::http1::Http1;

mod answer;
mod http1;

type Body = Full<Bytes>;

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// Nobody took the connection.
    Connect,
    /// Not within the time-out.
    TimedOut,
    /// The connection ended before the answer did.
    Reset,
    /// What came was not HTTP.
    Protocol,
}

/// What a lane sends through.
#[derive(Debug)]
pub(crate) enum Connection {
    /// The lane's own, while there is one.
    Http1(Option<Http1>),
    /// Shared with the other lanes of the connection.
    H2(Rc<Mutex<Option<H2>>>),
}

#[derive(Debug)]
pub(crate) struct H2 {
    sender: http2::SendRequest<Body>,
    _driver: Driver,
}

impl Connection {
    /// Sends the request and reads the answer to its last byte. A connection whose answer nobody waits for any more
    /// is closed (HTTP/1.1), or its stream is (HTTP/2).
    pub(crate) async fn exchange(
        &mut self,
        addresses: &[SocketAddr],
        request: Request<Bytes>,
    ) -> Result<StatusCode, Failure> {
        match self {
            Self::Http1(kept) => {
                // Taken out until the answer is read: if this future is dropped, so is the connection.
                let (status, connection) = Http1::exchange(kept.take(), addresses, &request).await?;
                *kept = connection;
                Ok(status)
            }
            Self::H2(shared) => {
                let mut sender = H2::sender(shared, addresses).await?;
                finish(sender.send_request(request.map(Full::new)).await.map_err(|error| failure(&error))?)
                    .await
            }
        }
    }
}

impl H2 {
    /// The connection's sender; opens one when there is none that lives.
    async fn sender(
        shared: &Mutex<Option<Self>>,
        addresses: &[SocketAddr],
    ) -> Result<http2::SendRequest<Body>, Failure> {
        let mut kept = shared.lock().await;
        if let Some(connection) = kept.as_ref()
            && !connection.sender.is_closed()
        {
            return Ok(connection.sender.clone());
        }
        let stream = connect(addresses).await?;
        let (sender, connection) = http2::Builder::new(LocalExecutor)
            .handshake(TokioIo::new(stream))
            .await
            .map_err(|error| failure(&error))?;
        *kept = Some(Self { sender: sender.clone(), _driver: Driver::of(connection) });
        Ok(sender)
    }
}

async fn connect(addresses: &[SocketAddr]) -> Result<TcpStream, Failure> {
    let stream = TcpStream::connect(addresses).await.map_err(|_| Failure::Connect)?;
    stream.set_nodelay(true).map_err(|_| Failure::Connect)?;
    // Callers of many machines have ports enough. Ours come from one, which keeps the port of a connection that is closed
    // in the usual way for a minute: if ten thousand a second give up, three seconds of it take all 28 000.
    stream.set_zero_linger().map_err(|_| Failure::Connect)?;
    Ok(stream)
}

async fn finish(mut response: Response<Incoming>) -> Result<StatusCode, Failure> {
    while let Some(frame) = response.body_mut().frame().await {
        frame.map_err(|error| failure(&error))?;
    }
    Ok(response.status())
}

fn failure(error: &hyper::Error) -> Failure {
    if error.is_parse() { Failure::Protocol } else { Failure::Reset }
}

/// The task that moves a connection's bytes; it ends with its owner.
#[derive(Debug)]
struct Driver(JoinHandle<()>);

impl Driver {
    fn of(connection: impl Future<Output = hyper::Result<()>> + 'static) -> Self {
        // How a connection ended is told to whoever waits for an answer on it.
        Self(tokio::task::spawn_local(async { drop(connection.await) }))
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Runs what HTTP/2 needs beside its connection on the same thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LocalExecutor;

impl<F: Future<Output: 'static> + 'static> hyper::rt::Executor<F> for LocalExecutor {
    fn execute(&self, future: F) {
        drop(tokio::task::spawn_local(future));
    }
}
