//! What the commands do, one file each.
//!
//! A command writes its answer to the page it is given and says how it went; only `main` knows of standard
//! output and exit codes.

pub mod bench;
pub mod check;
pub mod ctl;
pub mod explain;
pub(crate) mod files;
pub mod imagined;
pub mod init;
pub mod print;

use std::error::Error;
use std::fmt;
use std::io;
use std::path::Path;

/// How a command ended that wrote its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It did what it was asked.
    Done,
    /// The policy is wrong, and the answer says how.
    BadPolicy,
    /// It could not do it, and the answer says why.
    Failed,
    /// It was told to end early, and the answer says how far it got.
    Interrupted,
}

/// What kept a command from answering.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure(String);

impl Failure {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }

    pub(crate) fn unreadable(path: &Path, problem: &io::Error) -> Self {
        Self::new(format!("{} cannot be read: {problem}", path.display()))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for Failure {}
