//! An axum application behind a gate.
//!
//! ```text
//! cargo run -p tidegate-tower --example axum_app
//! for i in $(seq 25); do curl -i -H 'x-api-key: alice' http://127.0.0.1:3000/; done
//! ```

use std::error::Error;

use axum::Router;
use axum::routing::get;
use tidegate_tower::{GateLayer, SystemClock};
use tokio::net::TcpListener;

#[path = "parts/layer.rs"]
pub(crate) mod layer;

/// The application. Every route is behind the gate, the answer to an unknown path too.
pub(crate) fn app(layer: GateLayer) -> Router {
    Router::new().route("/", get(|| async { "hello" })).layer(layer)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let listener = TcpListener::bind("127.0.0.1:3000").await?;
    Ok(axum::serve(listener, app(layer::layer(SystemClock::new())?)).await?)
}
