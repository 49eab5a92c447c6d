//! The service behind the gateways: nginx answering a hundred bytes from memory.

use std::error::Error;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;

use tidegate_bench_lab::cores::Core;
use tidegate_bench_lab::http;
use tidegate_bench_lab::process::Program;
use tidegate_bench_lab::programs::nginx;

/// The body of every answer. A gateway that answered by itself would not know it.
pub(crate) const BODY: &str =
    "The tide comes in and the tide goes out, and between the two there is a gate that someone has to keep.";

/// Starts it on this core and waits until it answers.
pub(crate) fn start(core: Core, directory: &Path) -> Result<(Program, SocketAddr), Box<dyn Error>> {
    let listen = http::free_address()?;
    let server = format!(
        "server {{ listen {listen}; location / {{ default_type text/plain; return 200 \"{BODY}\"; }} }}"
    );
    let file = directory.join("upstream.conf");
    fs::write(&file, nginx::around(directory, &server))?;
    let mut program = Program::start("upstream", core, nginx::command(&file))?;
    program.ready(listen)?;
    Ok((program, listen))
}
