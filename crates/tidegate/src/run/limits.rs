//! What the system allows a process.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tidegate_load::files;

/// Room for this many open files is made at the start: a listener takes 20 000 connections by default, and each may need
/// one to its upstream. It takes the system a quarter of a megabyte.
const ROOM: usize = 32_768;

/// How many files may be open, unless there is no limit.
pub(super) fn open_files() -> Option<u64> {
    getrlimit(Resource::Nofile).current
}

/// Raises the number of open files to what the system allows at most, since a gateway holds two for every request, and
/// [makes room](files) for them while there is one thread. Where it may not, it goes on with what there is.
pub(crate) fn raise() {
    let limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum }).ok();
    }
    let allowed = limit.maximum.and_then(|most| usize::try_from(most).ok()).unwrap_or(usize::MAX);
    files::make_room(ROOM.min(allowed));
}
