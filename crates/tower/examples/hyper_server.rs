//! A plain hyper server behind a gate.
//!
//! ```text
//! cargo run -p tidegate-tower --example hyper_server
//! for i in $(seq 25); do curl -i -H 'x-api-key: alice' http://127.0.0.1:3000/; done
//! ```

use std::convert::Infallible;
use std::error::Error;
use std::io;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use tidegate_tower::body::CountedBody;
use tidegate_tower::{GateLayer, Peer, SystemClock};
use tokio::net::TcpListener;
use tower::{Layer, service_fn};

#[path = "parts/layer.rs"]
mod layer;

async fn hello(_request: Request<CountedBody<Incoming>>) -> Result<Response<Full<Bytes>>, Infallible> {
    Ok(Response::new(Full::new(Bytes::from_static(b"hello"))))
}

/// Serves every connection with a clone of one service: all of them share the gate.
pub(crate) async fn serve(listener: TcpListener, layer: GateLayer) -> io::Result<()> {
    let service = layer.layer(service_fn(hello));
    loop {
        let (stream, address) = listener.accept().await?;
        let service = service.clone();
        // Rules by address need to know it, and only the server does.
        let service = tower::util::MapRequest::new(service, move |mut request: Request<Incoming>| {
            request.extensions_mut().insert(Peer::new(address.ip()));
            request
        });
        let service = TowerToHyperService::new(service);
        tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let listener = TcpListener::bind("127.0.0.1:3000").await?;
    Ok(serve(listener, layer::layer(SystemClock::new())?).await?)
}
