//! nginx: one worker, connections that stay, no log.

use std::path::Path;
use std::process::Command;

use super::Between;

/// Connections are never closed for the number of their requests; the others do not do that either.
const ENDLESS: &str = "keepalive_requests 1000000000;";

/// Prints its version.
pub fn version() -> Command {
    let mut command = Command::new("nginx");
    command.arg("-v");
    command
}

/// Runs it in the foreground.
pub fn command(file: &Path) -> Command {
    let mut command = Command::new("nginx");
    // Messages before the file is read go nowhere else than standard error.
    command.arg("-e").arg("stderr").arg("-c").arg(file);
    command
}

/// A whole configuration that forwards, with `zone` beside the server and `limit` where its requests come in.
pub fn forwarding(directory: &Path, between: Between, zone: &str, limit: &str) -> String {
    let Between { listen, upstream } = between;
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
    around(directory, &body)
}

/// A whole configuration around what stands in `http`.
pub fn around(directory: &Path, body: &str) -> String {
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
