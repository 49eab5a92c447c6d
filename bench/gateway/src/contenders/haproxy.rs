//! haproxy, with a stick table.

use std::path::Path;
use std::process::Command;

use tidegate_bench_lab::programs::Between;

use crate::case::TABLE;
use crate::contender::{Contender, Setup};

pub(crate) const NAME: &str = "haproxy";

pub(crate) struct Haproxy;

impl Contender for Haproxy {
    fn name(&self) -> &'static str {
        NAME
    }

    fn version(&self) -> Command {
        let mut command = Command::new("haproxy");
        command.arg("-v");
        command
    }

    fn configuration(&self, setup: &Setup<'_>) -> (&'static str, String) {
        let Setup { between: Between { listen, upstream }, quota, .. } = setup;
        // It has no bucket but counts requests within a second.
        let limit = quota.map_or(String::new(), |quota| {
            format!(
                "    stick-table type string len 32 size {TABLE} expire 60s store http_req_rate(1s)
    http-request track-sc0 req.hdr(x-api-key)
    http-request deny deny_status 429 if {{ sc_http_req_rate(0) gt {} }}\n",
                quota.burst
            )
        });
        let text = format!(
            "global
    maxconn 8192
    nbthread 1
defaults
    mode http
    timeout connect 5s
    timeout client 1h
    timeout server 1h
    timeout http-keep-alive 1h
    option forwardfor
    http-reuse always
frontend callers
    bind {listen}
{limit}    default_backend bench
backend bench
    server upstream {upstream}\n"
        );
        ("haproxy.cfg", text)
    }

    fn command(&self, file: &Path) -> Command {
        let mut command = Command::new("haproxy");
        command.args(["-db", "-f"]).arg(file);
        command
    }
}
