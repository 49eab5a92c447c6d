//! What `cargo xtask dist` makes: the binary as it is shipped, and beside it what debuggers need.
//!
//! Cargo can strip a binary, and then nobody can read a core dump; or leave everything in, and then it has three times
//! the size. So what only debuggers read goes into a file of its own, which the binary names. Names of functions stay in
//! the binary, for profiles and backtraces.

use std::process::Command;

use crate::project::Project;
use crate::steps::Step;
use crate::tools::{self, Trouble};

/// The most bytes of the binary.
const LARGEST: u32 = 15_000_000;

/// The only step of it.
pub(crate) fn step() -> Step {
    Step { name: "dist", what: "the binary in target/dist, its symbols beside it", prepare }
}

fn prepare(project: &Project) -> Result<Vec<Command>, Trouble> {
    tools::need_objcopy(project)?;
    let (built, dist) = (project.built("release/tidegate"), project.built("dist"));
    let (binary, symbols) = (dist.join("tidegate"), dist.join("tidegate.debug"));
    let mut folder = project.command("mkdir");
    folder.arg("-p").arg(&dist);
    let mut keep = project.command("objcopy");
    keep.arg("--only-keep-debug").arg(&built).arg(&symbols);
    let mut strip = project.command("objcopy");
    // The link is by name and checksum: both files must lie in one folder, wherever that is.
    strip.arg("--strip-debug").arg(format!("--add-gnu-debuglink={}", symbols.display()));
    strip.arg(&built).arg(&binary);
    let mut size = project.command("sh");
    size.args(["-c", "test \"$(wc -c < \"$1\")\" -le \"$2\"", "sh"]).arg(&binary).arg(LARGEST.to_string());
    Ok(vec![project.cargo("build --release -p tidegate"), folder, keep, strip, size])
}
