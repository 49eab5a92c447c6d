//! Open files: who may have how many of those that the system allows.
//!
//! Every connection is an open file, and so is everything else: a policy that is read, a log that begins anew, a
//! question of an operator. Callers come first and would take them all; then nothing could be forwarded, changed or even
//! seen any more. So a part is kept for the process itself, and of the rest upstreams have a quarter, or half where that is
//! few: most callers rest, and those that ask share connections, but what one caller sends may take one of its own:
//!
//! | `ulimit -n` | kept | callers | upstreams |
//! |-------------|------|---------|-----------|
//! | 256         | 128  | 64      | 64        |
//! | 1 024       | 256  | 384     | 384       |
//! | 20 000      | 1 442 | 13 919 | 4 639     |
//! | 65 536      | 4 288 | 45 936 | 15 312    |
//!
//! Where callers have theirs, the connection that has rested longest makes room for the next one, and where none rests,
//! nobody is accepted until one has ended. The limit belongs to the process, and so does the count.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use rustix::process::{Resource, getrlimit};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// What the process itself needs whatever its limit: the connections of its admin API, and what it reads and writes.
const KEPT: usize = 192;

/// Up to so many, upstreams have half.
const FEW: usize = 2_048;

/// How many open files there are, for whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenFiles {
    /// How many the system allows the process; nothing if it allows any number.
    pub allowed: Option<u64>,
    /// How many connections of callers there may be.
    pub for_callers: usize,
    /// How many there are.
    pub of_callers: usize,
    /// How many connections to upstreams there may be.
    pub for_upstreams: usize,
    /// How many there are.
    pub of_upstreams: usize,
}

impl OpenFiles {
    /// How it is now.
    #[must_use]
    pub fn now() -> Self {
        let Files { allowed, shares, callers, upstreams, .. } = files();
        Self {
            allowed: *allowed,
            for_callers: shares.callers,
            of_callers: shares.callers - callers.available_permits().min(shares.callers),
            for_upstreams: shares.upstreams,
            of_upstreams: shares.upstreams - upstreams.available_permits().min(shares.upstreams),
        }
    }
}

#[derive(Debug)]
struct Files {
    allowed: Option<u64>,
    shares: Shares,
    callers: Arc<Semaphore>,
    upstreams: Arc<Semaphore>,
    /// Whether a worker waits for one of the callers' and can end no connection of its own for it.
    is_wanted: AtomicBool,
}

fn files() -> &'static Files {
    static FILES: OnceLock<Files> = OnceLock::new();
    FILES.get_or_init(|| {
        let allowed = getrlimit(Resource::Nofile).current;
        let shares = Shares::of(allowed);
        let [callers, upstreams] =
            [shares.callers, shares.upstreams].map(|share| Arc::new(Semaphore::new(share)));
        Files { allowed, shares, callers, upstreams, is_wanted: AtomicBool::new(false) }
    })
}

/// How many callers may have, and how many upstreams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shares {
    callers: usize,
    upstreams: usize,
}

impl Shares {
    fn of(allowed: Option<u64>) -> Self {
        let most = Semaphore::MAX_PERMITS;
        let allowed =
            allowed.and_then(|allowed| usize::try_from(allowed).ok()).map_or(most, |it| it.min(most));
        let rest = allowed - KEPT.saturating_add(allowed / 16).min(allowed / 2);
        let upstreams = (rest / 2).min((rest / 4).max(FEW));
        Self { callers: (rest - upstreams).max(1), upstreams: upstreams.max(1) }
    }
}

/// One open file of those that are there for somebody.
#[derive(Debug, Default)]
pub(crate) struct File(#[expect(dead_code, reason = "held, not looked at")] Option<OwnedSemaphorePermit>);

/// One for a caller, if there is one left.
pub(crate) fn try_caller() -> Option<File> {
    Arc::clone(&files().callers).try_acquire_owned().ok().map(|permit| File(Some(permit)))
}

/// One for a caller, when there is one.
pub(crate) async fn caller() -> File {
    // The semaphore is never closed.
    File(Arc::clone(&files().callers).acquire_owned().await.ok())
}

/// Asks the other workers to end a connection for one.
pub(crate) fn want() {
    files().is_wanted.store(true, Ordering::Relaxed);
}

/// Whether another worker asked for one; whoever hears it answers it.
pub(crate) fn take_want() -> bool {
    files().is_wanted.load(Ordering::Relaxed) && files().is_wanted.swap(false, Ordering::Relaxed)
}

/// One for an upstream, if there is one left.
pub(crate) fn try_upstream() -> Option<File> {
    Arc::clone(&files().upstreams).try_acquire_owned().ok().map(|permit| File(Some(permit)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_grows_with_the_limit_and_is_half_of_a_small_one() {
        let shares = |allowed| {
            let Shares { callers, upstreams } = Shares::of(allowed);
            (callers, upstreams)
        };
        assert_eq!(shares(Some(256)), (64, 64));
        assert_eq!(shares(Some(1024)), (384, 384));
        assert_eq!(shares(Some(20_000)), (13_919, 4_639));
        assert_eq!(shares(Some(65_536)), (45_936, 15_312));
        assert_eq!((shares(Some(0)), shares(Some(2))), ((1, 1), (1, 1)));
        assert!(shares(None).1 > 1 << 30);
    }
}
