//! Measures one service under overload: alone, behind nginx with `limit_conn`, behind Envoy with
//! `adaptive_concurrency` and behind our gateway, and prints what `bench/RESULTS.md` keeps.
//!
//! What happens to the service is in `scenarios/*.toml`, the same files that the tests read; how everything
//! is measured is in `tidegate-scenario`. Tables go to standard output, progress to standard error. Ends with
//! failure when our gateway misses a bar in a full run.

mod arguments;
mod bars;
mod behind;
mod figures;
mod json;
mod plan;
mod play;
mod report;
mod rounds;

/// Cores, programs and clients are the same as where gateways are compared without overload.
#[allow(dead_code, reason = "what is shared is used in part here, and in part there")]
#[path = "../../gateway/src"]
mod gateway {
    pub(crate) mod cores;
    pub(crate) mod http;
    pub(crate) mod machine;
    pub(crate) mod process;
    pub(crate) mod programs;
}

#[path = "../../core/src/figures.rs"]
mod quartiles;

use std::env;
use std::error::Error;
use std::fs;
use std::io::{self, Write};
use std::process::ExitCode;

use arguments::Arguments;
use gateway::{cores, http, machine, process, programs};
use plan::Plan;

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let arguments = match Arguments::read(env::args().skip(1)) {
        Ok(arguments) => arguments,
        Err(problem) => {
            writeln!(io::stderr(), "{problem}\n{}", arguments::USAGE)?;
            return Ok(ExitCode::from(2));
        }
    };
    let measured = Plan::new(&arguments)?.measure()?;
    io::stdout().write_all(report::render(&measured).as_bytes())?;
    if let Some(file) = &arguments.json {
        fs::write(file, json::render(&measured, &arguments.circumstances))?;
    }
    let is_kept = arguments.is_quick || bars::of(&measured.rounds).iter().all(bars::Bar::is_met);
    Ok(if is_kept { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
