//! The Tidegate binary: wires the command line to what it asks for.

use std::error::Error;
use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

use tidegate::cli::{self, Demo, Request};
use tidegate::commands::{Ended, bench, check, ctl, explain, init, print};
use tidegate::demo::overload::{Show, Style};
use tidegate::{Problem, demo, run};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// What systemd and others know as a mistake in the configuration, which starting again does not cure.
const BAD_POLICY: u8 = 78;

/// What shells know as ended by Ctrl-C.
const INTERRUPTED: u8 = 130;

fn main() -> ExitCode {
    let request = cli::parse();
    match carry_out(&request) {
        Ok(Ended::Done) => ExitCode::SUCCESS,
        Ok(Ended::BadPolicy) => ExitCode::from(BAD_POLICY),
        Ok(Ended::Failed) => ExitCode::FAILURE,
        Ok(Ended::Interrupted) => ExitCode::from(INTERRUPTED),
        Err(problem) if is_closed_pipe(problem.as_ref()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("error: {problem}");
            ExitCode::FAILURE
        }
    }
}

fn carry_out(request: &Request) -> Result<Ended, Problem> {
    // Line by line: a reader sees each part when it is there, and one who left ends the work.
    let (mut page, mut errors) = (io::stdout().lock(), io::stderr().lock());
    let ended = match request {
        Request::Demo(asked) => demo::overload::write(&mut page, &Show::usual(style(*asked)))?,
        Request::Quotas => {
            demo::quotas::write(&mut page)?;
            demo::quotas::write_measured(&mut page)?;
            Ended::Done
        }
        Request::Run(asked) => {
            // Its threads write there too.
            drop((page, errors));
            return run::serve(asked, &mut io::stderr());
        }
        Request::Check(check) => check::write(check, &mut page, &mut errors)?,
        Request::Explain(explain) => explain::write(explain, &mut page, &mut errors)?,
        Request::Bench(asked) => bench::write(asked, &mut page, &mut errors)?,
        Request::Ctl(asked) => ctl::write(asked, &mut page, &mut errors)?,
        Request::Schema => print::schema(&mut page)?,
        Request::Init(file) => init::write(file, &mut page)?,
        Request::Completions(shell) => print::completions(*shell, &mut page)?,
        Request::Man(folder) => print::man(folder.as_deref(), &mut page)?,
    };
    page.flush()?;
    Ok(ended)
}

/// Redrawing is for terminals, and for those who do not mind control sequences (no-color.org).
fn style(asked: Demo) -> Style {
    let minds = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    if asked.is_plain || minds || !io::stdout().is_terminal() { Style::Lines } else { Style::Redrawn }
}

/// Whether the reader went away, as `head` does once it has seen enough.
fn is_closed_pipe(problem: &(dyn Error + 'static)) -> bool {
    problem.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}
