//! A tonic service behind a gate: the health service of gRPC.
//!
//! ```text
//! cargo run -p tidegate-tower --example tonic_service
//! grpcurl -plaintext -H 'x-api-key: alice' 127.0.0.1:3000 grpc.health.v1.Health/Check
//! ```

use std::error::Error;

use tidegate_tower::{GateLayer, SystemClock};
use tokio::net::TcpListener;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;

#[path = "parts/layer.rs"]
mod layer;

/// Serves until the listener fails.
pub(crate) async fn serve(listener: TcpListener, layer: GateLayer) -> Result<(), tonic::transport::Error> {
    let (_reporter, health) = tonic_health::server::health_reporter();
    let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
    Server::builder().layer(layer).add_service(health).serve_with_incoming(incoming).await
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let listener = TcpListener::bind("127.0.0.1:3000").await?;
    Ok(serve(listener, layer::layer(SystemClock::new())?).await?)
}
