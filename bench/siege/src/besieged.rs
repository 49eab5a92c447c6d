//! Who is besieged. Both have one worker and keep connections on both sides; everything else is as shipped.

use std::error::Error;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use tidegate_bench_lab::programs::nginx;

/// Who takes part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Besieged {
    Nginx,
    Ours(PathBuf),
}

/// From where to where it forwards.
#[derive(Clone, Debug)]
pub(crate) struct Setup<'a> {
    /// A directory of its own.
    pub(crate) directory: &'a Path,
    /// Where it speaks HTTP/1.1, and where HTTP/2 alone.
    pub(crate) listen: [SocketAddr; 2],
    pub(crate) endpoints: &'a [SocketAddr],
}

impl Besieged {
    pub(crate) const fn name(&self) -> &'static str {
        match self {
            Self::Nginx => "nginx",
            Self::Ours(_) => "tidegate",
        }
    }

    pub(crate) fn version(&self) -> Command {
        match self {
            Self::Nginx => nginx::version(),
            Self::Ours(program) => {
                let mut command = Command::new(program);
                command.arg("--version");
                command
            }
        }
    }

    /// Writes what configures it and returns how it is run.
    pub(crate) fn prepare(&self, setup: &Setup<'_>) -> Result<Command, Box<dyn Error>> {
        let (name, text) = match self {
            Self::Nginx => ("nginx.conf", nginx_of(setup)),
            Self::Ours(_) => ("tidegate.toml", policy(setup)),
        };
        let file = setup.directory.join(name);
        fs::write(&file, text)?;
        Ok(match self {
            Self::Nginx => nginx::command(&file),
            Self::Ours(program) => {
                let mut command = Command::new(program);
                command.args(["run", "-c"]).arg(file);
                command
            }
        })
    }
}

fn policy(setup: &Setup<'_>) -> String {
    let endpoints: Vec<String> =
        setup.endpoints.iter().map(|address| format!("\"http://{address}\"")).collect();
    let [http1, h2] = setup.listen;
    format!(
        "[server]\nworkers = 1\n\n\
         [[listener]]\nname = \"http1\"\nbind = \"{http1}\"\nprotocols = [\"http/1.1\"]\n\n\
         [[listener]]\nname = \"h2\"\nbind = \"{h2}\"\nprotocols = [\"h2\"]\n\n\
         [upstream.service]\nendpoints = [{}]\n",
        endpoints.join(", ")
    )
}

fn nginx_of(setup: &Setup<'_>) -> String {
    let servers: String = setup.endpoints.iter().map(|address| format!("server {address}; ")).collect();
    let [http1, h2] = setup.listen;
    let body = format!(
        "upstream bench {{ {servers} keepalive 256; }}
             server {{
                 listen {http1};
                 listen {h2} http2;
                 location / {{
                     proxy_pass http://bench;
                     proxy_http_version 1.1;
                     proxy_set_header Connection \"\";
                 }}
             }}"
    );
    nginx::around(setup.directory, &body)
}
