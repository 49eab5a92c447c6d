//! A signal to stop early, for threads that sleep and for tasks that wait.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tokio::sync::Notify;

#[derive(Debug, Default)]
pub(crate) struct Stop {
    is_set: Mutex<bool>,
    for_threads: Condvar,
    for_tasks: Notify,
}

impl Stop {
    pub(crate) fn set(&self) {
        *self.is_set() = true;
        self.for_threads.notify_all();
        self.for_tasks.notify_waiters();
    }

    /// Returns when it is set.
    pub(crate) async fn wait(&self) {
        loop {
            // Made before looking: whoever sets it afterwards wakes it.
            let changed = self.for_tasks.notified();
            if *self.is_set() {
                return;
            }
            changed.await;
        }
    }

    /// Sleeps until then, or until it is set; says whether it is.
    ///
    /// Threads wake within about 60 µs of the moment; the timers of tokio count whole milliseconds.
    pub(crate) fn sleep_until(&self, moment: Instant) -> bool {
        let mut is_set = self.is_set();
        loop {
            let left = moment.saturating_duration_since(Instant::now());
            if *is_set || left.is_zero() {
                return *is_set;
            }
            is_set = self.for_threads.wait_timeout(is_set, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn is_set(&self) -> MutexGuard<'_, bool> {
        self.is_set.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
