//! A log in a file that others may move away.
//!
//! Whoever rotates logs renames the file and expects a new one under the old name. So before something is written, at
//! most once a second, it is looked whether the name still leads to the file that is open, and if not the name is opened
//! anew. Nobody has to send a signal. Where the file is cut instead (`copytruncate`), it is appended to from its new end.
//!
//! A disk that is full loses lines, not the log: once there is room again, it goes on in a line of its own.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::log;

/// How often it is looked where the name leads.
const LOOKS_EVERY: Duration = Duration::from_secs(1);

/// An open log.
#[derive(Debug)]
pub(super) struct LogFile {
    path: PathBuf,
    file: File,
    looked: Instant,
    /// Whether the last write failed; it may have ended in the middle of a line.
    is_failing: bool,
}

impl LogFile {
    /// Opens the file with this name, or creates it.
    pub(super) fn open(path: PathBuf) -> io::Result<Self> {
        let file = open(&path)?;
        Ok(Self { path, file, looked: Instant::now(), is_failing: false })
    }

    /// Writes whole lines, or loses them. Operators are told when that begins and when it ends.
    pub(super) fn write(&mut self, lines: &[u8]) {
        if self.looked.elapsed() >= LOOKS_EVERY {
            self.looked = Instant::now();
            self.follow_name();
        }
        let begin: &[u8] = if self.is_failing { b"\n" } else { b"" };
        let written = self.file.write_all(begin).and_then(|()| self.file.write_all(lines));
        let name = self.path.display();
        match (written, self.is_failing) {
            (Err(problem), false) => {
                log::error(&format!(
                    "the access log {name} cannot be written, and lines are lost: {problem}"
                ));
                self.is_failing = true;
            }
            (Ok(()), true) => {
                log::info(&format!("the access log {name} is written again"));
                self.is_failing = false;
            }
            (Err(_), true) | (Ok(()), false) => {}
        }
    }

    /// Opens the name anew if it leads elsewhere. What cannot be opened leaves everything as it was until the next look.
    fn follow_name(&mut self) {
        let is_ours = |here: fs::Metadata| {
            let open = self.file.metadata();
            open.is_ok_and(|open| (open.dev(), open.ino()) == (here.dev(), here.ino()))
        };
        if fs::metadata(&self.path).is_ok_and(is_ours) {
            return;
        }
        if let Ok(file) = open(&self.path) {
            self.file = file;
        }
    }
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).open(path)
}
