//! Writes the access log, on a thread of its own.
//!
//! Workers hand over records without waiting; when the disk or the reader is slower than they are, records are lost
//! and counted rather than requests held up.

use std::fs::OpenOptions;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use tidegate_policy::Record;
use tidegate_policy::policy::{self, LogTarget};

use crate::commands::Failure;

/// How many records wait to be written.
const MOST_WAITING: usize = 16_384;

/// A log that is being written.
pub(super) struct AccessLog {
    sender: SyncSender<Record>,
    thread: JoinHandle<()>,
}

/// Opens the log and begins to write it.
pub(super) fn start(log: Option<&policy::AccessLog>, beside: &Path) -> Result<Option<AccessLog>, Failure> {
    let Some(log) = log else { return Ok(None) };
    let target: Box<dyn Write + Send> = match &log.to {
        LogTarget::Stdout => Box::new(io::stdout()),
        LogTarget::Stderr => Box::new(io::stderr()),
        LogTarget::File(name) => {
            let path = beside.join(name);
            let file = OpenOptions::new().create(true).append(true).open(&path);
            Box::new(file.map_err(|problem| {
                Failure::new(format!("the access log {} cannot be opened: {problem}", path.display()))
            })?)
        }
    };
    let (sender, records) = sync_channel(MOST_WAITING);
    let write = move || write_all(&records, BufWriter::new(target));
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

/// Writes what has come, and flushes whenever nothing else is waiting.
fn write_all(records: &Receiver<Record>, mut target: BufWriter<Box<dyn Write + Send>>) {
    while let Ok(record) = records.recv() {
        let mut next = Some(record);
        while let Some(record) = next {
            // A reader that went away ends the log, not the gateway.
            if writeln!(target, "{}", record.to_line()).is_err() {
                return;
            }
            next = records.try_recv().ok();
        }
        if target.flush().is_err() {
            return;
        }
    }
}
