//! `tidegate init`: a commented policy to start from.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::Path;

use tidegate_policy::Format;

use super::{Ended, Failure};

/// What is written, as TOML and as YAML.
const TOML: &str = include_str!("starter.toml");
const YAML: &str = include_str!("starter.yaml");

/// Writes the policy to `file`, unless there is one, spelt as the ending of its name says.
///
/// # Errors
/// When the file exists, since somebody may have written it, or cannot be written, or is JSON.
pub fn write(file: &Path, page: &mut dyn Write) -> Result<Ended, crate::Problem> {
    let is_json = file.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("json"));
    if is_json {
        let name = file.display();
        let why = format!("{name} would be JSON, which has no comments; name it .toml or .yaml");
        return Err(Failure::new(why).into());
    }
    let starter = match Format::of(&file.to_string_lossy()) {
        Format::Toml => TOML,
        Format::Yaml => YAML,
    };
    let opened = OpenOptions::new().write(true).create_new(true).open(file);
    let mut opened = opened.map_err(|problem| match problem.kind() {
        ErrorKind::AlreadyExists => {
            Failure::new(format!("{} is there already, and is left as it is", file.display()))
        }
        _ => Failure::new(format!("{} cannot be written: {problem}", file.display())),
    })?;
    opened.write_all(starter.as_bytes())?;
    writeln!(page, "wrote {0}; now try `tidegate check {0}`", file.display())?;
    Ok(Ended::Done)
}
