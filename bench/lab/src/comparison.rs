//! A comparison as a program.

use std::env::{self, Args};
use std::error::Error;
use std::io::{self, Write};
use std::iter::Skip;
use std::process::ExitCode;

/// Reads the words after the program's name, compares, and says by the status how that went. What compares prints its
/// tables and says whether everything that was promised is kept.
///
/// | status | means |
/// |---:|---|
/// | 0 | it is kept |
/// | 1 | it is not, or there is nothing to say because something failed |
/// | 2 | the command line was not understood |
///
/// # Errors
///
/// Whatever failed while comparing.
pub fn run<A>(
    usage: &str,
    read: impl FnOnce(Skip<Args>) -> Result<A, String>,
    compare: impl FnOnce(A) -> Result<bool, Box<dyn Error>>,
) -> Result<ExitCode, Box<dyn Error>> {
    let arguments = match read(env::args().skip(1)) {
        Ok(arguments) => arguments,
        Err(problem) => {
            writeln!(io::stderr(), "{problem}\n{usage}")?;
            return Ok(ExitCode::from(2));
        }
    };
    let is_kept = compare(arguments)?;
    Ok(if is_kept { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
