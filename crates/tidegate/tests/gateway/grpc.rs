//! gRPC through the gateway: a real service, a real client, and refusals they understand.

use std::net::SocketAddr;

use http::Request;
use hyper::body::Body as _;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Channel, Server};
use tonic::{Code, Status};
use tonic_health::ServingStatus;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;

use crate::support::{Gateway, H2Client, full, runtime};

/// A health service, which has both a plain call and one that streams.
struct Service {
    runtime: Runtime,
    address: SocketAddr,
}

impl Service {
    fn start() -> Self {
        let runtime = runtime();
        let address = runtime.block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap();
            let (reporter, service) = tonic_health::server::health_reporter();
            reporter.set_service_status("orders", ServingStatus::Serving).await;
            let server = Server::builder().add_service(service);
            tokio::spawn(server.serve_with_incoming(TcpIncoming::from(listener)));
            address
        });
        Self { runtime, address }
    }

    fn gateway(&self, rest: &str) -> Gateway {
        Gateway::start(&format!(
            "listen = '127.0.0.1:0'\n[upstream.service]\nendpoints = ['http://{}']\nprotocol = 'h2'\n{rest}",
            self.address
        ))
    }
}

async fn client(gateway: &Gateway) -> HealthClient<Channel> {
    let channel = Channel::from_shared(format!("http://{}", gateway.address())).unwrap();
    HealthClient::new(channel.connect().await.unwrap())
}

fn asked() -> HealthCheckRequest {
    HealthCheckRequest { service: "orders".to_owned() }
}

#[test]
fn calls_and_their_statuses_pass() {
    let service = Service::start();
    let gateway = service.gateway("");
    service.runtime.block_on(async {
        let mut client = client(&gateway).await;
        let answer = client.check(asked()).await.unwrap().into_inner();
        assert_eq!(answer.status, ServingStatus::Serving as i32);
        let unknown = client.check(HealthCheckRequest { service: "unknown".to_owned() }).await;
        assert_eq!(unknown.unwrap_err().code(), Code::NotFound, "the service's own word");
    });
}

#[test]
fn streams_pass_message_by_message() {
    let service = Service::start();
    let gateway = service.gateway("");
    service.runtime.block_on(async {
        let mut stream = client(&gateway).await.watch(asked()).await.unwrap().into_inner();
        let first = stream.message().await.unwrap().unwrap();
        assert_eq!(first.status, ServingStatus::Serving as i32);
    });
}

fn refused(rest: &str, calls: usize) -> Status {
    let service = Service::start();
    let gateway = service.gateway(rest);
    service.runtime.block_on(async {
        let mut client = client(&gateway).await;
        for _ in 0..calls {
            client.check(asked()).await.unwrap();
        }
        client.check(asked()).await.unwrap_err()
    })
}

#[test]
fn a_caller_over_its_quota_is_told_in_grpc() {
    let status = refused("[rule.twice]\nquota = '2/min'", 2);
    assert_eq!(status.code(), Code::ResourceExhausted);
    assert_eq!(status.message(), "2 requests per minute, burst 2, for all callers together");
    let pushback = status.metadata().get("grpc-retry-pushback-ms").unwrap().to_str().unwrap();
    let pushback: u64 = pushback.parse().unwrap();
    assert!((20_000..=30_000).contains(&pushback), "{pushback}");
}

#[test]
fn a_call_that_no_route_takes_is_unimplemented() {
    let status = refused("[[route]]\nmatch = { path = '/other' }", 0);
    assert_eq!(status.code(), Code::Unimplemented);
}

#[test]
fn a_service_that_is_down_is_unavailable() {
    let address = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let gateway = Gateway::start(&format!(
        "listen = '127.0.0.1:0'\n[upstream.service]\nendpoints = ['http://{address}']\nprotocol = 'h2'"
    ));
    let status = runtime().block_on(async { client(&gateway).await.check(asked()).await.unwrap_err() });
    assert_eq!(status.code(), Code::Unavailable);
}

#[test]
fn a_refusal_is_trailers_only() {
    let service = Service::start();
    let gateway = service.gateway("[rule.once]\nquota = '1/min'");
    let client = H2Client::connect(gateway.address());
    let ask = || {
        let request = Request::post("http://a/grpc.health.v1.Health/Check");
        let request = request.header("content-type", "application/grpc+proto").header("te", "trailers");
        let body = full(&b"\0\0\0\0\x08\x0a\x06orders"[..]);
        let mut sender = client.sender();
        client
            .runtime()
            .block_on(async move { sender.send_request(request.body(body).unwrap()).await.unwrap() })
    };
    assert_eq!(ask().status(), 200);
    let refused = ask();
    assert!(refused.body().is_end_stream(), "one frame of fields, which ends the stream");
    let field = |name: &str| refused.headers().get(name).map(|value| value.to_str().unwrap());
    assert_eq!((refused.status().as_u16(), field("content-type")), (200, Some("application/grpc")));
    assert_eq!(field("grpc-status"), Some("8"));
    assert!(field("grpc-message").is_some());
    assert!(field("grpc-status-details-bin").is_some());
}
