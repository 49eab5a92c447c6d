//! The command line.

use std::path::PathBuf;

/// What is printed after a command line that was not understood.
pub(crate) const USAGE: &str = "usage: tidegate-bench-gateway --envoy PROGRAM [--ours PROGRAM] [--quick]\n\
     Without --ours only the peers are measured, and nothing is held against a bar.";

/// What was asked for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Arguments {
    pub(crate) ours: Option<PathBuf>,
    pub(crate) envoy: PathBuf,
    pub(crate) is_quick: bool,
}

impl Arguments {
    /// Reads the words after the program's name.
    ///
    /// # Errors
    ///
    /// The word that is unknown or missing.
    pub(crate) fn read(words: impl Iterator<Item = String>) -> Result<Self, String> {
        let (mut ours, mut envoy, mut is_quick) = (None, None, false);
        let mut words = words;
        while let Some(word) = words.next() {
            let mut program = || words.next().map(PathBuf::from).ok_or(format!("{word} wants a program"));
            match word.as_str() {
                "--ours" => ours = Some(program()?),
                "--envoy" => envoy = Some(program()?),
                "--quick" => is_quick = true,
                _ => return Err(format!("`{word}` is not known")),
            }
        }
        let envoy = envoy.ok_or("--envoy says where Envoy's program is, and is missing")?;
        Ok(Self { ours, envoy, is_quick })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Arguments, String> {
        Arguments::read(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn programs_are_named_by_path() {
        let arguments = read("--envoy /e --ours /o --quick");
        let expected = Arguments { ours: Some("/o".into()), envoy: "/e".into(), is_quick: true };
        assert_eq!(arguments, Ok(expected));
    }

    #[test]
    fn unknown_and_missing_words_are_named() {
        assert_eq!(read("--fast"), Err("`--fast` is not known".to_owned()));
        assert_eq!(read("--envoy"), Err("--envoy wants a program".to_owned()));
        assert!(read("--quick").is_err_and(|problem| problem.contains("--envoy")));
    }
}
