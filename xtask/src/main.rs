//! `cargo xtask …`: the project's own commands, so that a fresh machine needs only cargo.

mod cli;
mod dist;
mod endurance;
mod project;
mod report;
mod steps;
mod tools;

use std::process::ExitCode;

use cli::Request;
use project::Project;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let project = Project::here();
    match cli::parse(&words) {
        Ok(Request::Run(steps)) => report::run(&project, &steps),
        Ok(Request::Bench(suite)) => report::run(&project, &[steps::comparison(suite)]),
        Ok(Request::Help) => {
            report::say(cli::USAGE);
            ExitCode::SUCCESS
        }
        Err(problem) => {
            eprintln!("error: {problem}\n\n{}", cli::USAGE);
            ExitCode::from(2)
        }
    }
}
