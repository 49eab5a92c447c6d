//! What is printed as it is: the schema, completions, the manual page.

use std::io::Write;
use std::path::Path;

use clap_complete::Shell;

use super::{Ended, Failure};
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

/// Writes the manual page, or into a folder one for each command.
///
/// # Errors
/// When one cannot be written.
pub fn man(folder: Option<&Path>, mut page: &mut dyn Write) -> Result<Ended, crate::Problem> {
    let Some(folder) = folder else {
        clap_mangen::Man::new(cli::command()).render(&mut page)?;
        return Ok(Ended::Done);
    };
    let written = clap_mangen::generate_to(cli::command(), folder);
    written
        .map_err(|problem| Failure::new(format!("{} cannot be written to: {problem}", folder.display())))?;
    writeln!(page, "wrote a page for each command to {}", folder.display())?;
    Ok(Ended::Done)
}
