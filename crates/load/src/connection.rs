//! Connections as lanes use them: opened when needed, kept while they last.

use std::future::Future;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Instant;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http2;
use hyper_util::rt::TokioIo;
use tokio::sync::Mutex;
use tokio::task::JoinHandle;
use tokio::time::timeout_at;

use self::dial::dial;
use self::http1::Http1;

mod answer;
mod dial;
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
    /// Sends the request and reads the answer to its last byte, until the deadline. A connection whose answer nobody
    /// waits for any more is closed (HTTP/1.1), or its stream is (HTTP/2).
    pub(crate) async fn exchange(
        &mut self,
        addresses: &[SocketAddr],
        request: Request<Bytes>,
        deadline: Instant,
    ) -> Result<StatusCode, Failure> {
        let deadline = deadline.into();
        match self {
            Self::Http1(kept) => {
                // Taken out until the answer is read: if this future is dropped, so is the connection.
                let (status, connection) =
                    Http1::exchange(kept.take(), addresses, &request, deadline).await?;
                *kept = connection;
                Ok(status)
            }
            Self::H2(shared) => {
                let exchange = async {
                    let mut sender = H2::sender(shared, addresses).await?;
                    let sent = sender.send_request(request.map(Full::new)).await;
                    finish(sent.map_err(|error| failure(&error))?).await
                };
                timeout_at(deadline, exchange).await.unwrap_or(Err(Failure::TimedOut))
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
        let stream = dial(addresses).await.map_err(|_| Failure::Connect)?;
        let (sender, connection) = http2::Builder::new(LocalExecutor)
            .handshake(TokioIo::new(stream))
            .await
            .map_err(|error| failure(&error))?;
        *kept = Some(Self { sender: sender.clone(), _driver: Driver::of(connection) });
        Ok(sender)
    }
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
