//! nginx, with `limit_req`.

use std::path::Path;
use std::process::Command;

use crate::contender::{Contender, Setup};

pub(crate) const NAME: &str = "nginx";

/// Connections are never closed for the number of their requests; the others do not do that either.
pub(crate) const ENDLESS: &str = "keepalive_requests 1000000000;";

pub(crate) struct Nginx;

impl Contender for Nginx {
    fn name(&self) -> &'static str {
        NAME
    }

    fn version(&self) -> Command {
        let mut command = Command::new("nginx");
        command.arg("-v");
        command
    }

    fn configuration(&self, setup: &Setup<'_>) -> (&'static str, String) {
        let Setup { directory, listen, upstream, quota } = setup;
        let (zone, limit) = quota.map_or((String::new(), String::new()), |quota| {
            let (rate, burst) = (quota.per_second, quota.burst);
            (
                format!("limit_req_zone $http_x_api_key zone=keys:16m rate={rate}r/s; limit_req_status 429;"),
                format!("limit_req zone=keys burst={burst} nodelay;"),
            )
        });
        let body = format!(
            "upstream bench {{ server {upstream}; keepalive 256; {ENDLESS} }}
             {zone}
             server {{
                 listen {listen};
                 location / {{
                     {limit}
                     proxy_pass http://bench;
                     proxy_http_version 1.1;
                     proxy_set_header Connection \"\";
                     proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
                 }}
             }}"
        );
        ("nginx.conf", around(directory, &body))
    }

    fn command(&self, file: &Path) -> Command {
        command(file)
    }
}

/// A whole configuration around what stands in `http`.
pub(crate) fn around(directory: &Path, body: &str) -> String {
    let directory = directory.display();
    format!(
        "daemon off;
         worker_processes 1;
         pid {directory}/nginx.pid;
         error_log {directory}/error.log crit;
         events {{ worker_connections 8192; }}
         http {{
             access_log off;
             keepalive_timeout 1h;
             {ENDLESS}
             client_body_temp_path {directory}/client;
             proxy_temp_path {directory}/proxy;
             fastcgi_temp_path {directory}/fastcgi;
             uwsgi_temp_path {directory}/uwsgi;
             scgi_temp_path {directory}/scgi;
             {body}
         }}\n"
    )
}

/// Runs nginx in the foreground.
pub(crate) fn command(file: &Path) -> Command {
    let mut command = Command::new("nginx");
    // Messages before the file is read go nowhere else than standard error.
    command.arg("-e").arg("stderr").arg("-c").arg(file);
    command
}
