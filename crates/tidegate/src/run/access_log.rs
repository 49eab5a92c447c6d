//! Writes the access log, on a thread of its own.
//!
//! Workers hand over records without waiting; when the disk or the reader is slower than they are, records are lost
//! and counted rather than requests held up.

mod log_file;

use std::io::{self, Write};
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use tidegate_policy::Record;
use tidegate_policy::policy::{self, LogTarget};

use self::log_file::LogFile;
use crate::commands::Failure;

/// How many records wait to be written.
const MOST_WAITING: usize = 16_384;

/// How many bytes are written at once.
const AT_ONCE: usize = 16 * 1024;

/// A log that is being written.
pub(super) struct AccessLog {
    sender: SyncSender<Record>,
    thread: JoinHandle<()>,
}

/// Opens the log and begins to write it.
pub(super) fn start(log: Option<&policy::AccessLog>, beside: &Path) -> Result<Option<AccessLog>, Failure> {
    let Some(log) = log else { return Ok(None) };
    let target = match &log.to {
        LogTarget::Stdout => Target::Stream(Box::new(io::stdout())),
        LogTarget::Stderr => Target::Stream(Box::new(io::stderr())),
        LogTarget::File(name) => {
            let path = beside.join(name);
            Target::File(LogFile::open(path.clone()).map_err(|problem| {
                Failure::new(format!("the access log {} cannot be opened: {problem}", path.display()))
            })?)
        }
    };
    let (sender, records) = sync_channel(MOST_WAITING);
    let write = move || write_all(&records, target);
    let thread = std::thread::Builder::new().name("access-log".to_owned()).spawn(write);
    let thread =
        thread.map_err(|problem| Failure::new(format!("the access log has no thread: {problem}")))?;
    Ok(Some(AccessLog { sender, thread }))
}

impl AccessLog {
    pub(super) fn sender(&self) -> SyncSender<Record> {
        self.sender.clone()
    }

    /// Writes what is still waiting, once nobody hands over any more.
    pub(super) fn finish(self) {
        drop(self.sender);
        // A writer that panicked has nothing left to write.
        self.thread.join().ok();
    }
}

/// Where lines go.
enum Target {
    Stream(Box<dyn Write + Send>),
    File(LogFile),
}

impl Target {
    /// Writes lines; a reader that went away ends the log, not the gateway.
    fn write(&mut self, lines: &[u8]) -> io::Result<()> {
        match self {
            Self::Stream(stream) => stream.write_all(lines).and_then(|()| stream.flush()),
            Self::File(file) => {
                file.write(lines);
                Ok(())
            }
        }
    }
}

/// Writes what has come, together with what came meanwhile.
fn write_all(records: &Receiver<Record>, mut target: Target) {
    let mut lines = Vec::with_capacity(AT_ONCE);
    while let Ok(record) = records.recv() {
        let mut next = Some(record);
        while let Some(record) = next {
            lines.extend_from_slice(record.to_line().as_bytes());
            lines.push(b'\n');
            next = if lines.len() < AT_ONCE { records.try_recv().ok() } else { None };
        }
        if target.write(&lines).is_err() {
            return;
        }
        lines.clear();
    }
}
