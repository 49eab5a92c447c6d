//! Measures one service under overload: alone, behind nginx with `limit_conn`, behind Envoy with
//! `adaptive_concurrency` and behind our gateway, and prints what `bench/RESULTS.md` keeps.
//!
//! What happens to the service is in `scenarios/*.toml`, the same files that the tests read; how everything
//! is measured is in `tidegate-scenario`. Tables go to standard output, progress to standard error. Ends with
//! failure when our gateway misses a bar in any play of a full run.

mod arguments;
mod bars;
mod behind;
mod figures;
mod json;
mod patience;
mod plan;
mod play;
mod probe;
mod report;
mod rounds;

use std::error::Error;
use std::fs;
use std::io::{self, Write};
use std::process::ExitCode;

use arguments::Arguments;
use plan::Plan;
use tidegate_bench_lab::comparison;

fn main() -> Result<ExitCode, Box<dyn Error>> {
    comparison::run(arguments::USAGE, Arguments::read, |arguments| {
        let measured = Plan::new(&arguments)?.measure()?;
        io::stdout().write_all(report::render(&measured).as_bytes())?;
        if let Some(file) = &arguments.json {
            fs::write(file, json::render(&measured, &arguments.circumstances))?;
        }
        Ok(arguments.is_quick || bars::of(&measured.rounds).iter().all(bars::Bar::is_met))
    })
}
