//! Measures our gateway beside nginx, haproxy and Envoy and prints what `bench/RESULTS.md` keeps.
//!
//! Tables go to standard output, progress to standard error. Ends with failure when a bar is missed in
//! a full run, or when a contender does not do what its case says.

mod arguments;
mod bars;
mod case;
mod check;
mod contender;
mod contenders;
mod cores;
#[path = "../../core/src/figures.rs"]
mod figures;
mod footprint;
mod http;
mod latency;
mod machine;
mod plan;
mod process;
mod programs;
mod report;
mod rounds;
mod upstream;
mod wrk;

use std::env;
use std::error::Error;
use std::io::{self, Write};
use std::process::ExitCode;

use arguments::Arguments;
use plan::Plan;

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let arguments = match Arguments::read(env::args().skip(1)) {
        Ok(arguments) => arguments,
        Err(problem) => {
            writeln!(io::stderr(), "{problem}\n{}", arguments::USAGE)?;
            return Ok(ExitCode::from(2));
        }
    };
    let plan = if arguments.is_quick { Plan::quick() } else { Plan::full() };
    let measured = plan.measure(&contenders::all(&arguments))?;
    io::stdout().write_all(report::render(&measured).as_bytes())?;
    let is_kept = arguments.is_quick || measured.bars().iter().all(bars::Bar::is_met);
    Ok(if is_kept { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
