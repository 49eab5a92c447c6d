//! Measures our gateway beside nginx, haproxy and Envoy and prints what `bench/RESULTS.md` keeps.
//!
//! Tables go to standard output, progress to standard error. Ends with failure when a bar is missed in
//! a full run, or when a contender does not do what its case says.

mod arguments;
mod case;
mod check;
mod contender;
mod contenders;
mod footprint;
mod latency;
mod plan;
mod report;
mod rounds;
mod upstream;
mod wrk;

use std::error::Error;
use std::io::{self, Write};
use std::process::ExitCode;

use arguments::Arguments;
use plan::Plan;
use tidegate_bench_lab::bar::Bar;
use tidegate_bench_lab::comparison;

fn main() -> Result<ExitCode, Box<dyn Error>> {
    comparison::run(arguments::USAGE, Arguments::read, |arguments| {
        let plan = if arguments.is_quick { Plan::quick() } else { Plan::full() };
        let measured = plan.measure(&contenders::all(&arguments))?;
        io::stdout().write_all(report::render(&measured).as_bytes())?;
        Ok(arguments.is_quick || measured.bars().iter().all(Bar::is_met))
    })
}
