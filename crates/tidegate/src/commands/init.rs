//! `tidegate init`: a commented policy to start from.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::Path;

use super::{Ended, Failure};

/// What is written.
pub const STARTER: &str = include_str!("starter.toml");

/// Writes the policy to `file`, unless there is one.
///
/// # Errors
/// When the file exists, since somebody may have written it, or cannot be written.
pub fn write(file: &Path, page: &mut dyn Write) -> Result<Ended, crate::Problem> {
    let opened = OpenOptions::new().write(true).create_new(true).open(file);
    let mut opened = opened.map_err(|problem| match problem.kind() {
        ErrorKind::AlreadyExists => {
            Failure::new(format!("{} is there already, and is left as it is", file.display()))
        }
        _ => Failure::new(format!("{} cannot be written: {problem}", file.display())),
    })?;
    opened.write_all(STARTER.as_bytes())?;
    writeln!(page, "wrote {0}; now try `tidegate check {0}`", file.display())?;
    Ok(Ended::Done)
}
