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
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::commands::files::Files;
use crate::log;

/// How long there must be no sign before the files are read: writing takes several steps.
const SETTLES_IN: Duration = Duration::from_millis(50);

/// When they are read even though signs keep coming.
const AT_LATEST: Duration = Duration::from_secs(1);

/// What is watched.
#[derive(Debug)]
pub(super) struct Watch {
    /// None where the system cannot tell.
    watcher: Option<RecommendedWatcher>,
    folders: BTreeSet<PathBuf>,
    /// The files themselves, behind all links.
    files: Arc<Mutex<BTreeSet<PathBuf>>>,
    signs: Arc<Notify>,
    settled: Arc<Notify>,
}

impl Watch {
    /// Watches files from now on. Must be called where tasks can be spawned.
    pub(super) fn over(files: &Files) -> Self {
        let (signs, settled) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
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
        drop(tokio::spawn(settle(Arc::clone(&signs), Arc::clone(&settled))));
        let mut watch = Self { watcher: watcher.ok(), folders: BTreeSet::new(), files: ours, signs, settled };
        watch.follow(files);
        watch
    }

    /// Waits until files may have changed, and nothing has happened to them for a moment.
    pub(super) async fn changed(&self) {
        self.settled.notified().await;
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

/// Tells of a sign and all that follow it closely as one.
async fn settle(signs: Arc<Notify>, settled: Arc<Notify>) {
    let is_quiet = async || timeout(SETTLES_IN, signs.notified()).await.is_err();
    loop {
        signs.notified().await;
        // When it is over, they are read either way.
        timeout(AT_LATEST, async { while !is_quiet().await {} }).await.ok();
        settled.notify_one();
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
