//! Runs steps one after the other, with a heading each and a summary at the end.

use std::error::Error;
use std::fmt;
use std::io::{self, Write};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use crate::project::Project;
use crate::steps::Step;
use crate::tools::Trouble;

/// Runs `steps` until one fails, and says how each of them ended.
pub(crate) fn run(project: &Project, steps: &[Step]) -> ExitCode {
    let start = Instant::now();
    let mut lines = Vec::new();
    let mut failure = None;
    for step in steps {
        if failure.is_some() {
            lines.push(Line { name: step.name, end: End::NotRun });
            continue;
        }
        say(&format!("\n=== {}: {}", step.name, step.what));
        let begin = Instant::now();
        let result = carry_out(project, step);
        let took = begin.elapsed();
        lines.push(Line {
            name: step.name,
            end: if result.is_ok() { End::Passed(took) } else { End::Failed(took) },
        });
        failure = result.err().map(|trouble| (step.name, trouble));
    }

    say("\n=== summary");
    for line in &lines {
        say(&line.to_string());
    }
    say(&format!("{:<14}{:>9.1} s", "in all", start.elapsed().as_secs_f64()));
    match failure {
        None => ExitCode::SUCCESS,
        Some((name, trouble)) => {
            let cause = trouble.source().map(|source| format!(": {source}")).unwrap_or_default();
            eprintln!("error: step `{name}` failed: {trouble}{cause}");
            ExitCode::FAILURE
        }
    }
}

/// Prints a line to standard output. When nobody reads any more, the exit code still tells how it went.
pub(crate) fn say(text: &str) {
    writeln!(io::stdout(), "{text}").unwrap_or_default();
}

fn carry_out(project: &Project, step: &Step) -> Result<(), Trouble> {
    for mut command in (step.prepare)(project)? {
        say(&format!("$ {}", written(&command)));
        let status =
            command.status().map_err(|source| Trouble::Start { command: written(&command), source })?;
        if !status.success() {
            return Err(Trouble::Failed { command: written(&command), status });
        }
    }
    Ok(())
}

/// The command as one would type it.
pub(crate) fn written(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let words: Vec<_> = words.map(|word| word.to_string_lossy().into_owned()).collect();
    let settings = command.get_envs().filter(|(name, _)| *name != "PATH");
    let settings = settings.filter_map(|(name, value)| value.map(|value| (name, value)));
    settings
        .map(|(name, value)| format!("{}={:?} ", name.to_string_lossy(), value.to_string_lossy()))
        .chain(std::iter::once(words.join(" ")))
        .collect()
}

struct Line {
    name: &'static str,
    end: End,
}

enum End {
    Passed(Duration),
    Failed(Duration),
    NotRun,
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.name;
        match self.end {
            End::Passed(took) => write!(f, "{name:<14}{:>9.1} s  passed", took.as_secs_f64()),
            End::Failed(took) => write!(f, "{name:<14}{:>9.1} s  FAILED", took.as_secs_f64()),
            End::NotRun => write!(f, "{name:<14}{:>11}  not run", "-"),
        }
    }
}
