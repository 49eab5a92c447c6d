//! The command line.

use std::path::PathBuf;

/// What is printed after a command line that was not understood.
pub(crate) const USAGE: &str = "usage: tidegate-bench-overload --scenarios DIRECTORY --ours PROGRAM --envoy PROGRAM \
     [--quick] [--only O1,M1] [--json FILE] [--circumstances TEXT]\n\
     --quick plays O2a and O4 once, or those that --only names, and holds nothing against a bar.";

/// What was asked for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Arguments {
    pub(crate) scenarios: PathBuf,
    pub(crate) ours: PathBuf,
    pub(crate) envoy: PathBuf,
    pub(crate) is_quick: bool,
    /// The ids of the scenarios that are played; all where nothing is said.
    pub(crate) only: Vec<String>,
    /// Where every single play is kept.
    pub(crate) json: Option<PathBuf>,
    /// What stands beside them.
    pub(crate) circumstances: String,
}

impl Arguments {
    /// Reads the words after the program's name.
    ///
    /// # Errors
    ///
    /// The word that is unknown or missing.
    pub(crate) fn read(words: impl Iterator<Item = String>) -> Result<Self, String> {
        let (mut scenarios, mut ours, mut envoy, mut json) = (None, None, None, None);
        let (mut is_quick, mut only, mut circumstances) = (false, Vec::new(), String::new());
        let mut words = words;
        while let Some(word) = words.next() {
            let mut next = || words.next().ok_or(format!("{word} wants another word"));
            match word.as_str() {
                "--scenarios" => scenarios = Some(next()?),
                "--ours" => ours = Some(next()?),
                "--envoy" => envoy = Some(next()?),
                "--json" => json = Some(next()?),
                "--circumstances" => circumstances = next()?,
                "--only" => only = next()?.split(',').map(str::to_owned).collect(),
                "--quick" => is_quick = true,
                _ => return Err(format!("`{word}` is not known")),
            }
        }
        let needed = |what: Option<String>, name: &str| {
            what.map(PathBuf::from).ok_or_else(|| format!("{name} is missing"))
        };
        Ok(Self {
            scenarios: needed(scenarios, "--scenarios")?,
            ours: needed(ours, "--ours")?,
            envoy: needed(envoy, "--envoy")?,
            is_quick,
            only,
            json: json.map(PathBuf::from),
            circumstances,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Arguments, String> {
        Arguments::read(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn scenarios_can_be_chosen_by_their_ids() {
        let arguments = read("--scenarios /s --ours /o --envoy /e --quick --only O1,M1 --json /j").unwrap();
        assert_eq!(arguments.only, ["O1", "M1"]);
        assert_eq!(arguments.json, Some("/j".into()));
        assert!(arguments.is_quick);
    }

    #[test]
    fn unknown_and_missing_words_are_named() {
        assert_eq!(read("--fast"), Err("`--fast` is not known".to_owned()));
        assert_eq!(read("--only"), Err("--only wants another word".to_owned()));
        assert_eq!(read("--scenarios /s --ours /o"), Err("--envoy is missing".to_owned()));
    }
}
