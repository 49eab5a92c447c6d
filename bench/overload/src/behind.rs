//! What stands between the callers and the service.
//!
//! Each protects the service in its own way, with what it is shipped with. Callers send the same requests to
//! all of them, with their criticality and their key in header fields; only ours is told by its policy to
//! look at them.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use tidegate_bench_lab::programs::{Between, envoy, nginx};

/// Who takes part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Behind {
    /// The callers talk to the service itself.
    Nothing,
    /// nginx lets in so many at a time.
    Nginx,
    /// Envoy finds out from latencies how many it lets in.
    Envoy(PathBuf),
    /// Tidegate with the scenario's own policy.
    Ours(PathBuf),
}

/// What a configuration depends on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setup<'a> {
    /// A directory of its own.
    pub(crate) directory: &'a Path,
    pub(crate) between: Between,
    /// Where it can be asked how it is doing, if it listens for that.
    pub(crate) admin: SocketAddr,
    /// How many requests the service works on at a time.
    pub(crate) workers: u32,
    /// The scenario's, already with the service's address.
    pub(crate) policy: &'a str,
}

impl Behind {
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Nginx => "nginx",
            Self::Envoy(_) => "Envoy",
            Self::Ours(_) => "tidegate",
        }
    }

    /// With what it protects, for a table.
    pub(crate) fn title(&self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Nginx => "nginx `limit_conn`",
            Self::Envoy(_) => "Envoy `adaptive_concurrency`",
            Self::Ours(_) => "tidegate",
        }
    }

    pub(crate) fn version(&self) -> Option<Command> {
        match self {
            Self::Nothing => None,
            Self::Nginx => Some(nginx::version()),
            Self::Envoy(program) => Some(envoy::version(program)),
            Self::Ours(program) => {
                let mut command = Command::new(program);
                command.arg("--version");
                Some(command)
            }
        }
    }

    /// Writes what configures it and returns how it is run; none where there is nothing to run.
    ///
    /// # Errors
    ///
    /// When the file cannot be written.
    pub(crate) fn prepare(&self, setup: &Setup<'_>) -> std::io::Result<Option<Command>> {
        let write = |name: &str, text: String| {
            let file = setup.directory.join(name);
            fs::write(&file, text).map(|()| file)
        };
        Ok(match self {
            Self::Nothing => None,
            Self::Nginx => Some(nginx::command(&write("nginx.conf", limited(setup))?)),
            Self::Envoy(program) => {
                let text = envoy::forwarding(setup.between, "", ADAPTIVE) + &envoy::admin(setup.admin);
                Some(envoy::command(program, &write("envoy.yaml", text)?))
            }
            Self::Ours(program) => {
                let file = write("tidegate.toml", listening(setup.policy, setup))?;
                let mut command = Command::new(program);
                command.args(["run", "-c"]).arg(file);
                Some(command)
            }
        })
    }
}

/// Twice as many as the service works on: enough that no worker ever waits for the next request, few enough
/// that a request waits as long as it is worked on. Requests with an empty key would not be counted, so the
/// key is the port.
fn limited(setup: &Setup<'_>) -> String {
    let zone = "limit_conn_zone $server_port zone=all:1m; limit_conn_status 503;";
    let limit = format!("limit_conn all {};", 2 * setup.workers);
    nginx::forwarding(setup.directory, setup.between, zone, &limit)
}

/// The gradient controller. Both intervals must be given, and are those of its documentation; all else is as
/// shipped.
const ADAPTIVE: &str = r#"          - name: envoy.filters.http.adaptive_concurrency
            typed_config:
              "@type": type.googleapis.com/envoy.extensions.filters.http.adaptive_concurrency.v3.AdaptiveConcurrency
              gradient_controller_config:
                concurrency_limit_params: { concurrency_update_interval: 0.1s }
                min_rtt_calc_params: { interval: 60s }
              enabled: { default_value: true, runtime_key: adaptive_concurrency.enabled }
"#;

/// The policy with these addresses to listen on; its own leave the choice to the system, which tells only
/// whoever reads the log.
fn listening(policy: &str, setup: &Setup<'_>) -> String {
    let line = |line: &str| match line.split_once('=').map(|(key, _)| key.trim()) {
        Some("listen") => format!("listen = \"{}\"\n", setup.between.listen),
        Some("admin") => format!("admin = \"{}\"\n", setup.admin),
        Some(_) | None => format!("{line}\n"),
    };
    policy.lines().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setup() -> Setup<'static> {
        let [address, admin] = [80, 81].map(|port| SocketAddr::from(([127, 0, 0, 1], port)));
        let between = Between { listen: address, upstream: address };
        Setup { directory: Path::new("/d"), between, admin, workers: 10, policy: "" }
    }

    #[test]
    fn a_policy_listens_where_it_is_told_to() {
        let policy =
            "listen   = \"127.0.0.1:0\"\nupstream = \"http://a\"\n[server]\nadmin = \"127.0.0.1:0\"\n";
        let expected =
            "listen = \"127.0.0.1:80\"\nupstream = \"http://a\"\n[server]\nadmin = \"127.0.0.1:81\"\n";
        assert_eq!(listening(policy, &setup()), expected);
    }

    #[test]
    fn nginx_lets_in_twice_as_many_as_there_are_workers() {
        assert!(limited(&setup()).contains("limit_conn all 20;"));
    }
}
