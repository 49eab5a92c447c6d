//! What was asked for on the command line.

use crate::steps::{self, Step};

/// What `cargo xtask help` prints.
pub(crate) const USAGE: &str = "\
usage: cargo xtask <command>

  test [STEP...]   run every check, or only the named steps; installs the tools that are missing
                   steps: fmt clippy test release scenarios docs loom fuzz deny instructions comparison
  bench [core]     compare with the peers and print the ratios
  help             this text";

/// A command line that was understood.
#[derive(Debug)]
pub(crate) enum Request {
    Test(Vec<Step>),
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
        ["test"] => Ok(Request::Test(steps::all())),
        ["test", names @ ..] => {
            names.iter().map(|name| step(name)).collect::<Result<_, _>>().map(Request::Test)
        }
        ["bench"] | ["bench", "core"] => Ok(Request::Bench(Suite::Core)),
        ["bench", other, ..] => Err(format!("there is no benchmark `{other}`")),
        ["help" | "--help" | "-h"] => Ok(Request::Help),
        [other, ..] => Err(format!("there is no command `{other}`")),
        [] => Err("a command is missing".to_owned()),
    }
}

fn step(name: &str) -> Result<Step, String> {
    steps::all()
        .into_iter()
        .find(|step| step.name == name)
        .ok_or_else(|| format!("there is no step `{name}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn named_steps_run_in_the_order_given() {
        let Ok(Request::Test(steps)) = parse(&words("test deny fmt")) else { panic!("not understood") };
        assert_eq!(steps.iter().map(|step| step.name).collect::<Vec<_>>(), ["deny", "fmt"]);
    }

    #[test]
    fn unknown_words_are_named() {
        for (line, problem) in [
            ("", "a command is missing"),
            ("tets", "there is no command `tets`"),
            ("test fmt nope", "there is no step `nope`"),
            ("bench proxy", "there is no benchmark `proxy`"),
        ] {
            assert_eq!(parse(&words(line)).unwrap_err(), problem);
        }
    }

    #[test]
    fn usage_names_every_step() {
        let names: Vec<&str> = steps::all().iter().map(|step| step.name).collect();
        assert!(USAGE.contains(&names.join(" ")), "{names:?}");
    }
}
