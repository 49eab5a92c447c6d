//! On whose behalf a request is: what those who shed and those who let wait want to know of a caller.

use std::net::IpAddr;

use tidegate_core::WallTime;
use tidegate_core::shed::{Cohort, Epoch};

use super::keys::{self, Found, Part};
use super::{Gate, Now};
use crate::attributes::Attributes;
use crate::policy::Policy;

/// Who is served or refused alike, and whose turn it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Who {
    /// The cohort, the same in every process.
    pub cohort: Cohort,
    /// The caller, as only this process knows it.
    pub key: u64,
}

/// How long callers stay in their cohort.
const HOUR_NANOS: u64 = 3_600_000_000_000;

impl Gate {
    /// On whose behalf a request is.
    #[must_use]
    pub fn who(&self, now: Now, attributes: &Attributes<'_>) -> Who {
        let held = self.current.read();
        let policy = &held.plan.policy;
        let sender = sender(policy, keys::caller(policy, attributes), attributes);
        Who { cohort: cohort(sender, now.wall), key: held.plan.keys.of(&sender).bits() }
    }
}

/// Who sent a request, as far as anybody can tell: the caller it names, or the address it comes from.
pub(crate) fn sender<'a>(policy: &Policy, caller: Found<'a>, attributes: &Attributes<'_>) -> Part<'a> {
    match (caller, attributes.client) {
        (Ok(named @ (Part::Text(_) | Part::Address(_))), _) => named,
        (Ok(Part::Everybody) | Err(_), Some(client)) => Part::Address(policy.server.network_of(client)),
        (Ok(Part::Everybody) | Err(_), None) => Part::Everybody,
    }
}

/// The cohort of a sender, which stays the same for an hour.
pub(crate) fn cohort(sender: Part<'_>, wall: WallTime) -> Cohort {
    let hour = Epoch(wall.unix_nanos() / HOUR_NANOS);
    let of_address = |address| match address {
        IpAddr::V4(address) => Cohort::of(&address.octets(), hour),
        IpAddr::V6(address) => Cohort::of(&address.octets(), hour),
    };
    match sender {
        Part::Text(name) => Cohort::of(name, hour),
        Part::Address(network) => of_address(network.address),
        Part::Everybody => Cohort::of(b"", hour),
    }
}
