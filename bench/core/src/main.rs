//! Measures our decisions beside those of other crates and prints what `bench/RESULTS.md` keeps.
//!
//! Tables go to standard output, progress to standard error. Ends with failure when a bar is missed in
//! a full run, or when a decision of ours allocated.

mod allocations;
mod contender;
mod contenders;
mod counting;
mod figures;
mod mechanisms;
mod memory;
mod plan;
mod report;
mod rounds;
mod start;
mod stream;
mod verdict;

use std::env;
use std::error::Error;
use std::io::{self, Write};
use std::process::ExitCode;

use plan::Plan;

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let plan = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => Plan::full(),
        ["--quick"] => Plan::quick(),
        _ => {
            writeln!(io::stderr(), "usage: tidegate-bench-core [--quick]")?;
            return Ok(ExitCode::from(2));
        }
    };
    let measured = plan.measure()?;
    io::stdout().write_all(report::render(&measured).as_bytes())?;
    let is_kept =
        measured.allocates_nothing() && (plan.is_quick || measured.bars().iter().all(|bar| bar.is_met()));
    Ok(if is_kept { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
