//! The command line.

use std::path::PathBuf;

/// What is printed after a command line that was not understood.
pub(crate) const USAGE: &str = "usage: tidegate-bench-siege --ours PROGRAM [--quick]\n\
     --quick besieges for two seconds each, and holds nothing against a bar.";

/// What was asked for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Arguments {
    pub(crate) ours: PathBuf,
    pub(crate) is_quick: bool,
}

impl Arguments {
    /// Reads the words after the program's name.
    ///
    /// # Errors
    ///
    /// The word that is unknown or missing.
    pub(crate) fn read(mut words: impl Iterator<Item = String>) -> Result<Self, String> {
        let (mut ours, mut is_quick) = (None, false);
        while let Some(word) = words.next() {
            match word.as_str() {
                "--ours" => ours = Some(words.next().map(PathBuf::from).ok_or("--ours wants a program")?),
                "--quick" => is_quick = true,
                _ => return Err(format!("`{word}` is not known")),
            }
        }
        let ours = ours.ok_or("--ours says where our program is, and is missing")?;
        Ok(Self { ours, is_quick })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Arguments, String> {
        Arguments::read(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn unknown_and_missing_words_are_named() {
        assert_eq!(read("--ours /o --quick"), Ok(Arguments { ours: "/o".into(), is_quick: true }));
        assert_eq!(read("--fast"), Err("`--fast` is not known".to_owned()));
        assert_eq!(read("--ours"), Err("--ours wants a program".to_owned()));
        assert!(read("--quick").is_err_and(|problem| problem.contains("missing")));
    }
}
