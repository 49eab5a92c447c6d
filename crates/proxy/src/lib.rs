//! The gateway: listeners, the walk of a request, upstream connections.
//!
//! ```text
//! caller ──listen──> connection ──> ingress ──gate──> upstream ──> endpoint
//! ```
//!
//! | to find | look in |
//! |---|---|
//! | how it is started, given policies and drained | [`Gateway`] |
//! | sockets, certificates, how many connections | `listen` |
//! | open files, and who may have how many | `files` |
//! | one connection, its limits in time, unsound framing | `connection` |
//! | HTTP/1 as bytes | `http1`, and on the two sides `connection::http1` and `upstream::http1` |
//! | the walk of a request | `ingress` |
//! | fields that end here or are added | `head`, `client` |
//! | what a request is called on its way | `request_id` |
//! | endpoints and connections to them | `upstream` |
//! | how long a request counts as in flight at its upstream | `stay`; without its caller, `alone` |
//! | what is counted | [`figures`] |
//! | what of it operators see as metrics | [`metrics`] |
//! | what is known of overload, and what follows | `signals`, `overload`, `degrade` |

mod alone;
mod chance;
mod client;
mod connection;
mod criticality;
mod degrade;
pub mod figures;
mod files;
mod foreseen;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing;
mod gateway;
mod head;
mod http1;
mod ingress;
mod listen;
pub mod metrics;
mod overload;
mod request_id;
mod settings;
mod signals;
mod stay;
mod ticks;
mod upgrade;
mod upstream;
mod worker;

pub use figures::Figures;
pub use files::OpenFiles;
pub use foreseen::foresee;
pub use gateway::{Gateway, Parts, StartFailure, TakeFailure};
pub use listen::can_bind;
pub use listen::tls::{BadPem, Pem};
pub use overload::{CapacityStatus, EndpointStatus, NoDegrade, RouteStatus, UpstreamStatus};
pub use signals::{SignalStatus, UntoldSignal};
pub use upstream::{AttemptOutcome, UpstreamError};
