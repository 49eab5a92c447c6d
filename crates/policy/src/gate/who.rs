//! On whose behalf a request is: what those who shed and those who let wait want to know of a caller.

use std::net::IpAddr;

use tidegate_core::WallTime;
use tidegate_core::shed::{Cohort, Epoch};

use super::keys::{self, Part};
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
        let key = keys::caller(policy, attributes).map_or(0, |part| held.plan.keys.of(&part).bits());
        Who { cohort: cohort(policy, attributes, now.wall), key }
    }
}

/// The cohort of a request: by its caller, and where nobody knows who that is, by its path.
pub(crate) fn cohort(policy: &Policy, attributes: &Attributes<'_>, wall: WallTime) -> Cohort {
    let hour = Epoch(wall.unix_nanos() / HOUR_NANOS);
    match keys::caller(policy, attributes) {
        Ok(Part::Text(text)) => Cohort::of(text, hour),
        Ok(Part::Address(network)) => match network.address {
            IpAddr::V4(address) => Cohort::of(&address.octets(), hour),
            IpAddr::V6(address) => Cohort::of(&address.octets(), hour),
        },
        Ok(Part::Everybody) | Err(_) => Cohort::of(attributes.path.as_bytes(), hour),
    }
}
