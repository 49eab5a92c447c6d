//! One side waits until the other has come to some point.

use std::sync::{Arc, Condvar, Mutex};

use super::PATIENCE;

/// Closed at first; opened once, for all who wait and all who come later.
#[derive(Clone, Debug, Default)]
pub struct Latch(Arc<(Mutex<bool>, Condvar)>);

impl Latch {
    pub fn open(&self) {
        *self.0.0.lock().unwrap() = true;
        self.0.1.notify_all();
    }

    /// Waits until it is open.
    pub fn wait(&self) {
        let is_open = self.0.0.lock().unwrap();
        let (is_open, _) = self.0.1.wait_timeout_while(is_open, PATIENCE, |is_open| !*is_open).unwrap();
        assert!(*is_open, "nobody opened the latch");
    }
}
