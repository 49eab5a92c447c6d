//! The examples, over real sockets.

#![expect(clippy::unwrap_used, reason = "a test that cannot be set up must fail")]
#![expect(clippy::duplicate_mod, reason = "each example stands alone, with its own copy of the layer")]

#[expect(dead_code, reason = "their main functions are not run here")]
#[path = "../../examples/axum_app.rs"]
mod axum_app;
#[expect(dead_code, reason = "their main functions are not run here")]
#[path = "../../examples/hyper_server.rs"]
mod hyper_server;
#[expect(dead_code, reason = "their main functions are not run here")]
#[path = "../../examples/tonic_service.rs"]
mod tonic_service;

mod aborting;
mod grpc;
mod http1;

use std::net::SocketAddr;

use tidegate_tower::GateLayer;
use tidegate_tower::clock::ToldClock;
use tokio::net::TcpListener;

/// A layer whose time stands still, so that answers can be compared byte for byte.
fn layer() -> GateLayer {
    axum_app::layer::layer(ToldClock::default()).unwrap()
}

async fn listen() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}
