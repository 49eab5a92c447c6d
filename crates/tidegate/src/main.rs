//! The Tidegate binary: wires the command line to what it asks for.

use std::error::Error;
use std::io::{self, Write};
use std::process::ExitCode;

use tidegate::cli::{self, Request};
use tidegate::demo;

fn main() -> ExitCode {
    let request = cli::parse();
    match carry_out(&request) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) if is_closed_pipe(problem.as_ref()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("error: {problem}");
            ExitCode::FAILURE
        }
    }
}

fn carry_out(request: &Request) -> Result<(), Box<dyn Error>> {
    // Line by line: a reader sees each part when it is there, and one who left ends the work.
    let mut page = io::stdout().lock();
    match request {
        Request::Demo => {
            demo::write(&mut page)?;
            demo::write_measured(&mut page)?;
        }
    }
    page.flush()?;
    Ok(())
}

/// Whether the reader went away, as `head` does once it has seen enough.
fn is_closed_pipe(problem: &(dyn Error + 'static)) -> bool {
    problem.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}
