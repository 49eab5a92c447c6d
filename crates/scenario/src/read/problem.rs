//! What is wrong with a file.

use std::error::Error;
use std::fmt;

/// Something that is wrong with a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// In which line, counted from one.
    pub line: usize,
    /// What.
    pub what: String,
}

impl Problem {
    pub(crate) fn new(line: usize, what: impl Into<String>) -> Self {
        Self { line, what: what.into() }
    }
}

/// All that is wrong with a file, in the order of its lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problems {
    /// What the file is called.
    pub name: String,
    /// At least one.
    pub problems: Vec<Problem>,
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.problems.iter().enumerate() {
            let end = if index + 1 == self.problems.len() { "" } else { "\n" };
            write!(f, "{}:{}: {}{end}", self.name, problem.line, problem.what)?;
        }
        Ok(())
    }
}

impl Error for Problems {}
