//! What is printed as it is: the schema, completions, the manual page.

use std::io::Write;

use clap_complete::Shell;

use super::Ended;
use crate::cli;

/// Writes the JSON Schema of policy files.
///
/// # Errors
/// When it cannot be written.
pub fn schema(page: &mut dyn Write) -> Result<Ended, crate::Problem> {
    writeln!(page, "{:#}", tidegate_policy::schema())?;
    Ok(Ended::Done)
}

/// Writes what a shell needs to complete command lines.
///
/// # Errors
/// When it cannot be written.
pub fn completions(shell: Shell, page: &mut dyn Write) -> Result<Ended, crate::Problem> {
    // Made whole first, since the generator would panic when the reader has gone away.
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut cli::command(), "tidegate", &mut text);
    page.write_all(&text)?;
    Ok(Ended::Done)
}

/// Writes the manual page.
///
/// # Errors
/// When it cannot be written.
pub fn man(mut page: &mut dyn Write) -> Result<Ended, crate::Problem> {
    clap_mangen::Man::new(cli::command()).render(&mut page)?;
    Ok(Ended::Done)
}
