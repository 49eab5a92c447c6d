//! One frame a second for whoever listens, as server-sent events: what dashboard and `top` read.
//!
//! Each frame is a whole picture, the same as `GET /api/v1/status`. So whoever reads too slowly misses frames and
//! nothing else, and nobody has to wait for anybody. The stream ends when the gateway drains, after a frame that says
//! so.

use std::convert::Infallible;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use http_body::Frame;
use serde_json::Value;
use tokio::sync::mpsc;

use super::answer::{Refusal, written};
use super::seats;
use super::serve::Shared;
use super::station::Stage;
use super::status;

/// The most that listen at once.
const MOST_LISTENERS: usize = 32;
/// The most of them from one address, so that none takes all.
const MOST_OF_ADDRESS: usize = 24;
/// Frames that wait for a slow reader.
const WAITING: usize = 4;

/// Everybody who listens.
#[derive(Debug, Default)]
pub(super) struct Listeners(Mutex<Vec<Listener>>);

#[derive(Debug)]
struct Listener {
    address: Option<IpAddr>,
    frames: mpsc::Sender<Bytes>,
}

impl Listeners {
    /// Another one, whose first frame is there at once; or how many listen already, when that is too many.
    fn add(&self, address: Option<IpAddr>, first: &Value) -> Result<Frames, String> {
        self.has_room(address)?;
        let mut listeners = self.present();
        let (sender, receiver) = mpsc::channel(WAITING);
        // There is room for the first.
        drop(sender.try_send(frame(first)));
        listeners.push(Listener { address, frames: sender });
        Ok(Frames(receiver))
    }

    /// Whether there is room for another one from an address; if not, why.
    fn has_room(&self, address: Option<IpAddr>) -> Result<(), String> {
        let listeners = self.present();
        if listeners.len() >= MOST_LISTENERS {
            return Err(format!("{MOST_LISTENERS} listen already"));
        }
        if listeners.iter().filter(|listener| listener.address == address).count() >= MOST_OF_ADDRESS {
            return Err(format!("{MOST_OF_ADDRESS} listen already from this address"));
        }
        Ok(())
    }

    pub(super) fn has_any(&self) -> bool {
        !self.present().is_empty()
    }

    /// Gives everybody a frame, except those who have not read the last ones.
    pub(super) fn tell(&self, picture: &Value) {
        let frame = frame(picture);
        for listener in self.present().iter() {
            drop(listener.frames.try_send(frame.clone()));
        }
    }

    /// Ends all streams.
    pub(super) fn close(&self) {
        self.present().clear();
    }

    fn present(&self) -> MutexGuard<'_, Vec<Listener>> {
        let mut listeners = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        listeners.retain(|listener| !listener.frames.is_closed());
        listeners
    }
}

fn frame(picture: &Value) -> Bytes {
    format!("event: status\ndata: {picture}\n\n").into()
}

struct Frames(mpsc::Receiver<Bytes>);

impl http_body::Body for Frames {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(context).map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes))))
    }
}

/// `GET /api/v1/stream`
pub(super) async fn get(State(shared): State<Shared>) -> Result<Response, Refusal> {
    if shared.station.stage() == Stage::Draining {
        return Err(Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "it drains, and has no more to tell"));
    }
    let refused = |detail| Refusal::new(StatusCode::SERVICE_UNAVAILABLE, detail);
    // Before a picture is made in vain.
    shared.listeners.has_room(seats::address()).map_err(refused)?;
    let first = shared.aside(status::picture).await?;
    let frames = shared.listeners.add(seats::address(), &first).map_err(refused)?;
    Ok(written(StatusCode::OK, "text/event-stream", Body::new(frames)))
}
