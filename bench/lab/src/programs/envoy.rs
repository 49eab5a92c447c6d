//! Envoy: one worker, HTTP/1.1, no log.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use super::Between;

/// Prints its version.
pub fn version(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.arg("--version");
    command
}

/// Runs it in the foreground.
pub fn command(program: &Path, file: &Path) -> Command {
    let mut command = Command::new(program);
    command.args(["--concurrency", "1", "--disable-hot-restart", "--log-level", "error", "-c"]).arg(file);
    command
}

/// A whole configuration that forwards, with `actions` at its route and `filters` before it.
pub fn forwarding(between: Between, actions: &str, filters: &str) -> String {
    let (listen, upstream) = (address(between.listen), address(between.upstream));
    format!(
        r#"static_resources:
  listeners:
  - address: {listen}
    filter_chains:
    - filters:
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: bench
          codec_type: HTTP1
          use_remote_address: true
          generate_request_id: false
          route_config:
            virtual_hosts:
            - name: bench
              domains: ["*"]
              routes:
              - match: {{ prefix: "/" }}
                route:
                  cluster: bench
{actions}          http_filters:
{filters}          - name: envoy.filters.http.router
            typed_config:
              "@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router
  clusters:
  - name: bench
    type: STATIC
    load_assignment:
      cluster_name: bench
      endpoints: [{{ lb_endpoints: [{{ endpoint: {{ address: {upstream} }} }}] }}]
"#
    )
}

/// What a configuration has besides so that Envoy can be asked how it is doing.
pub fn admin(listen: SocketAddr) -> String {
    format!("admin:\n  address: {}\n", address(listen))
}

fn address(address: SocketAddr) -> String {
    format!("{{ socket_address: {{ address: {}, port_value: {} }} }}", address.ip(), address.port())
}
