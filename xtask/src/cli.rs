//! What was asked for on the command line.

use crate::dist;
use crate::endurance;
use crate::steps::{self, Step};

/// What `cargo xtask help` prints.
pub(crate) const USAGE: &str = "\
usage: cargo xtask <command>

  test [STEP...]   run every check, or only the named steps; installs the tools that are missing
                   steps: fmt clippy test release scenarios docs loom fuzz deny instructions comparison
  endurance [STEP...]
                   run what takes minutes: the other scenarios over sockets, and strain that lasts
                   steps: scenarios strain
  dist             make the binary as it is shipped in target/dist, with its symbols beside it
  bench [core]     compare with the peers and print the ratios
  help             this text";

/// A command line that was understood.
#[derive(Debug)]
pub(crate) enum Request {
    /// `test` and `endurance`: steps, one after the other.
    Run(Vec<Step>),
    Bench(Suite),
    Help,
}

/// What the comparison measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Suite {
    /// The limiters of `tidegate-core` against other libraries.
    Core,
    /// The same with few repetitions: shows that it runs, proves no figure.
    CoreQuick,
}

/// Reads the words after `cargo xtask`.
pub(crate) fn parse(words: &[String]) -> Result<Request, String> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["test", names @ ..] => named(steps::all(), names),
        ["endurance", names @ ..] => named(endurance::all(), names),
        ["dist"] => Ok(Request::Run(vec![dist::step()])),
        ["bench"] | ["bench", "core"] => Ok(Request::Bench(Suite::Core)),
        ["bench", other, ..] => Err(format!("there is no benchmark `{other}`")),
        ["help" | "--help" | "-h"] => Ok(Request::Help),
        [other, ..] => Err(format!("there is no command `{other}`")),
        [] => Err("a command is missing".to_owned()),
    }
}

/// The steps with these names, in this order; all of them where none is named.
fn named(steps: Vec<Step>, names: &[&str]) -> Result<Request, String> {
    if names.is_empty() {
        return Ok(Request::Run(steps));
    }
    let step = |name: &&str| {
        let found = steps.iter().find(|step| step.name == *name);
        found.copied().ok_or_else(|| format!("there is no step `{name}`"))
    };
    names.iter().map(step).collect::<Result<_, _>>().map(Request::Run)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    fn names(steps: &[Step]) -> Vec<&'static str> {
        steps.iter().map(|step| step.name).collect()
    }

    #[test]
    fn what_is_shipped_is_made_in_one_step() {
        let Ok(Request::Run(steps)) = parse(&words("dist")) else { panic!("not understood") };
        assert_eq!(names(&steps), ["dist"]);
    }

    #[test]
    fn named_steps_run_in_the_order_given() {
        let Ok(Request::Run(steps)) = parse(&words("test deny fmt")) else { panic!("not understood") };
        assert_eq!(names(&steps), ["deny", "fmt"]);
    }

    #[test]
    fn without_names_every_step_of_the_command_runs() {
        for (command, all) in [("test", steps::all()), ("endurance", endurance::all())] {
            let Ok(Request::Run(steps)) = parse(&words(command)) else { panic!("not understood") };
            assert_eq!(names(&steps), names(&all));
        }
    }

    #[test]
    fn unknown_words_are_named() {
        for (line, problem) in [
            ("", "a command is missing"),
            ("tets", "there is no command `tets`"),
            ("test fmt nope", "there is no step `nope`"),
            ("endurance fmt", "there is no step `fmt`"),
            ("bench proxy", "there is no benchmark `proxy`"),
        ] {
            assert_eq!(parse(&words(line)).unwrap_err(), problem);
        }
    }

    #[test]
    fn usage_names_every_step() {
        for steps in [steps::all(), endurance::all()] {
            let line = format!("steps: {}\n", names(&steps).join(" "));
            assert!(USAGE.contains(&line), "{line}");
        }
    }
}
