//! What the system allows a process.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the number of open files to what the system allows at most: a gateway holds two for every request.
/// Where it may not, it goes on with what there is.
pub(crate) fn raise() {
    let limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum }).ok();
    }
}
