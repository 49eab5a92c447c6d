//! A wake-up call for tasks, to within about 60 µs.
//!
//! The timers of tokio count whole milliseconds and are late rather than early. A service that promises 100
//! requests a second from each worker and is late by a millisecond each time does 91. A thread that sleeps is woken
//! by the system's own timer, and rings.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Instant;
use std::{io, mem};

use tokio::sync::Notify;

/// Rings at the moment it is set to. Its thread ends with it.
#[derive(Debug)]
pub(crate) struct Alarm(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    rings: Notify,
}

#[derive(Debug, Default)]
struct State {
    at: Option<Instant>,
    is_over: bool,
}

impl Alarm {
    pub(crate) fn new() -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let thread = Arc::clone(&shared);
        thread::Builder::new().name("load-alarm".to_owned()).spawn(move || thread.run())?;
        Ok(Self(shared))
    }

    /// Rings at this moment instead of the one before; or not at all.
    pub(crate) fn set(&self, at: Option<Instant>) {
        let before = mem::replace(&mut self.0.state().at, at);
        // One that sleeps for too short a time looks again by itself.
        if at.is_some_and(|at| before.is_none_or(|before| at < before)) {
            self.0.changed.notify_one();
        }
    }

    /// Returns when it has rung since the last time.
    pub(crate) async fn rung(&self) {
        self.0.rings.notified().await;
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        self.0.state().is_over = true;
        self.0.changed.notify_one();
    }
}

impl Shared {
    fn run(&self) {
        let mut state = self.state();
        while !state.is_over {
            state = match state.at.map(|at| at.saturating_duration_since(Instant::now())) {
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(left) if left.is_zero() => {
                    state.at = None;
                    self.rings.notify_one();
                    state
                }
                Some(left) => {
                    self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn it_rings_at_the_earlier_moment_and_not_before() {
        let alarm = Alarm::new().unwrap();
        let now = Instant::now();
        alarm.set(Some(now + Duration::from_secs(3600)));
        alarm.set(Some(now + Duration::from_millis(20)));
        alarm.rung().await;
        assert!(now.elapsed() >= Duration::from_millis(20));
    }

    #[tokio::test]
    async fn it_can_be_put_off() {
        let alarm = Alarm::new().unwrap();
        let now = Instant::now();
        alarm.set(Some(now + Duration::from_millis(10)));
        alarm.set(Some(now + Duration::from_millis(30)));
        alarm.rung().await;
        assert!(now.elapsed() >= Duration::from_millis(30));
    }
}
