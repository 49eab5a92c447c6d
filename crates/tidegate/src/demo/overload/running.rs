//! A gateway in this process.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::net::SocketAddr;
use std::sync::Arc;

use tidegate_policy::{Gate, Source};
use tidegate_proxy::{Gateway, Parts};
use tidegate_tower::bulkhead::Status;
use tidegate_tower::{Clock, SystemClock};

use crate::Problem;
use crate::commands::Failure;

/// What it is told besides where to listen and where to send: who may say how critical a request is. That it
/// finds out how much the service bears, and sheds what is too much, needs no words.
pub(super) const TOLD: &str = r#"[server]
trusted_proxies = ["127.0.0.1/32"]

[caller]
from = ["header:x-api-key"]

[criticality]
from = ["header:x-criticality"]"#;

/// A gateway before a service.
pub(super) struct Running {
    gateway: Gateway,
    pub(super) gate: Arc<Gate>,
    pub(super) address: SocketAddr,
}

impl Running {
    pub(super) fn start(upstream: SocketAddr) -> Result<Self, Problem> {
        let policy = format!("listen   = \"127.0.0.1:0\"\nupstream = \"http://{upstream}\"\n\n{TOLD}\n");
        let read = tidegate_policy::read(Source::named("demo.toml", policy.as_bytes()), None);
        let (policy, _) =
            read.map_err(|problems| Failure::new(tidegate_policy::problem::summary(&problems)))?;
        let clock = SystemClock::new();
        let gate = Arc::new(Gate::new(policy, RandomState::new().hash_one(()), clock.now())?);
        let parts =
            Parts { gate: Arc::clone(&gate), clock, tls: BTreeMap::new(), sockets: Vec::new(), log: None };
        let gateway = Gateway::start(parts)?;
        let address = *gateway.addresses().first().ok_or_else(|| Failure::new("nothing was bound"))?;
        Ok(Self { gateway, gate, address })
    }

    /// What stands before the service.
    pub(super) fn status(&self) -> Option<Status> {
        self.gateway.upstreams().into_iter().next().map(|upstream| upstream.bulkhead)
    }

    pub(super) fn stop(&self) {
        self.gateway.drain();
        self.gateway.wait();
    }
}
