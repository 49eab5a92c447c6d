//! What is seen of the gateway while it is under load.

use std::net::SocketAddr;

use tidegate_load::drill::Probe;
use tidegate_scenario::record::Look;

use crate::gateway::support::Client;
use crate::operated::Operated;
use crate::vitals;

/// Asks the admin API for the limit, and the system for the processor time.
#[derive(Debug)]
pub struct Watch {
    admin: SocketAddr,
    process: u32,
}

impl Watch {
    pub fn of(gateway: &Operated) -> Self {
        Self { admin: gateway.admin, process: gateway.gateway.pid() }
    }
}

impl Probe for Watch {
    fn look(&mut self) -> Look {
        let answer = Client::connect(self.admin).get("/api/v1/upstreams", &[("host", "127.0.0.1")]);
        let upstreams = answer.json();
        let concurrency = &upstreams["upstreams"][0]["concurrency"];
        let limit = concurrency["limit"].as_f64();
        Look {
            limit,
            // Without a limit there is nothing to give a reason for.
            is_elsewhere: limit.map(|_| concurrency["why"] == "dependency"),
            processor: Some(vitals::processor_time_of(self.process)),
        }
    }
}
