//! What was asked for on the command line.

use clap::Command;
use clap::error::ErrorKind;

/// A command line that was understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// Show what quotas do, in virtual time.
    Demo,
}

/// Reads the program's own command line; prints help or what is wrong with it and exits, 2 for a mistake.
#[must_use]
pub fn parse() -> Request {
    parse_from(std::env::args_os()).unwrap_or_else(|problem| problem.exit())
}

fn parse_from<W>(words: impl IntoIterator<Item = W>) -> Result<Request, clap::Error>
where
    W: Into<std::ffi::OsString> + Clone,
{
    let mut command = command();
    let matches = command.try_get_matches_from_mut(words)?;
    match matches.subcommand_name() {
        Some("demo") => Ok(Request::Demo),
        Some(_) | None => Err(command.error(ErrorKind::MissingSubcommand, "a command is missing")),
    }
}

fn command() -> Command {
    Command::new("tidegate")
        .version(env!("CARGO_PKG_VERSION"))
        .about("Protects services from the traffic they get and from the services they call")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(
            Command::new("demo").about("Show what quotas do: one page, in virtual time, without sockets"),
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn demo_is_understood() {
        assert_eq!(parse_from(["tidegate", "demo"]).unwrap(), Request::Demo);
    }

    #[test]
    fn a_wrong_word_is_a_usage_error_with_a_suggestion() {
        let problem = parse_from(["tidegate", "dmo"]).unwrap_err();
        assert_eq!(problem.exit_code(), 2);
        assert!(problem.to_string().contains("'demo'"), "{problem}");
    }

    #[test]
    fn the_command_line_is_consistent() {
        command().debug_assert();
    }
}
