//! One frame a second for whoever listens, as server-sent events: what dashboard and `top` read.
//!
//! Each frame is a whole picture, the same as `GET /api/v1/status`. So whoever reads too slowly misses frames and
//! nothing else, and nobody has to wait for anybody. The stream ends when the gateway drains, after a frame that says
//! so.

use std::convert::Infallible;
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
use super::serve::Shared;
use super::station::Stage;
use super::status;

/// The most that listen at once.
const MOST_LISTENERS: usize = 32;
/// Frames that wait for a slow reader.
const WAITING: usize = 4;

/// Everybody who listens.
#[derive(Debug, Default)]
pub(super) struct Listeners(Mutex<Vec<mpsc::Sender<Bytes>>>);

impl Listeners {
    /// Another one, whose first frame is there at once; none when there are too many.
    fn add(&self, first: &Value) -> Option<Frames> {
        let mut listeners = self.present();
        if listeners.len() >= MOST_LISTENERS {
            return None;
        }
        let (sender, receiver) = mpsc::channel(WAITING);
        // There is room for the first.
        drop(sender.try_send(frame(first)));
        listeners.push(sender);
        Some(Frames(receiver))
    }

    pub(super) fn has_any(&self) -> bool {
        !self.present().is_empty()
    }

    /// Gives everybody a frame, except those who have not read the last ones.
    pub(super) fn tell(&self, picture: &Value) {
        let frame = frame(picture);
        for listener in self.present().iter() {
            drop(listener.try_send(frame.clone()));
        }
    }

    /// Ends all streams.
    pub(super) fn close(&self) {
        self.present().clear();
    }

    fn present(&self) -> MutexGuard<'_, Vec<mpsc::Sender<Bytes>>> {
        let mut listeners = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        listeners.retain(|listener| !listener.is_closed());
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
    let first = shared.aside(status::picture).await?;
    let Some(frames) = shared.listeners.add(&first) else {
        let detail = format!("{MOST_LISTENERS} listen already");
        return Err(Refusal::new(StatusCode::SERVICE_UNAVAILABLE, detail));
    };
    Ok(written(StatusCode::OK, "text/event-stream", Body::new(frames)))
}
