//! Whose turn it is to have something done that takes long.
//!
//! Four things are done at once, beside the runtime. Who has asked for the fewest of them over its connection comes first,
//! and among equals who has waited longest: an operator who asks once does not wait behind a crowd that asks and asks.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

/// How many things are done at once.
pub(super) const MOST: usize = 4;

#[derive(Clone, Debug)]
pub(super) struct Turns(Arc<Mutex<Queue>>);

#[derive(Debug)]
struct Queue {
    free: usize,
    count: u64,
    /// By how much they had asked for before, and when they came. No more than connections.
    waiting: BTreeMap<(u64, u64), oneshot::Sender<Turn>>,
}

/// It is somebody's turn until this is dropped.
#[derive(Debug)]
pub(super) struct Turn(Turns);

impl Default for Turns {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(Queue { free: MOST, count: 0, waiting: BTreeMap::new() })))
    }
}

impl Turns {
    /// Waits for the turn of a caller that has had so many.
    pub(super) async fn wait(&self, had: u64) -> Option<Turn> {
        let waiting = {
            let mut queue = self.lock();
            if queue.free > 0 {
                queue.free -= 1;
                return Some(Turn(self.clone()));
            }
            let (told, waiting) = oneshot::channel();
            queue.count += 1;
            // Those that went away meanwhile are forgotten here, so that no more wait than there are.
            queue.waiting.retain(|_, told| !told.is_closed());
            let place = (had, queue.count);
            queue.waiting.insert(place, told);
            waiting
        };
        // The queue is there as long as whoever waits.
        waiting.await.ok()
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let next = {
            let mut queue = self.0.lock();
            let next = std::iter::from_fn(|| queue.waiting.pop_first()).find(|(_, told)| !told.is_closed());
            if next.is_none() {
                queue.free += 1;
            }
            next
        };
        if let Some((_, told)) = next {
            // One that goes away this very moment drops the turn it is given, and so passes it on.
            drop(told.send(Self(self.0.clone())));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::{Pin, pin};
    use std::task::{Context, Poll, Waker};

    use super::*;

    fn poll<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
        future.poll(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn who_has_asked_least_comes_first_and_who_leaves_is_passed_over() {
        let turns = Turns::default();
        let mut now: Vec<Turn> = (0..MOST)
            .map(|_| match poll(pin!(turns.wait(9))) {
                Poll::Ready(Some(turn)) => turn,
                _ => panic!("there is room"),
            })
            .collect();
        let (mut often, mut twice, mut again) =
            (Box::pin(turns.wait(50)), Box::pin(turns.wait(2)), Box::pin(turns.wait(2)));
        let mut leaves = Box::pin(turns.wait(0));
        assert!(poll(often.as_mut()).is_pending() && poll(twice.as_mut()).is_pending());
        assert!(poll(again.as_mut()).is_pending() && poll(leaves.as_mut()).is_pending());
        drop(leaves);
        now.pop();
        assert!(poll(again.as_mut()).is_pending() && poll(often.as_mut()).is_pending());
        let Poll::Ready(Some(turn)) = poll(twice.as_mut()) else { panic!("it is its turn") };
        drop(turn);
        // It was given the turn and went away before it looked.
        drop(again);
        assert!(poll(often.as_mut()).is_ready());
    }

    #[test]
    fn a_turn_that_nobody_waits_for_is_there_for_the_next() {
        let turns = Turns::default();
        for _ in 0..3 * MOST {
            assert!(poll(pin!(turns.wait(0))).is_ready());
        }
    }
}
