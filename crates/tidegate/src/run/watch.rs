//! Notices at once when the policy's files change.
//!
//! What is watched are the folders, since editors and volumes replace files rather than write them: the folders the files
//! are named in, and those their links lead to. Whether anything really changed is found by reading; the system only
//! says when to look. Where it cannot say so, as on network disks, the files are looked at every few seconds anyway.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use notify::event::{AccessKind, AccessMode, ModifyKind};
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::{Notify, mpsc};
use tokio::time::sleep;

use crate::commands::Failure;
use crate::commands::files::Files;
use crate::log;

/// How long files must hold the same bytes before they are believed: writing takes several steps, and a policy that was
/// cut in the middle can be one by itself, with less in it.
const STILL_FOR: Duration = Duration::from_millis(250);

/// What is watched.
#[derive(Debug)]
pub(super) struct Watch {
    /// None where the system cannot tell.
    watcher: Option<RecommendedWatcher>,
    folders: BTreeSet<PathBuf>,
    /// The files themselves, behind all links.
    files: Arc<Mutex<BTreeSet<PathBuf>>>,
    signs: Arc<Notify>,
    settled: mpsc::Receiver<Read>,
}

/// What reading the files came to.
pub(super) type Read = Result<Files, Failure>;

impl Watch {
    /// Watches files from now on, and reads them with `read`. Must be called where tasks can be spawned.
    pub(super) fn over(files: &Files, read: impl Fn() -> Read + Send + 'static) -> Self {
        let signs = Arc::new(Notify::new());
        let (sender, settled) = mpsc::channel(1);
        let ours = Arc::new(Mutex::new(BTreeSet::new()));
        let (told, known) = (Arc::clone(&signs), Arc::clone(&ours));
        let watcher = notify::recommended_watcher(move |event: notify::Result<Event>| {
            let known = known.lock().unwrap_or_else(PoisonError::into_inner);
            // An error may be an overflow: something was missed.
            if event.map_or(true, |event| may_change(&event, &known)) {
                told.notify_one();
            }
        });
        let watcher = watcher.inspect_err(|problem| {
            log::warn(&format!("changes of files are noticed some seconds late, since {problem}"));
        });
        drop(tokio::spawn(settle(Arc::clone(&signs), read, sender)));
        let mut watch = Self { watcher: watcher.ok(), folders: BTreeSet::new(), files: ours, signs, settled };
        watch.follow(files);
        watch
    }

    /// Waits until files may have changed, and the same bytes were read twice with a while between.
    pub(super) async fn changed(&mut self) -> Read {
        match self.settled.recv().await {
            Some(read) => read,
            // The one who sends lives as long as the runtime.
            None => std::future::pending().await,
        }
    }

    /// Somebody else has seen that they changed.
    pub(super) fn give_sign(&self) {
        self.signs.notify_one();
    }

    /// Watches these files instead, which may lie or lead elsewhere.
    pub(super) fn follow(&mut self, files: &Files) {
        let Some(watcher) = &mut self.watcher else { return };
        let named = [Some(files.policy()), files.callers()].into_iter().flatten();
        let named: Vec<&Path> = named.map(|source| Path::new(source.name)).collect();
        let real: BTreeSet<PathBuf> = named.iter().filter_map(|path| path.canonicalize().ok()).collect();
        let folders = named.iter().filter_map(|path| folder(path).canonicalize().ok());
        let folders: BTreeSet<PathBuf> =
            folders.chain(real.iter().map(|path| folder(path).to_owned())).collect();
        for gone in self.folders.difference(&folders) {
            // A folder that does not exist any more is not watched any more.
            watcher.unwatch(gone).ok();
        }
        for new in folders.difference(&self.folders) {
            if let Err(problem) = watcher.watch(new, RecursiveMode::NonRecursive) {
                log::warn(&format!(
                    "changes in {} are noticed some seconds late, since {problem}",
                    new.display()
                ));
            }
        }
        self.folders = folders;
        *self.files.lock().unwrap_or_else(PoisonError::into_inner) = real;
    }
}

/// After a sign, reads until the files have stopped changing. How often signs come does not count: a log that is written
/// beside the policy would keep it from being read for ever.
async fn settle(signs: Arc<Notify>, read: impl Fn() -> Read, settled: mpsc::Sender<Read>) {
    loop {
        signs.notified().await;
        let mut before = read();
        loop {
            sleep(STILL_FOR).await;
            let now = read();
            if now == before {
                break;
            }
            before = now;
        }
        if settled.send(before).await.is_err() {
            return;
        }
    }
}

/// Whether our files may differ after it. What is made, removed or renamed may be a link on the way to them; what is
/// written into other files, such as a log, is nothing to us; and neither is that we read ours.
fn may_change(event: &Event, ours: &BTreeSet<PathBuf>) -> bool {
    match event.kind {
        EventKind::Access(AccessKind::Close(AccessMode::Write))
        | EventKind::Modify(ModifyKind::Data(_) | ModifyKind::Metadata(_)) => {
            event.paths.iter().any(|path| ours.contains(path))
        }
        EventKind::Access(_) => false,
        EventKind::Any
        | EventKind::Create(_)
        | EventKind::Modify(ModifyKind::Any | ModifyKind::Name(_) | ModifyKind::Other)
        | EventKind::Remove(_)
        | EventKind::Other => true,
    }
}

fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        Some(_) | None => Path::new("."),
    }
}

#[cfg(test)]
mod tests {
    use notify::event::{CreateKind, DataChange, RenameMode};

    use super::*;

    #[test]
    fn only_what_may_change_our_files_is_a_sign() {
        let ours = BTreeSet::from([PathBuf::from("/a/tidegate.toml")]);
        let is_sign = |kind, path: &str| may_change(&Event::new(kind).add_path(PathBuf::from(path)), &ours);
        let written = EventKind::Modify(ModifyKind::Data(DataChange::Any));
        assert!(is_sign(written, "/a/tidegate.toml"));
        assert!(!is_sign(written, "/a/access.log"), "a log in the same folder");
        assert!(is_sign(EventKind::Access(AccessKind::Close(AccessMode::Write)), "/a/tidegate.toml"));
        assert!(
            !is_sign(EventKind::Access(AccessKind::Open(AccessMode::Any)), "/a/tidegate.toml"),
            "ourselves"
        );
        assert!(is_sign(EventKind::Modify(ModifyKind::Name(RenameMode::To)), "/a/..data"));
        assert!(is_sign(EventKind::Create(CreateKind::Any), "/a/tidegate.toml"));
    }
}
