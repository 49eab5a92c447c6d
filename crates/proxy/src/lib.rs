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
//! | one connection, its limits in time, unsound framing | `connection` |
//! | the walk of a request | `ingress` |
//! | fields that end here or are added | `head`, `client` |
//! | endpoints and connections to them | `upstream` |
//! | what is counted | [`figures`] |

mod chance;
mod client;
mod connection;
pub mod figures;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod gateway;
mod head;
mod ingress;
mod listen;
mod settings;
mod ticks;
mod upgrade;
mod upstream;
mod worker;

pub use figures::Figures;
pub use gateway::{EndpointStatus, Gateway, Parts, StartFailure, TakeFailure, UpstreamStatus};
pub use listen::tls::Pem;
pub use upstream::AttemptOutcome;
