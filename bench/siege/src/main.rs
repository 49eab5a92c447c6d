//! Besieges our gateway and nginx beside it, and prints what an honest caller still gets.
//!
//! Tables go to standard output, progress to standard error. Ends with failure when our gateway misses a bar in a
//! full run.

mod arguments;
mod attack;
mod besieged;
mod frames;
mod honest;
mod plan;
mod report;
mod service;

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
        let measured = plan.measure(&arguments.ours)?;
        io::stdout().write_all(report::render(&measured).as_bytes())?;
        Ok(arguments.is_quick || measured.bars().iter().all(Bar::is_met))
    })
}
