//! nginx, with `limit_req`.

use std::path::Path;
use std::process::Command;

use tidegate_bench_lab::programs::nginx;

use crate::contender::{Contender, Setup};

pub(crate) const NAME: &str = "nginx";

pub(crate) struct Nginx;

impl Contender for Nginx {
    fn name(&self) -> &'static str {
        NAME
    }

    fn version(&self) -> Command {
        nginx::version()
    }

    fn configuration(&self, setup: &Setup<'_>) -> (&'static str, String) {
        let (zone, limit) = setup.quota.map_or((String::new(), String::new()), |quota| {
            let (rate, burst) = (quota.per_second, quota.burst);
            (
                format!("limit_req_zone $http_x_api_key zone=keys:16m rate={rate}r/s; limit_req_status 429;"),
                format!("limit_req zone=keys burst={burst} nodelay;"),
            )
        });
        ("nginx.conf", nginx::forwarding(setup.directory, setup.between, &zone, &limit))
    }

    fn command(&self, file: &Path) -> Command {
        nginx::command(file)
    }
}
