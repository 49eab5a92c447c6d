//! Measures our decisions beside those of other crates and prints what `bench/RESULTS.md` keeps.
//!
//! Tables go to standard output, progress to standard error. Ends with failure when a bar is missed in
//! a full run, or when a decision of ours allocated.

mod allocations;
mod contender;
mod contenders;
mod counting;
mod mechanisms;
mod memory;
mod plan;
mod report;
mod rounds;
mod start;
mod stream;

use std::error::Error;
use std::io::{self, Write};
use std::process::ExitCode;

use plan::Plan;
use tidegate_bench_lab::bar::Bar;
use tidegate_bench_lab::comparison;

fn main() -> Result<ExitCode, Box<dyn Error>> {
    comparison::run("usage: tidegate-bench-core [--quick]", plan, |plan| {
        let measured = plan.measure()?;
        io::stdout().write_all(report::render(&measured).as_bytes())?;
        Ok(measured.allocates_nothing() && (plan.is_quick || measured.bars().iter().all(Bar::is_met)))
    })
}

fn plan(words: impl Iterator<Item = String>) -> Result<Plan, String> {
    let words: Vec<String> = words.collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => Ok(Plan::full()),
        ["--quick"] => Ok(Plan::quick()),
        _ => Err(format!("`{}` is not known", words.join(" "))),
    }
}
