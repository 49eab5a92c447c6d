//! The gate as a layer around any tower service that speaks HTTP: axum, hyper, tonic.
//!
//! ```
//! use std::convert::Infallible;
//!
//! use http::{Request, Response};
//! use http_body_util::Full;
//! use tidegate_policy::{Source, read};
//! use tidegate_tower::body::CountedBody;
//! use tidegate_tower::{GateLayer, SystemClock};
//! use tower::{Layer, ServiceExt, service_fn};
//!
//! async fn hello(_: Request<CountedBody<Full<&'static [u8]>>>) -> Result<Response<Full<bytes::Bytes>>, Infallible> {
//!     Ok(Response::new(Full::from("hello")))
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! let policy = br#"
//!     [rule.everybody]
//!     quota = "1/min"
//! "#;
//! let (policy, _warnings) = read(Source::named("policy.toml", policy), None).expect("it is right");
//! let layer = GateLayer::for_policy(policy, SystemClock::new()).expect("it is small enough");
//! let service = layer.layer(service_fn(hello));
//!
//! let request = || Request::new(Full::new(&b""[..]));
//! assert_eq!(service.clone().oneshot(request()).await.unwrap().status(), 200);
//! assert_eq!(service.clone().oneshot(request()).await.unwrap().status(), 429);
//! # }
//! ```
//!
//! | to find | look in |
//! |---|---|
//! | the layer and its service | [`gate_layer`] |
//! | what the gate is told of a request | [`identify`] |
//! | where the time comes from | [`clock`] |
//! | what callers are told: statuses, fields, problems, gRPC | [`respond`] |
//! | a request on its way, for drivers that are no tower service | [`admission`] |
//! | the bodies, with the permit on the answer's | [`body`] |
//! | what stands before an upstream | [`bulkhead`] |

pub mod admission;
pub mod body;
pub mod bulkhead;
pub mod clock;
pub mod gate_layer;
pub mod guard;
pub mod identify;
pub mod respond;

pub use admission::Admission;
pub use bulkhead::Bulkhead;
pub use clock::{Clock, SystemClock};
pub use gate_layer::{GateLayer, GateService, NoLayer};
pub use identify::{HttpIdentify, Identify, Peer};
pub use respond::Respond;
